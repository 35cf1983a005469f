//! The control-variate hybrids: their formulas for fixed noise, what they learn, and that nothing
//! leaks between the two.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::scalar::build;
use crate::support::{assert_close, tensor, values};

const BATCH: usize = 6;

/// Neither symmetric, nor quadratic, nor a sum over coordinates; defined for relaxed samples.
fn cost(z: Tensor<4>) -> Tensor<2> {
    let [_, _, d, k] = z.dims();
    let a: Vec<f64> = (0..d * k).map(direction).collect();
    let a = tensor::<4>(&a, [1, 1, d, k], z.dtype());
    let s = (z * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
    (s.clone() * 0.9 + 0.2).sin() + s.square() * 0.4
}

fn direction(i: usize) -> f64 {
    (1.3 * i as f64 + 0.5).sin() + 0.3
}

fn cost_at(z: &[f64]) -> f64 {
    let s: f64 = z.iter().enumerate().map(|(i, z)| direction(i) * z).sum();
    (0.9 * s + 0.2).sin() + 0.4 * s * s
}

fn law(family: Family) -> Law {
    let k = if family == Family::Categorical { 3 } else { 1 };
    let natural: Vec<f64> = (0..BATCH * 2 * k).map(|i| (1.1 * i as f64).sin() * 1.5).collect();
    Law::new(family, tensor(&natural, [BATCH, 2, k], DType::F64)).expect("valid")
}

/// The noise that an estimator declares for a law, from a key.
fn noise(estimator: &dyn Estimator, law: &Law, seed: u64) -> Vec<Tensor<4>> {
    let specs = estimator.noise(law, estimator.samples());
    let noise = straightflow::estimator::Noise::draw(Key::new(seed), law, &specs);
    (0..specs.len()).map(|i| noise.get(i)).collect()
}

fn input() -> Tensor<2> {
    let x: Vec<f64> = (0..BATCH * 2).map(|i| (0.8 * i as f64).cos()).collect();
    tensor(&x, [BATCH, 2], DType::F64)
}

fn state_of(estimator: &dyn Estimator, law: &Law) -> State {
    let shape = StateShape::of(law, 2);
    let state = estimator.init_state(Key::new(3), shape, &Device::flex().autodiff());
    // Away from the start, where zero biases and unit scales could hide something.
    state.expect("it learns").map(&mut Add { at: None, by: 0.07 })
}

/// Adds a number to all parameters, or to the one of an index in the order of the module.
struct Add {
    at: Option<usize>,
    by: f64,
}

impl ModuleMapper for Add {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|x| {
            let shape = x.dims();
            let mut numbers = values(x.clone());
            for number in &mut numbers {
                match &mut self.at {
                    None => *number += self.by,
                    Some(0) => {
                        *number += self.by;
                        self.at = Some(usize::MAX);
                    }
                    Some(left) => *left -= 1,
                }
            }
            let moved = tensor::<D>(&numbers, shape, x.dtype());
            Tensor::from_inner(moved).require_grad()
        })
    }
}

struct Gradients<'a> {
    grads: &'a GradientsParams,
    values: Vec<f64>,
}

impl ModuleVisitor for Gradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = self.grads.get::<D>(param.id).expect("a gradient");
        self.values.extend(values(gradient));
    }
}

/// What the surrogate's backward pass says about the parameters of the state.
fn learned_gradient(estimator: &dyn Estimator, state: &State, law: &Law, seed: u64) -> Vec<f64> {
    let bound = estimator.bind(state, Some(input())).expect("its own");
    let noise = noise(estimator, law, seed);
    let estimate = bound.estimate_from_noise(noise, &law.leaf(), |z, _| cost(z));
    let mut grads = estimate.expect("valid").surrogate.backward();
    let grads = GradientsParams::from_module(&mut grads, state);
    let mut visitor = Gradients {
        grads: &grads,
        values: Vec::new(),
    };
    state.visit(&mut visitor);
    visitor.values
}

/// The mean of the squared gradient of each batch element. With one draw, or with draws that make
/// one estimate together, it is what the state learns.
fn mean_square(estimator: &dyn Estimator, state: &State, law: &Law, seed: u64) -> f64 {
    let bound = estimator.bind(state, Some(input())).expect("its own");
    let noise = noise(estimator, law, seed);
    let gradient = bound.gradient_from_noise(noise, law, |z, _| cost(z));
    let gradient = values(gradient.expect("valid"));
    gradient.iter().map(|g| g * g).sum::<f64>() / gradient.len() as f64
}

/// Every parameter of the state has the gradient of mean(g^2), by central differences in f64. The
/// temperature's comes from a directional difference with reach 1e-2, so up to 1e-4 of it.
#[test]
fn what_is_learned_is_the_mean_square_of_the_gradient() {
    let both = &[Family::Bernoulli, Family::Categorical][..];
    for (spec, families, temperature) in [
        ("rebar:tune=eta", both, None),
        ("rebar", both, Some(1)),
        ("rebar:baseline=learned,hidden=3", both, Some(14)),
        ("relax:hidden=3", both, None),
        ("relax:hidden=3,control=sum", both, Some(1)),
        ("double-cv:tune=on", &both[..1], None),
        ("double-cv:tune=on,samples=4", &both[..1], None),
    ] {
        for family in families {
            let (estimator, law) = (build(spec), law(*family));
            let state = state_of(&*estimator, &law);
            let got = learned_gradient(&*estimator, &state, &law, 5);
            let moved = |at: usize, by: f64| {
                let state = state.clone().map(&mut Add { at: Some(at), by });
                mean_square(&*estimator, &state, &law, 5)
            };
            let difference = |at| (moved(at, 1e-5) - moved(at, -1e-5)) / 2e-5;
            let want: Vec<f64> = (0..got.len()).map(difference).collect();
            assert!(want.iter().all(|x| x.abs() > 1e-7), "{spec}: {want:?}");
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let tolerance = if Some(i) == temperature { 1e-4 } else { 1e-8 };
                let what = format!("{spec}, {family:?}, parameter {i}");
                assert_close(&what, &[*got], &[*want], tolerance);
            }
        }
    }
}
