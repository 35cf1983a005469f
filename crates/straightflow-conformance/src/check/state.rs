//! State that is learned: whatever it is, the expectation stays, and nothing of it gets into the
//! model.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Tensor, TensorData};
use straightflow::Key;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{EstimatorExt, Noise, State, StateShape};

use super::statistical::{CRITICAL, ROUNDING, hash};
use crate::device::{device, tolerance};
use crate::gradients::{error, tensor, to_vec};
use crate::product::Product;
use crate::subject::{Failure, Subject};

/// Features of the conditioning input.
const FEATURES: usize = 2;
/// Batch elements of the exact comparison, and of the mean.
const FEW: usize = 4;
const MANY: usize = 40_000;
const TOLERANCE: f64 = 1e-12;

/// Passes over estimators without state.
///
/// # Errors
///
/// A gradient of the model that is not the chain rule of that with respect to the natural
/// parameters, or a mean that is too far from the target.
pub fn state(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        let product = Product::of(kind);
        let fail = |found: String| subject.failure("state", &product, found);
        leaks(subject, &product).map_err(fail)?;
        mean(subject, kind, &product).map_err(fail)?;
    }
    Ok(())
}

/// State of another shape than at its start, as after training.
fn trained(subject: &Subject, law: &Law, features: usize) -> Option<State> {
    let device = device().autodiff();
    let shape = StateShape::of(law, features);
    let state = subject
        .estimator()
        .init_state(Key::new(5), shape, &device)?;
    Some(state.map(&mut Stir(0)))
}

/// Adds a different number to each parameter.
struct Stir(usize);

impl ModuleMapper for Stir {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|x| {
            let (shape, dtype) = (x.dims(), x.dtype());
            let stirred = to_vec(x).into_iter().map(|x| {
                self.0 += 1;
                x + 0.3 * (1.7 * self.0 as f64).sin()
            });
            let data = TensorData::new(stirred.collect::<Vec<f64>>(), shape);
            Tensor::from_data(data, (&device().autodiff(), dtype)).require_grad()
        })
    }
}

/// The natural parameters and the conditioning input are made of one leaf. Its gradient has to be
/// the chain rule of the gradient with respect to the natural parameters, with nothing added by way
/// of the state.
fn leaks(subject: &Subject, product: &Product) -> Result<(), String> {
    let law = product.law(FEW, DType::F64);
    let [_, d, k] = law.dims();
    let Some(state) = trained(subject, &law, FEATURES) else {
        return Ok(());
    };
    let x: Vec<f64> = (0..FEW * FEATURES)
        .map(|i| (0.9 * i as f64).cos())
        .collect();
    let matrix: Vec<f64> = (0..FEATURES * d * k)
        .map(|i| 0.2 * (1.3 * i as f64).sin())
        .collect();
    let x = tensor::<2>(x, [FEW, FEATURES], DType::F64);
    let matrix = tensor::<2>(matrix, [FEATURES, d * k], DType::F64);
    let made = |x: Tensor<2>| {
        let natural = law.natural() + x.matmul(matrix.clone()).reshape([FEW, d, k]);
        Law::new(law.family(), natural).expect("valid parameters")
    };
    let estimator = subject.estimator();
    let constant = made(x.clone());
    let specs = estimator.noise(&constant, estimator.draws());
    let noise = Noise::draw(Key::new(8), &constant, &specs);
    let noise: Vec<Tensor<4>> = (0..specs.len()).map(|i| noise.get(i)).collect();
    let cost = |z: Tensor<4>| product.cost(z);
    let text = |error: straightflow::Error| error.to_string();

    let bound = estimator.bind(&state, Some(x.clone())).map_err(text)?;
    let by_natural = bound.gradient(noise.clone(), &constant, cost);
    let by_natural = by_natural.map_err(text)?.reshape([FEW, d * k]);
    let want = by_natural.matmul(matrix.clone().transpose()) / FEW as f64;

    let leaf = Tensor::from_inner(x).require_grad();
    let bound = estimator.bind(&state, Some(leaf.clone())).map_err(text)?;
    let estimate = bound.estimate(noise, &made(leaf.clone()), cost);
    let grads = estimate.map_err(text)?.surrogate.backward();
    let got = leaf.grad(&grads).map(to_vec).unwrap_or_default();
    let want = to_vec(want);
    if got.len() != want.len() || error(&got, &want) > tolerance(TOLERANCE) {
        return Err(format!(
            "the model's gradient is {got:?}, by the chain rule it is {want:?}"
        ));
    }
    Ok(())
}

fn mean(subject: &Subject, kind: FamilyKind, product: &Product) -> Result<(), String> {
    let law = product.law(MANY, DType::F32);
    let Some(state) = trained(subject, &law, 0) else {
        return Ok(());
    };
    let text = |error: straightflow::Error| error.to_string();
    let estimator = subject.estimator().bind(&state, None).map_err(text)?;
    let key = Key::new(hash(&format!("state of {}, {kind}", subject.spec)));
    let gradient = estimator.gradient(key, &law, |z| product.cost(z));
    let gradient = to_vec(gradient.map_err(text)?);
    let want = subject
        .expected_product(product)
        .map_err(|failure| failure.found)?;
    let size = want.mean.len();
    for (i, target) in want.mean.iter().enumerate() {
        let column = || gradient.iter().skip(i).step_by(size);
        let mean = column().sum::<f64>() / MANY as f64;
        let variance = column().map(|g| (g - mean).powi(2)).sum::<f64>() / MANY as f64;
        let error = (variance / MANY as f64).sqrt();
        let near = (mean - target).abs() <= CRITICAL * error + ROUNDING;
        if !near {
            return Err(format!(
                "coordinate {i}: with other state the mean of {MANY} gradients is {mean:.6} +- {error:.1e}, should be {target:.6}"
            ));
        }
    }
    Ok(())
}
