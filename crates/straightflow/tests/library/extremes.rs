//! The edges: huge logits, tiny and huge rates, ones everywhere.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::support::{leaf, tensor, values};

fn finite(what: &str, x: &[f64]) {
    assert!(x.iter().all(|x| x.is_finite()), "{what}: {x:?}");
}

/// Parameters at the edges of each family, `[3, 2]` or `[1, 2, 3]`.
fn edges() -> Vec<(Family, Vec<f64>, [usize; 3])> {
    let logits = vec![-1e4, 1e4, -60.0, 60.0, 0.0, 1e-30];
    let logs: Vec<f64> = [1e-6, 1e6, 1.0, 1e-3, 1e3, 5.0]
        .iter()
        .map(|x: &f64| x.ln())
        .collect();
    vec![
        (Family::Bernoulli, logits.clone(), [3, 2, 1]),
        (Family::Binomial { trials: 12 }, logits.clone(), [3, 2, 1]),
        (Family::Categorical, logits, [1, 2, 3]),
        (Family::Poisson, logs.clone(), [3, 2, 1]),
        (
            Family::NegativeBinomial { dispersion: 0.5 },
            logs,
            [3, 2, 1],
        ),
    ]
}

#[test]
fn nothing_is_nan_at_the_edges() {
    for dtype in [DType::F32, DType::F64] {
        for (family, natural, dims) in edges() {
            let what = format!("{family:?} {dtype:?}");
            let parameters = leaf::<3>(&natural, dims, dtype);
            let q = Law::new(family, parameters.clone()).expect("valid");
            q.validate().expect("finite parameters");
            let z = q.sample(Key::new(31), 4);
            finite(&what, &values(z.clone()));
            finite(&what, &values(q.log_prob(z.clone())));
            finite(&what, &values(q.mean()));
            finite(&what, &values(q.variance()));
            finite(&what, &values(q.law().chain_factor()));
            finite(&what, &values(q.law().score(z.clone())));
            let other = Law::new(family, parameters.clone() * 0.5).expect("valid");
            finite(&what, &values(q.law().kl(&other).expect("one family")));
            if let Ok(entropy) = q.entropy() {
                finite(&what, &values(entropy));
            }

            let direct = q.log_prob(z).sum();
            let grads = direct.backward();
            finite(&what, &values(parameters.grad(&grads).expect("gradient")));

            let estimate =
                StraightThrough::default().estimate_with(Key::new(32), &q, (), |z, q, ()| {
                    let z = z * 1e-3;
                    let part = z.clone().sin().sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
                    part + q.log_prob(z * 1e3) * 1e-6
                });
            let grads = estimate.expect("finite").surrogate.backward();
            finite(&what, &values(parameters.grad(&grads).expect("gradient")));
        }
    }
}

/// Products with the chain factor are zero where the exact value underflows, not `inf * 0`.
#[test]
fn saturated_variables_have_no_gradient() {
    let logits = leaf::<2>(&[-1e4, 1e4], [1, 2], DType::F32);
    let q = Bernoulli::from_logits(logits.clone()).expect("valid");
    let z = StraightThrough::default()
        .draw(Key::new(33), &q)
        .expect("valid");
    assert_eq!(values(z.clone()), [0.0, 1.0]);
    let grads = (z * 1e30).sum().backward();
    assert_eq!(values(logits.grad(&grads).expect("gradient")), [0.0, 0.0]);
}

/// At a logit of 16.6 single precision still knows `1 - p` to seven digits.
#[test]
fn the_upper_tail_keeps_its_digits() {
    let logits = leaf::<2>(&[16.6], [1, 1], DType::F32);
    let q = Bernoulli::from_logits(logits.clone()).expect("valid");
    let logit = values(logits.clone())[0];
    let want = 1.0 / (1.0 + logit.exp()) / (1.0 + (-logit).exp());
    let got = values(q.variance())[0];
    assert!((got / want - 1.0).abs() < 1e-6, "{got} {want}");
    let z = StraightThrough::default()
        .draw(Key::new(34), &q)
        .expect("valid");
    let grads = z.sum().backward();
    let got = values(logits.grad(&grads).expect("gradient"))[0];
    assert!((got / want - 1.0).abs() < 1e-6, "{got} {want}");
}

/// One draw, one coordinate, one batch element.
#[test]
fn the_smallest_shapes_work() {
    for (family, k) in [
        (Family::Bernoulli, 1),
        (Family::Categorical, 2),
        (Family::Poisson, 1),
        (Family::Binomial { trials: 1 }, 1),
        (Family::NegativeBinomial { dispersion: 1.0 }, 1),
    ] {
        let parameters = leaf::<3>(&vec![0.3; k], [1, 1, k], DType::F32);
        let q = Law::new(family, parameters.clone()).expect("valid");
        let st = StraightThrough::default();
        assert_eq!(q.sample(Key::new(35), 1).dims(), [1, 1, 1, k]);
        let sum = |z: Tensor<4>| z.sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
        let estimate = st.estimate(Key::new(35), &q, sum).expect("valid");
        assert_eq!(estimate.values.dims(), [1, 1]);
        let grads = estimate.surrogate.backward();
        assert_eq!(parameters.grad(&grads).expect("gradient").dims(), [1, 1, k]);
        let exact = Exact::default().gradient(&q, sum).expect("few states");
        assert_eq!(exact.dims(), [1, 1, k]);
    }
}

/// A Poisson count of a rate that no sampler takes is its own mean.
#[test]
fn absurd_rates_do_not_panic() {
    let q = Poisson::from_log_rates(tensor(&[60.0, -800.0], [1, 2], DType::F64)).expect("valid");
    let z = values(q.draw(Key::new(36)));
    assert!((z[0] / 60f64.exp() - 1.0).abs() < 1e-9);
    assert_eq!(z[1], 0.0);
}
