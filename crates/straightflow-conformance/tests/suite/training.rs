//! What learned state gains: the total variance of the gradient after a fixed budget of training, as a
//! fraction of plain REINFORCE's with the same number of draws.

use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{DType, Device, Tensor};
use straightflow::Key;
use straightflow::distribution::{Family, Law};
use straightflow::estimator::{Estimator, EstimatorExt, Spec, StateShape};
use straightflow_conformance::gradients::{tensor, to_vec};

/// Batch elements of a training step, and steps.
const BATCH: usize = 32;
const STEPS: u64 = 1_500;
const LEARNING_RATE: f64 = 0.01;
/// Gradients of which the variance is taken: its relative error is about 1 %.
const GRADIENTS: usize = 40_000;

struct Task {
    natural: Vec<f64>,
    cost: fn(Tensor<4>) -> Tensor<2>,
}

/// `f = s + s^2 / 2`, `s = a . z`, of ten bits.
fn ten_bits() -> Task {
    Task {
        natural: (0..10).map(|i| (1.7 * f64::from(i)).sin()).collect(),
        cost: |z| {
            let a: Vec<f64> = (0..10).map(|i| 0.3 + 0.2 * f64::from(i % 3)).collect();
            let a = tensor::<4>(a, [1, 1, 10, 1], z.dtype());
            let s = (z * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
            s.clone() + s.square() * 0.5
        },
    }
}

/// `f = (z - 0.499)^2` of one bit at p = 1/2.
fn one_bit() -> Task {
    Task {
        natural: vec![0.0],
        cost: |z| (z - 0.499).square().squeeze_dims(&[2, 3]),
    }
}

impl Task {
    fn law(&self, batch: usize) -> Law {
        let d = self.natural.len();
        let natural = tensor::<3>(self.natural.repeat(batch), [batch, d, 1], DType::F32);
        Law::new(Family::Bernoulli, natural).expect("valid")
    }

    fn trained(&self, spec: &str) -> Box<dyn Estimator> {
        let estimator = spec
            .parse::<Spec>()
            .expect("a spec")
            .build()
            .expect("known");
        let device = Device::flex().autodiff();
        let shape = StateShape::of(&self.law(1), 0);
        let Some(mut state) = estimator.init_state(Key::new(1), shape, &device) else {
            return estimator;
        };
        let mut optimiser = AdamConfig::new().with_epsilon(1e-8).init();
        for step in 0..STEPS {
            let bound = estimator.bind(&state, None).expect("its own");
            let law = self.law(BATCH).leaf();
            let estimate = bound.estimate(Key::new(2).child(step), &law, |z| (self.cost)(z));
            let estimate = estimate.expect("valid");
            let mut grads = estimate.surrogate.backward();
            let grads = GradientsParams::from_module(&mut grads, &state);
            state = optimiser.step(LEARNING_RATE, state, grads);
            state.update(&estimate);
        }
        estimator.bind(&state, None).expect("its own")
    }

    /// The sum of the variances of all coordinates.
    fn variance(&self, spec: &str) -> f64 {
        let estimator = self.trained(spec);
        let law = self.law(GRADIENTS);
        let gradient = estimator.gradient(Key::new(3), &law, |z| (self.cost)(z));
        let gradient = to_vec(gradient.expect("valid"));
        let d = self.natural.len();
        let one = |i: usize| {
            let column = || gradient.iter().skip(i).step_by(d);
            let mean = column().sum::<f64>() / GRADIENTS as f64;
            column().map(|g| (g - mean).powi(2)).sum::<f64>() / GRADIENTS as f64
        };
        (0..d).map(one).sum()
    }

    fn ratio(&self, spec: &str) -> f64 {
        let ratio = self.variance(spec) / self.variance("reinforce");
        println!("{spec}: {ratio:.2e} of the variance of REINFORCE");
        ratio
    }
}

#[test]
fn ten_bits_gain_from_each_control_variate() {
    let task = ten_bits();
    for (spec, most) in [
        ("rebar", 0.1),
        ("relax", 0.1),
        ("relax:control=sum", 0.1),
        ("reinforce:baseline=learned", 0.2),
    ] {
        let ratio = task.ratio(spec);
        assert!(ratio <= most, "{spec}: {ratio}");
    }
}

#[test]
fn the_toy_gains_from_what_is_learned() {
    let task = one_bit();
    for (spec, most) in [("relax", 0.1), ("reinforce:baseline=learned", 0.01)] {
        let ratio = task.ratio(spec);
        assert!(ratio <= most, "{spec}: {ratio}");
    }
}

/// On one bit the relaxed cost acts as the constant `f(1/2) = 1e-6`, which is nothing beside `f(0)` and
/// `f(1)`, both about 1/4: the variance stays that of REINFORCE. A baseline takes it away.
#[test]
fn rebar_alone_gains_nothing_on_the_toy() {
    let task = one_bit();
    let ratio = task.ratio("rebar");
    assert!(ratio > 0.5, "{ratio}");
    let with_baseline = task.ratio("rebar:baseline=learned");
    assert!(with_baseline < 0.1, "{with_baseline}");
}
