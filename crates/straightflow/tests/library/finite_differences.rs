//! Enumeration, finite differences and the weights that imitate them.

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::support::{assert_close, laws, leaf, tensor, values};

/// Not separable, not symmetric, not a polynomial.
fn awkward(z: Tensor<4>) -> Tensor<2> {
    let [n, batch, d, k] = z.dims();
    let flat = z.reshape([n, batch, d * k]);
    let slant: Vec<f64> = (0..d * k).map(|j| 0.3 + 0.2 * j as f64).collect();
    let slant = tensor::<1>(&slant, [d * k], flat.dtype()).reshape([1, 1, d * k]);
    let s = (flat * slant).sum_dim(2);
    (s.clone().sin() + s.clone() * 0.1 + s.square() * 0.05).squeeze_dim(2)
}

/// Every value of one coordinate with its probability.
fn states(law: &Law) -> (Vec<f64>, Vec<f64>) {
    let natural = values(law.natural())[0];
    let law = law.family().count_law(natural).expect("ordered");
    let (lo, hi) = law.window(60.0);
    let z: Vec<f64> = (lo..=hi).map(|x| x as f64).collect();
    let p = z.iter().map(|z| law.pmf(*z)).collect();
    (z, p)
}

/// The expectation of an estimator over noise given as columns, one batch element for each row, with
/// the rows' probabilities.
fn expectation(
    estimator: &dyn Estimator,
    family: Family,
    natural: f64,
    noise: &[Vec<f64>],
    probability: &[f64],
) -> f64 {
    let batch = probability.len();
    let law = Law::new(
        family,
        tensor(&vec![natural; batch], [batch, 1, 1], DType::F64),
    );
    let q = law.expect("valid");
    let noise = noise
        .iter()
        .map(|x| tensor(x, [1, batch, 1, 1], DType::F64));
    let gradient = estimator.gradient(noise.collect::<Vec<_>>(), &q, awkward);
    let gradient = values(gradient.expect("valid"));
    gradient.iter().zip(probability).map(|(g, p)| g * p).sum()
}

#[test]
fn finite_differences_are_unbiased() {
    let estimator = FiniteDifference::default();
    for (family, natural) in [
        (Family::Bernoulli, -0.7),
        (Family::Poisson, 1.1),
        (Family::Binomial { trials: 6 }, 0.4),
        (Family::NegativeBinomial { dispersion: 2.5 }, 0.9),
    ] {
        let one = Law::new(family, tensor(&[natural], [1, 1, 1], DType::F64)).expect("valid");
        let exact = Exact::default().gradient(&one.clone(), awkward);
        let exact = values(exact.expect("few states"))[0];
        let (z, p) = states(&one);
        let got = match family {
            // Both sides of each count, as often as they occur.
            Family::Binomial { trials } => {
                let share = |z: f64| z / f64::from(trials);
                let down = z.iter().map(|z| 0.5 * share(*z));
                let up = z.iter().map(|z| 0.5 + 0.5 * share(*z));
                let sides: Vec<f64> = down.chain(up).collect();
                let weights = p.iter().zip(&z).map(|(p, z)| p * share(*z));
                let rest = p.iter().zip(&z).map(|(p, z)| p * (1.0 - share(*z)));
                let weights: Vec<f64> = weights.chain(rest).collect();
                expectation(&estimator, family, natural, &[z.repeat(2), sides], &weights)
            }
            Family::NegativeBinomial { .. } => {
                let (x, w) = states(&one.weight().expect("ordered"));
                // With one coordinate the samples themselves do not enter.
                expectation(&estimator, family, natural, &[vec![0.0; x.len()], x], &w)
            }
            _ => expectation(&estimator, family, natural, &[z], &p),
        };
        assert!((got - exact).abs() < 1e-9, "{family:?}: {got} {exact}");
    }
}

/// With several coordinates, by chance: each mean of 40,000 estimates within five standard errors of
/// the exact gradient (20 comparisons, a false alarm with probability below 1e-4).
#[test]
fn finite_differences_of_several_coordinates_are_unbiased() {
    let estimator = FiniteDifference::default();
    for law in laws(DType::F64) {
        let one = Law::new(law.family(), law.natural().narrow(0, 0, 1)).expect("valid");
        let exact = Exact::default().gradient(&one.clone(), awkward);
        let exact = values(exact.expect("few states"));
        let replicas = 40_000;
        let many = Law::new(law.family(), one.natural().repeat_dim(0, replicas)).expect("valid");
        let got = estimator.gradient(Key::new(61), &many, awkward);
        let got = values(got.expect("valid"));
        let size = exact.len();
        for (j, exact) in exact.iter().enumerate() {
            let column: Vec<f64> = got.iter().skip(j).step_by(size).copied().collect();
            let mean = column.iter().sum::<f64>() / replicas as f64;
            let variance = column.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
            let error = (variance / (replicas * (replicas - 1)) as f64).sqrt();
            let gap = (mean - exact).abs();
            assert!(
                gap < 5.0 * error + 1e-12,
                "{:?} {j}: {mean} {exact} +- {error}",
                law.family()
            );
            assert!(
                error < 0.1 * exact.abs().max(0.05),
                "{:?}: no power",
                law.family()
            );
        }
    }
}

/// On linear costs every estimate is exact.
#[test]
fn finite_differences_have_no_variance_on_linear_costs() {
    let cost = |z: Tensor<4>| (z * 2.0).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
    for law in laws(DType::F64) {
        let q = law.clone();
        let exact = values(Exact::default().gradient(&q, cost).expect("few states"));
        let got = FiniteDifference::default()
            .gradient(Key::new(62), &q, cost)
            .expect("valid");
        assert_close(&format!("{:?}", law.family()), &values(got), &exact, 1e-12);
    }
}

#[test]
fn enumeration_is_the_oracle() {
    for law in laws(DType::F64) {
        let what = format!("{:?}", law.family());
        let q = law.clone();
        let cost = Single::new(&q, (), |z, q, ()| awkward(z.clone()) + q.log_prob(z) * 0.2);
        let exact = values(Exact::default().gradient_of(&cost).expect("few states"));
        let got = Enumerate::default()
            .gradient_of(Key::new(63), &cost)
            .expect("few states");
        assert_close(&what, &values(got), &exact, 1e-12);
        let estimate = Enumerate::default()
            .estimate_objective(Key::new(63), &cost)
            .expect("few states");
        let mean = Exact::default()
            .expectation_of(&cost)
            .expect("few states")
            .surrogate();
        assert_close(&what, &values(estimate.surrogate), &values(mean), 1e-12);
        let price = Enumerate::default().price(&law, 1);
        assert_eq!(estimate.counts.evaluations(), price.evaluations, "{what}");
    }
    let wide = Bernoulli::from_logits(tensor(&[0.0; 25], [1, 25], DType::F32)).expect("valid");
    let refused = Enumerate::default().estimate(Key::new(63), &wide, |z| z.sum_dim(2));
    assert!(matches!(refused, Err(Error::TooManyStates { .. })));
}

/// Evaluations are counted as declared, and only the samples themselves reach the cost's own
/// parameters.
#[test]
fn finite_differences_cost_what_they_declare() {
    for law in laws(DType::F32) {
        let weight = leaf::<4>(&[1.5], [1, 1, 1, 1], DType::F32);
        let estimator = FiniteDifferenceConfig { samples: 3 }.init().expect("valid");
        let q = law.leaf();
        let estimate =
            estimator.estimate(Key::new(64), &q, |z| (z * weight.clone()).sum_dims(&[2, 3]));
        let estimate = estimate.expect("valid");
        let price = estimator.price(&law, 3);
        assert_eq!(
            estimate.counts.evaluations(),
            price.evaluations,
            "{:?}",
            law.family()
        );
        let grads = estimate.surrogate.backward();
        assert_eq!(estimate.counts.gradients(), 3);
        let got = values(weight.grad(&grads).expect("gradient"))[0];
        let [batch, ..] = law.dims();
        let want = values(estimate.samples[0].clone().sum())[0] / (3 * batch) as f64;
        assert!(
            (got - want).abs() < 1e-4,
            "{:?}: {got} {want}",
            law.family()
        );
    }
}

/// Orders 2, 3 and 4 are exact on polynomials of that degree, and not on the next.
#[test]
fn fini_is_exact_on_polynomials() {
    for log_rate in [-1.5, 0.4, 2.0] {
        let law = Law::new(Family::Poisson, tensor(&[log_rate], [1, 1, 1], DType::F64));
        let (z, p) = states(&law.expect("valid"));
        for order in 2..=4usize {
            let estimator = FiniConfig { order, samples: 1 }.init().expect("valid");
            for degree in 1..=5i32 {
                let power = |z: Tensor<4>| z.powi_scalar(degree).squeeze_dims::<2>(&[2, 3]);
                let batch = p.len();
                let law = |batch: usize| {
                    let natural = tensor(&vec![log_rate; batch], [batch, 1, 1], DType::F64);
                    Law::new(Family::Poisson, natural).expect("valid")
                };
                let exact = Exact::default().gradient(&law(1), power).expect("few");
                let exact = values(exact)[0];
                let noise = vec![tensor(&z, [1, batch, 1, 1], DType::F64)];
                let got = estimator.gradient(noise, &law(batch), power);
                let got = values(got.expect("valid"));
                let got: f64 = got.iter().zip(&p).map(|(g, p)| g * p).sum();
                let error = (got - exact).abs() / exact.abs();
                let what = format!("order {order}, degree {degree}, {log_rate}: {got} {exact}");
                if degree as usize <= order {
                    assert!(error < 1e-11, "{what}");
                } else {
                    assert!(error > 1e-6, "{what}");
                }
            }
        }
    }
}

/// Order 2 is the second-order rule, one code path.
#[test]
fn fini_of_order_two_is_second_order_straight_through() {
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-12)] {
        for law in laws(dtype) {
            let q = law.clone();
            let key = Key::new(65);
            let fini = Fini::default().gradient(key, &q, awkward);
            let supported = Fini::default().entry().families;
            if !supported.contains(&law.family().kind()) {
                assert!(matches!(fini, Err(Error::UnsupportedFamily { .. })));
                continue;
            }
            let second = SecondOrderSt::default().gradient(key, &q, awkward);
            let (fini, second) = (fini.expect("valid"), second.expect("valid"));
            assert_close("order 2", &values(fini), &values(second), tolerance);
            let cubic = FiniConfig {
                order: 3,
                samples: 1,
            }
            .init()
            .expect("valid");
            let outcome = cubic.gradient(key, &q, awkward);
            assert_eq!(outcome.is_ok(), law.family() == Family::Poisson);
        }
    }
    assert!(
        FiniConfig {
            order: 5,
            samples: 1
        }
        .init()
        .is_err()
    );
}

/// A rate that underflows gives no NaN either.
#[test]
fn fini_weights_survive_vanishing_rates() {
    let law = Law::new(Family::Poisson, tensor(&[-200.0], [1, 1, 1], DType::F32));
    let q = law.expect("valid");
    for order in 2..=4 {
        let estimator = FiniConfig { order, samples: 1 }.init().expect("valid");
        let got = estimator.gradient(Key::new(66), &q, |z| z + 1.0);
        assert_eq!(values(got.expect("valid")), [0.0], "order {order}");
    }
}

/// A tiny rate divides by nothing: the falling factorials of 0 and 1 vanish.
#[test]
fn fini_weights_are_finite_at_tiny_rates() {
    let law = Law::new(
        Family::Poisson,
        tensor(&[1e-6f64.ln(); 2], [2, 1, 1], DType::F32),
    );
    let q = law.expect("valid");
    for (order, want) in [
        (3, [5.0 / 12.0 * 1e-6, 8.0 / 12.0]),
        (4, [0.375e-6, 19.0 / 24.0]),
    ] {
        let estimator = FiniConfig { order, samples: 1 }.init().expect("valid");
        let noise = vec![tensor(&[0.0, 1.0], [1, 2, 1, 1], DType::F32)];
        let got = estimator.gradient(noise, &q, |z| z);
        assert_close("weights", &values(got.expect("valid")), &want, 1e-6);
    }
}
