//! What an estimate promises: the bias that theory states, the drop-in's bits, the counts.

use burn::tensor::{DType, Tensor};
use std::sync::atomic::{AtomicUsize, Ordering};

use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{Noise, Outcome, Price};
use straightflow::objective::{CountedObjective, Objective};
use straightflow::prelude::*;

use crate::support::{assert_close, laws, leaf, tensor, values};

/// The expectation of an estimator's gradient over all samples of one coordinate, without Monte
/// Carlo: every value is a batch element of its own, passed in as noise.
fn expected_gradient(
    estimator: &dyn Estimator,
    family: Family,
    natural: f64,
    cost: impl Fn(Tensor<4>) -> Tensor<4>,
) -> f64 {
    let law = family.count_law(natural).expect("ordered");
    let (lo, hi) = law.window(60.0);
    let z: Vec<f64> = (lo..=hi).map(|x| x as f64).collect();
    let batch = z.len();
    let all = Law::new(
        family,
        tensor(&vec![natural; batch], [batch, 1, 1], DType::F64),
    );
    let q = all.expect("valid");
    let noise = vec![tensor(&z, [1, batch, 1, 1], DType::F64)];
    let gradients = values(estimator.gradient(noise, &q, cost).expect("valid"));
    let terms = z.iter().zip(gradients);
    terms.map(|(z, gradient)| law.pmf(*z) * gradient).sum()
}

/// On `f = z^2` straight-through misses the derivative of the variance, `-V'(m)`: the classical
/// bias, in the mean parametrisation.
#[test]
fn straight_through_misses_the_derivative_of_the_variance() {
    let logit = |p: f64| (p / (1.0 - p)).ln();
    for (family, natural, want) in [
        (Family::Poisson, 5f64.ln(), -1.0),
        (Family::Binomial { trials: 7 }, logit(0.4), -0.2),
        (
            Family::NegativeBinomial { dispersion: 1.0 },
            4f64.ln(),
            -9.0,
        ),
        (
            Family::NegativeBinomial { dispersion: 2.5 },
            3f64.ln(),
            -3.4,
        ),
        (Family::Bernoulli, logit(0.2), -0.6),
    ] {
        let square = |z: Tensor<4>| z.square();
        let st = StraightThrough::default();
        let got = expected_gradient(&st, family, natural, square);
        let q = Law::new(family, tensor(&[natural], [1, 1, 1], DType::F64)).expect("valid");
        let exact = Exact::default().gradient(&q, square);
        let exact = values(exact.expect("few states"))[0];
        let factor = family.count_law(natural).expect("ordered").chain_factor();
        let bias = (got - exact) / factor;
        assert!(
            (bias - want).abs() < 1e-9,
            "{family:?}: bias {bias}, expected {want}"
        );
    }
}

/// A one-hot variable with `f` quadratic: the expectation is `J^T E grad f`, summed by hand.
#[test]
fn straight_through_of_a_categorical_variable_is_the_softmax_jacobian() {
    let logits = [0.3, -1.0, 0.9];
    let total: f64 = logits.iter().map(|x: &f64| x.exp()).sum();
    let p = logits.map(|x| x.exp() / total);
    let target = [0.5, -0.2, 0.1];
    let q = Categorical::from_logits(tensor(&logits.repeat(3), [3, 1, 3], DType::F64));
    let q = q.expect("valid");
    let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let noise = vec![tensor(&identity, [1, 3, 1, 3], DType::F64)];
    let got = StraightThrough::default().gradient(noise, &q, |z| {
        let target = tensor::<4>(&target, [1, 1, 1, 3], DType::F64);
        (z - target).square().sum_dim(3)
    });
    let got = values(got.expect("valid"));
    for (i, row) in got.chunks(3).enumerate() {
        let slope: Vec<f64> = (0..3)
            .map(|j| 2.0 * (f64::from(u8::from(i == j)) - target[j]))
            .collect();
        let along: f64 = (0..3).map(|j| p[j] * slope[j]).sum();
        let want: Vec<f64> = (0..3).map(|j| p[j] * (slope[j] - along)).collect();
        assert_close("J^T grad f", row, &want, 1e-14);
    }
}

/// The drop-in and `estimate` are one code path: the same key gives the same bits.
#[test]
fn drop_in_and_estimate_give_the_same_bits() {
    for dtype in [DType::F32, DType::F64] {
        for law in laws(dtype) {
            for samples in [1, 5] {
                let natural = values(law.natural());
                let cost = |z: Tensor<4>| {
                    (z * 1.7 - 0.4)
                        .tanh()
                        .square()
                        .sum_dims(&[2, 3])
                        .squeeze_dims::<2>(&[2, 3])
                };
                let live = || {
                    let parameters = leaf::<3>(&natural, law.dims(), dtype);
                    // An operation between the leaf and the distribution, as in a network.
                    let law = Law::new(law.family(), parameters.clone() * 1.1).expect("valid");
                    (parameters, law)
                };
                let key = Key::new(21);
                let st = StraightThroughConfig { samples }.init().expect("valid");

                let (parameters, q) = live();
                let z = st.sample(key, &q, samples).expect("valid");
                let grads = cost(z.clone()).mean().backward();
                let drop_in = values(parameters.grad(&grads).expect("gradient"));

                let (parameters, q) = live();
                let estimate = st.estimate(key, &q, cost).expect("valid");
                let grads = estimate.surrogate.backward();
                let by_estimate = values(parameters.grad(&grads).expect("gradient"));

                assert_eq!(drop_in, by_estimate, "{:?}", law.family());
                assert!(drop_in.iter().any(|x| *x != 0.0));
                assert_eq!(values(z), values(estimate.samples[0].clone()));

                // A sum instead of a mean: the same gradient, times the number of terms.
                let (parameters, q) = live();
                let z = st.sample(key, &q, samples).expect("valid");
                let grads = cost(z).sum().backward();
                let summed = values(parameters.grad(&grads).expect("gradient"));
                let terms = (samples * law.dims()[0]) as f64;
                let scaled: Vec<f64> = drop_in.iter().map(|x| x * terms).collect();
                let rounding = if dtype == DType::F32 { 1e-6 } else { 1e-14 };
                assert_close("sum", &summed, &scaled, rounding);
            }
        }
    }
}

/// `draw` is one sample without the dimension of the draws.
#[test]
fn draw_is_sample_with_one_draw() {
    let q = Poisson::from_rates(tensor(&[0.5, 3.0, 8.0, 2.0], [2, 2], DType::F32)).expect("valid");
    let (st, key) = (StraightThrough::default(), Key::new(22));
    let draw = st.draw(key, &q).expect("valid");
    assert_eq!(draw.dims(), [2, 2]);
    assert_eq!(values(draw), values(st.sample(key, &q, 1).expect("valid")));
    let plain = q.draw(key);
    assert_eq!(plain.dims(), [2, 2]);
    assert_eq!(values(plain), values(q.sample(key, 1)));
}

/// The surrogate's value is the mean cost, the counts are the declared cost, and the backward pass
/// is counted when it happens.
#[test]
fn estimates_carry_values_samples_and_counts() {
    let logits = leaf::<2>(&[0.2, -0.4, 1.0, 0.0, 0.3, -2.0], [3, 2], DType::F64);
    let q = Bernoulli::from_logits(logits).expect("valid");
    let st = StraightThroughConfig { samples: 4 }.init().expect("valid");
    let cost = |z: Tensor<3>| (z - 0.3).square().sum_dim(2);
    let estimate = st.estimate(Key::new(23), &q, cost).expect("valid");
    assert_eq!(estimate.values.dims(), [4, 3]);
    assert_eq!(estimate.samples[0].dims(), [4, 3, 2]);
    let recomputed = values(cost(estimate.samples[0].clone()));
    assert_eq!(values(estimate.values.clone()), recomputed);
    let mean = recomputed.iter().sum::<f64>() / 12.0;
    assert_close("value", &values(estimate.surrogate.clone()), &[mean], 1e-14);
    assert_eq!(
        (estimate.counts.evaluations(), estimate.counts.gradients()),
        (4, 0)
    );
    estimate.surrogate.backward();
    let declared = st.price(q.law(), 4);
    assert_eq!(estimate.counts.evaluations(), declared.evaluations);
    assert_eq!(estimate.counts.gradients(), declared.gradients);
}

/// A cost with log q in it: the direct gradient enters once, and `constant` drops it.
#[test]
fn the_direct_dependence_enters_once_and_can_be_dropped() {
    let natural = [0.4, -1.1];
    let z = [1.0, 0.0, 1.0, 1.0];
    let run = |direct: bool| {
        let logits = leaf::<2>(&natural, [1, 2], DType::F64);
        let q = Bernoulli::from_logits(logits.clone()).expect("valid");
        let noise = vec![tensor(&z, [2, 1, 2, 1], DType::F64)];
        let estimate = StraightThrough::default().estimate_with(noise, &q, (), |z, q, ()| {
            if direct {
                q.log_prob(z)
            } else {
                q.constant().log_prob(z)
            }
        });
        let grads = estimate.expect("valid").surrogate.backward();
        values(logits.grad(&grads).expect("gradient"))
    };
    let (kept, dropped) = (run(true), run(false));
    for j in 0..2 {
        let p = 1.0 / (1.0 + (-natural[j]).exp());
        // d log q / dz is the logit, through the rule; the score is the direct part.
        let through_z = p * (1.0 - p) * natural[j];
        let score = (z[j] + z[2 + j]) / 2.0 - p;
        assert_close("dropped", &[dropped[j]], &[through_z], 1e-14);
        assert_close("kept", &[kept[j]], &[through_z + score], 1e-14);
    }
}

/// Batch elements do not influence each other's gradients.
#[test]
fn gradients_are_per_batch_element() {
    let natural = [0.4, -1.1, 0.7, 2.0];
    let cost = |z: Tensor<3>| (z - 0.3).square().sum_dim(2);
    let q = |natural: &[f64]| {
        let batch = natural.len() / 2;
        Bernoulli::from_logits(tensor(natural, [batch, 2], DType::F64)).expect("valid")
    };
    let both = q(&natural);
    let z = both.law().sample(Key::new(24), 3);
    let st = StraightThrough::default();
    let whole = values(st.gradient(vec![z.clone()], &both, cost).expect("valid"));
    for element in 0..2 {
        let one = q(&natural[2 * element..2 * element + 2]);
        let noise = vec![z.clone().narrow(1, element, 1)];
        let part = values(st.gradient(noise, &one, cost).expect("valid"));
        assert_close("split", &whole[2 * element..2 * element + 2], &part, 1e-15);
    }
}

/// An objective in the trait form is evaluated like a closure, and a cost that ignores z is an error
/// instead of a gradient of zero.
#[test]
fn objectives_may_be_types_and_have_to_use_z() {
    struct Distance(Bernoulli, f64);
    impl Objective<Bernoulli> for Distance {
        fn layer(&self, _below: &[Tensor<3>]) -> straightflow::Result<Bernoulli> {
            Ok(self.0.clone())
        }

        fn cost(&self, z: &[Tensor<3>], _q: &[Bernoulli]) -> Result<Tensor<2>> {
            let gap = z[0].clone() - self.1;
            Ok(gap.square().sum_dim(2).squeeze_dim(2))
        }
    }
    let q = || Bernoulli::from_logits(leaf::<2>(&[0.4, -1.1], [1, 2], DType::F64)).expect("valid");
    let st = StraightThrough::default();
    let by_type = st
        .estimate_objective(Key::new(25), &Distance(q(), 0.3))
        .expect("valid");
    let by_closure = st.estimate(Key::new(25), &q(), |z| (z - 0.3).square().sum_dim(2));
    assert_eq!(
        values(by_type.values),
        values(by_closure.expect("valid").values)
    );

    let constant = st.gradient(Key::new(25), &q(), |z| {
        tensor::<2>(&vec![7.0; z.dims()[0]], [z.dims()[0], 1], DType::F64)
    });
    assert_eq!(constant.expect_err("no z"), Error::NoGradient);
}

straightflow::method! {
    /// An estimator that needs the gradient of the cost at a point of its own.
    pub struct SlopeAtTheMean {}

    options SlopeAtTheMeanConfig {
        /// Ignored.
        samples: usize = 1,
    }

    facts {
        id: "slope-at-the-mean",
        name: "Slope at the mean",
        families: FamilyKind::ALL,
        bias: exact on "linear f",
        needs: [Gradient],
        price: "n + 1 f, 1 df",
        reference: "a test",
        layers: Unsupported,
    }
}

impl Estimator for SlopeAtTheMean {
    fn price(&self, _law: &Law, n: usize) -> Price {
        Price {
            evaluations: n + 1,
            gradients: 1,
        }
    }

    fn outcome(
        &self,
        noise: &Noise,
        law: &Law,
        objective: &CountedObjective,
    ) -> Result<Outcome, straightflow::Error> {
        let mean = law.mean().inner().unsqueeze::<4>();
        let (_, slope) = objective.value_and_gradient(mean, law)?;
        let share = 1.0 / law.dims()[0] as f64;
        let along = (law.mean().unsqueeze::<4>() * slope).sum() * share;
        let cost = objective.evaluate(noise.get(0), law)?;
        Ok(Outcome::new(cost, along, noise.get(0)))
    }
}

/// A cost with a weight of its own, which tells how it was called.
struct Weighted {
    q: Bernoulli,
    weight: Tensor<3>,
    live: AtomicUsize,
    frozen: AtomicUsize,
}

impl Objective<Bernoulli> for Weighted {
    fn layer(&self, _below: &[Tensor<3>]) -> straightflow::Result<Bernoulli> {
        Ok(self.q.clone())
    }

    fn cost(&self, z: &[Tensor<3>], _q: &[Bernoulli]) -> Result<Tensor<2>> {
        self.live.fetch_add(1, Ordering::Relaxed);
        let product = z[0].clone() * self.weight.clone();
        Ok(product.sum_dim(2).squeeze_dim(2))
    }

    fn frozen_cost(&self, z: &[Tensor<3>], _q: &[Bernoulli]) -> Result<Tensor<2>> {
        self.frozen.fetch_add(1, Ordering::Relaxed);
        let product = z[0].clone() * self.weight.clone().inner();
        Ok(product.sum_dim(2).squeeze_dim(2))
    }
}

/// Gradients on the side are asked of the frozen cost; the model's own come from the samples alone,
/// and an estimate is the same for a model without a frozen form.
#[test]
fn inner_gradients_use_the_frozen_cost() {
    let logits = leaf::<2>(&[0.4, -1.1], [1, 2], DType::F64);
    let objective = Weighted {
        q: Bernoulli::from_logits(logits.clone()).expect("valid"),
        weight: leaf::<3>(&[2.0, -3.0], [1, 1, 2], DType::F64),
        live: AtomicUsize::new(0),
        frozen: AtomicUsize::new(0),
    };
    let estimate = SlopeAtTheMean::default().estimate_objective(Key::new(26), &objective);
    let estimate = estimate.expect("valid");
    assert_eq!(objective.live.load(Ordering::Relaxed), 1);
    assert_eq!(objective.frozen.load(Ordering::Relaxed), 1);
    assert_eq!(
        (estimate.counts.evaluations(), estimate.counts.gradients()),
        (2, 1)
    );
    let z = values(estimate.samples[0].clone());
    let grads = estimate.surrogate.backward();
    let of_weight = values(objective.weight.grad(&grads).expect("gradient"));
    assert_eq!(
        of_weight, z,
        "the decoder's gradient is that of the samples"
    );
    let of_logits = values(logits.grad(&grads).expect("gradient"));
    let slope = |x: f64| 1.0 / (1.0 + (-x).exp()) / (1.0 + x.exp());
    let want = [2.0 * slope(0.4), -3.0 * slope(-1.1)];
    assert_close("the encoder's gradient", &of_logits, &want, 1e-14);
}
