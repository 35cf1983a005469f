//! The same gradients with and without the ops for layers, along a training.

use std::sync::Arc;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use straightflow::Key;
use straightflow::estimator::EstimatorExt;
use straightflow::fused::{BitInput, BitRows, composed_layers};
use straightflow_experiments::vae::{Architecture, Direct, Elbo, Input, Settings, Trainer, Vae};

use super::training::data;

/// The samples of an estimate, and the gradients of all parameters of a model.
fn gradients(
    model: &Vae,
    spec: &str,
    key: Key,
    x: &Tensor<2>,
    input: Input,
) -> (TensorData, Vec<Vec<f32>>) {
    struct Gather<'a>(&'a GradientsParams, Vec<Vec<f32>>);
    impl ModuleVisitor for Gather<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(gradient) = self.0.get::<D>(param.id) {
                self.1
                    .push(gradient.into_data().try_into_vec().expect("f32"));
            }
        }
    }
    let elbo = Elbo::new(model, x.clone(), input, Direct::Dropped);
    let estimator = straightflow::estimator::estimator(spec).expect("a specification");
    let estimate = estimator.estimate_objective(key, &elbo).expect("finite");
    let samples = estimate.samples[0].to_data();
    let grads = GradientsParams::from_grads(estimate.surrogate.backward(), model);
    let mut gather = Gather(&grads, Vec::new());
    model.visit(&mut gather);
    (samples, gather.1)
}

/// What the encoder of the linear or nonlinear model sees, as bits.
fn seen(x: &Tensor<2>, signed: bool) -> Input {
    let columns = x.dims()[1];
    let values: Vec<f32> = x.to_data().try_into_vec().expect("f32");
    let mut bits = BitRows::new(columns);
    for row in values.chunks_exact(columns) {
        bits.push((0..columns).filter(|place| row[*place] == 1.0));
    }
    let (scale, offsets) = match signed {
        true => (2.0, Some(vec![-1.0; columns].into())),
        false => (1.0, None),
    };
    let bits = Arc::new(bits);
    let input = BitInput {
        bits,
        scale,
        offsets,
    };
    Input::of_bits(input, &Device::flex())
}

/// The distance of two gradients, relative to the longer one.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    let pairs = a.iter().zip(b);
    let gap = norm(&mut pairs.map(|(a, b)| f64::from(*a) - f64::from(*b)));
    gap / norm(&mut a.iter().map(|a| f64::from(*a))).max(1e-30)
}

#[test]
fn gradients_with_and_without_ops_agree_at_200_states_of_a_training() {
    let data = data();
    for arch in [Architecture::Linear, Architecture::Nonlinear] {
        for spec in ["straight-through", "disarm"] {
            let settings = Settings {
                batch: Some(10),
                learning_rate: Some(1e-3),
                ..Settings::new(arch, spec.parse().expect("a specification"))
            };
            let config = settings.config(&data).expect("valid settings");
            let mut trainer = Trainer::new(&config, &data).expect("a trainer");
            let (mut worst, mut skipped) = (0.0f64, 0);
            for state in 0..200u64 {
                let images: Vec<usize> =
                    (0..10).map(|i| (state as usize * 10 + i) % 5000).collect();
                let x = trainer.training_images(1, &images);
                let input = seen(&x, arch == Architecture::Linear);
                let model = trainer.model();
                // A uniform number between two probabilities that differ by their rounding gives
                // another bit, and so another gradient: such noise is not the same for both.
                let keys = (0..4).map(|i| Key::new(77).child(state).child(i));
                let both = keys.map(|key| {
                    let fused = gradients(model, spec, key, &x, input.clone());
                    let numbers = input.tensor().into();
                    let plain = composed_layers(|| gradients(model, spec, key, &x, numbers));
                    (fused, plain)
                });
                let mut both = both.inspect(|(fused, plain)| {
                    skipped += u32::from(fused.0 != plain.0);
                });
                let found = both.find(|(fused, plain)| fused.0 == plain.0);
                let ((_, fused), (_, plain)) = found.expect("noise that gives the same bits");
                drop(both);
                assert_eq!(fused.len(), plain.len());
                for (fused, plain) in fused.iter().zip(&plain) {
                    worst = worst.max(distance(plain, fused));
                }
                assert!(worst < 1e-5, "{arch:?}, {spec}, state {state}: {worst:e}");
                trainer.step().expect("a step");
            }
            println!("{arch:?}, {spec}: {worst:e}, {skipped} times other bits");
            // 200 states of 2,000 or 4,000 bits, each other with a probability of about 1e-7.
            assert!(skipped <= 3, "{arch:?}, {spec}: {skipped} times other bits");
            // Not the same bits: the ops were there.
            assert!(worst > 0.0, "{arch:?}, {spec}");
        }
    }
}

/// A step, not only a gradient: the relative difference of the mean cost after it.
#[test]
fn a_step_with_ops_ends_where_one_without_does() {
    let data = data();
    for arch in Architecture::ALL {
        let spec = "straight-through".parse().expect("a specification");
        let config = Settings::new(arch, spec).config(&data).expect("valid");
        let bound = |trainer: &Trainer| {
            let bound = trainer.bound(straightflow_data::Split::Test, 1, 200);
            bound.expect("finite")
        };
        let step = || {
            let mut trainer = Trainer::new(&config, &data).expect("a trainer");
            trainer.step().expect("a step");
            bound(&trainer)
        };
        let (fused, plain) = (step(), composed_layers(step));
        let difference = (fused - plain).abs() / plain;
        assert!(difference < 1e-5, "{arch:?}: {plain} and {fused}");
    }
}
