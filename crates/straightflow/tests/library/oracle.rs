//! The exact oracle against closed forms and against itself by other ways.

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::support::{assert_close, laws, leaf, tensor, values};

/// A cost that is neither quadratic nor separable nor symmetric.
fn awkward(z: Tensor<4>) -> Tensor<2> {
    let [n, batch, d, k] = z.dims();
    let flat = z.reshape([n, batch, d * k]);
    let slant: Vec<f64> = (0..d * k).map(|j| 0.3 + 0.2 * j as f64).collect();
    let slant = tensor::<1>(&slant, [d * k], flat.dtype()).reshape([1, 1, d * k]);
    let s = (flat * slant).sum_dim(2);
    (s.clone().sin() + s.clone() * 0.1 + s.square() * 0.05).squeeze_dim(2)
}

/// `d/d natural E g = chain * sum_x w(x) (g(x + 1) - g(x))` with the law `w` of the library.
#[test]
fn the_weight_gives_the_exact_gradient() {
    let g = |z: Tensor<4>| (z.clone() * 1.3 + 0.4).cos() + z.square() * 0.1;
    for family in [
        Family::Bernoulli,
        Family::Poisson,
        Family::Binomial { trials: 7 },
        Family::NegativeBinomial { dispersion: 2.5 },
    ] {
        let natural = [-0.9, 0.4, 1.6];
        let law = Law::new(family, tensor(&natural, [3, 1, 1], DType::F64)).expect("valid");
        let q = law.clone();
        let exact = Exact::default().gradient(&q, g).expect("few states");

        let weight = law.weight().expect("ordered");
        let rise = Exact::default().expectation(&weight, |z| g(z.clone() + 1.0) - g(z));
        let by_weight = law.chain(rise.expect("few states").value.reshape([3, 1, 1]));
        assert_close(
            &format!("{family:?}"),
            &values(by_weight),
            &values(exact),
            1e-12,
        );
    }
}

#[test]
fn expectations_of_moments_are_closed_forms() {
    for law in laws(DType::F64) {
        let q = law.clone();
        let sum = |z: Tensor<4>| z.sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
        let got = Exact::default().expectation(&q, sum).expect("few states");
        let want = values(law.mean().sum_dims(&[1, 2]));
        assert_close(
            &format!("{:?}", law.family()),
            &values(got.value),
            &want,
            1e-12,
        );
        assert!(got.omitted < 1e-18);
    }
}

/// The gradient in bounded memory, the gradient on the tape and the score identity agree.
#[test]
fn the_two_ways_to_a_gradient_agree() {
    for law in laws(DType::F64) {
        let what = format!("{:?}", law.family());
        let q = law.clone();
        let cost = |z: Tensor<4>, q: &Law, (): ()| awkward(z.clone()) + q.log_prob(z) * 0.2;
        let direct = Exact::default().gradient_of(&Single::new(&q, (), cost));
        let direct = direct.expect("few states");
        let parameters = leaf::<3>(&values(law.natural()), law.dims(), DType::F64);
        let live = Law::new(law.family(), parameters.clone()).expect("valid");
        let expectation = Exact::default()
            .expectation_of(&Single::new(&live, (), cost))
            .expect("few states");
        let grads = expectation.surrogate().backward();
        let on_tape = parameters.grad(&grads).expect("gradient") * law.dims()[0] as f64;
        assert_close(&what, &values(direct), &values(on_tape), 1e-12);
    }
}

#[test]
fn too_many_states_are_refused_with_their_number() {
    let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 21], &burn::tensor::Device::flex()));
    let refused = Exact::default().expectation(&q.expect("valid"), |z| z.sum_dim(2));
    assert_eq!(
        refused.expect_err("2^21 states"),
        Error::TooManyStates {
            states: 2_097_152.0,
            limit: 1 << 20
        }
    );
}

/// The bound on what was left out is a bound: a coarse window against a fine one.
#[test]
fn the_omitted_probability_is_bounded() {
    let q = Poisson::from_rates(tensor(&[7.0, 0.2], [1, 2], DType::F64)).expect("valid");
    let coarse = Exact {
        log_tail: 8.0,
        ..Exact::default()
    };
    let total = |oracle: Exact| {
        let one = oracle.expectation(&q, |z| z.zeros_like().sum_dim(2) + 1.0);
        one.expect("few states")
    };
    let (rough, fine) = (total(coarse), total(Exact::default()));
    assert_close("total", &values(fine.value), &[1.0], 1e-14);
    let missing = 1.0 - values(rough.value)[0];
    assert!(missing > 1e-9, "the window was cut");
    assert!(
        missing <= rough.omitted,
        "{missing} above {}",
        rough.omitted
    );
    assert!(rough.states < fine.states);
}

/// The oracle looks at costs as estimates do: a shape that would broadcast is refused, and so is NaN.
#[test]
fn the_oracle_checks_costs() {
    let q = Bernoulli::from_logits(tensor(&[0.1, 0.2, 0.3], [3, 1], DType::F64)).expect("valid");
    let narrow = |z: Tensor<3>| z.narrow(1, 0, 1).squeeze_dim::<2>(2);
    let nan = |z: Tensor<3>| (z - 2.0).log().squeeze_dim::<2>(2);
    let oracle = Exact::default();
    assert!(matches!(
        oracle.gradient(&q, narrow),
        Err(Error::CostShape { .. })
    ));
    assert!(matches!(
        oracle.expectation(&q, narrow),
        Err(Error::CostShape { .. })
    ));
    assert!(matches!(
        oracle.gradient(&q, nan),
        Err(Error::NonFiniteCost { .. })
    ));
}
