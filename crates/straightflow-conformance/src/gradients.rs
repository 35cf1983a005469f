//! Gradients of a subject with respect to the natural parameters, from a key or from given noise,
//! whatever the kind of its objective.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Distribution, Law};
use straightflow::estimator::{
    Described, Entry, Estimate, Estimator, EstimatorExt, Noise, NoiseSpec, Outcome, Price,
    Stacking, StateShape,
};
use straightflow::objective::{CountedObjective, ObjectiveKind};
use straightflow::{Key, Result};

use crate::device::{self, device, tensor_on};

/// A cost of canonical samples `[n, batch, d, k]`.
pub type Cost<'a> = &'a dyn Fn(Tensor<4>) -> Tensor<2>;

/// An estimate of the objective that the estimator takes.
///
/// # Errors
///
/// As [`EstimatorExt::estimate`].
pub fn estimate(
    estimator: &dyn Estimator,
    key: Key,
    q: &Law,
    cost: Cost<'_>,
) -> Result<Estimate<Law>> {
    let bound = bound(estimator, q.law())?;
    let estimator = bound.as_deref().unwrap_or(estimator);
    match estimator.entry().objective {
        ObjectiveKind::Expectation => estimator.estimate(key, q, cost),
        ObjectiveKind::Bound => estimator.estimate_bound(key, q, cost),
    }
}

/// The gradient of each batch element with respect to its natural parameters `[batch, d, k]`, in
/// row-major order.
///
/// # Errors
///
/// As [`estimate`].
pub fn gradient(
    estimator: &dyn Estimator,
    key: Key,
    law: &Law,
    cost: Cost<'_>,
) -> Result<Vec<f64>> {
    let leaf = law.leaf();
    let estimate = estimate(estimator, key, &leaf, cost)?;
    Ok(natural_gradient(&leaf, &estimate.surrogate))
}

/// Random numbers and samples of one call: with the intermediate results of an estimate they are
/// some hundred megabytes.
const NUMBERS: usize = 1_000_000;

/// How many batch elements like the one of a law fit into one call.
pub fn elements_per_call(estimator: &dyn Estimator, law: &Law) -> usize {
    let n = estimator.draws();
    let specs = estimator.noise(law, n);
    let noise: usize = specs
        .iter()
        .map(|spec| spec.shape.iter().product::<usize>())
        .sum();
    let [_, d, k] = law.dims();
    let samples = estimator.price(law, n).evaluations * d * k;
    (NUMBERS / (noise + samples).max(1)).clamp(1, 40_000)
}

/// The gradients of `count` equal batch elements, in several calls if need be: each call has the
/// child of the key that its first element numbers.
///
/// # Errors
///
/// As [`gradient`].
pub fn replicate(
    make: impl Fn() -> Box<dyn Estimator>,
    key: Key,
    count: usize,
    law: impl Fn(usize) -> Law,
    cost: Cost<'_>,
) -> Result<Vec<f64>> {
    let most = elements_per_call(make().as_ref(), &law(1));
    let mut gradients = Vec::new();
    let mut done = 0;
    while done < count {
        let batch = most.min(count - done);
        let part = gradient(make().as_ref(), key.child(done as u64), &law(batch), cost)?;
        gradients.extend(part);
        done += batch;
    }
    Ok(gradients)
}

/// As [`gradient`], with the noise passed in.
///
/// # Errors
///
/// As [`gradient`], and if the noise is not of the declared shape.
pub fn gradient_from_noise(
    estimator: &dyn Estimator,
    noise: Vec<Tensor<4>>,
    law: &Law,
    cost: Cost<'_>,
) -> Result<Vec<f64>> {
    // The key is not used: nothing is left to draw.
    replayed(estimator, noise, law, |replay| {
        gradient(replay, Key::new(0), law, cost)
    })
}

/// Runs something with an estimator that has new state and the given noise, whatever its key.
///
/// # Errors
///
/// If the noise is not of the declared shape, and those of what is run.
pub fn replayed<T>(
    estimator: &dyn Estimator,
    noise: Vec<Tensor<4>>,
    law: &Law,
    run: impl FnOnce(&dyn Estimator) -> Result<T>,
) -> Result<T> {
    let noise = Noise::given(noise, &estimator.noise(law, estimator.draws()))?;
    let bound = bound(estimator, law)?;
    let estimator = bound.as_deref().unwrap_or(estimator);
    run(&Replay { estimator, noise })
}

/// The estimator with new state of its own, if it has any, and without a conditioning input.
fn bound(estimator: &dyn Estimator, law: &Law) -> Result<Option<Box<dyn Estimator>>> {
    let shape = StateShape::of(law, 0);
    let device = law.natural().device().inner().autodiff();
    let state = estimator.init_state(Key::new(7), shape, &device);
    state.map(|state| estimator.bind(&state, None)).transpose()
}

/// The surrogate is a mean over the batch; times its size, the gradient is that of each element.
pub fn natural_gradient(leaf: &Law, surrogate: &Tensor<1>) -> Vec<f64> {
    let natural = leaf.law().natural();
    let batch = natural.dims()[0] as f64;
    let gradient = surrogate
        .is_tracked()
        .then(|| natural.grad(&surrogate.backward()))
        .flatten();
    match gradient {
        Some(gradient) => to_vec(gradient * batch),
        None => vec![0.0; natural.shape().num_elements()],
    }
}

/// An estimator whose noise is fixed, so that every way of calling it replays that noise.
#[derive(Debug)]
struct Replay<'a> {
    estimator: &'a dyn Estimator,
    noise: Noise,
}

impl Described for Replay<'_> {
    fn entry(&self) -> &'static Entry {
        self.estimator.entry()
    }

    fn config(&self) -> serde_json::Value {
        self.estimator.config()
    }

    fn draws(&self) -> usize {
        self.estimator.draws()
    }

    fn stacking(&self) -> Stacking<'_> {
        Stacking::Unsupported
    }

    fn at_step(&self, step: u64) -> Result<Box<dyn Estimator>> {
        self.estimator.at_step(step)
    }
}

impl Estimator for Replay<'_> {
    fn least_samples(&self) -> usize {
        self.estimator.least_samples()
    }

    fn check(&self, law: &Law, n: usize) -> Result<()> {
        self.estimator.check(law, n)
    }

    fn noise(&self, _law: &Law, _n: usize) -> Vec<NoiseSpec> {
        Vec::new()
    }

    fn price(&self, law: &Law, n: usize) -> Price {
        self.estimator.price(law, n)
    }

    fn outcome(&self, _: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        self.estimator.outcome(&self.noise, law, objective)
    }
}

/// A constant tensor on the device of the suite.
pub fn tensor<const D: usize>(values: Vec<f64>, shape: [usize; D], dtype: DType) -> Tensor<D> {
    tensor_on(&device(), values, shape, device::dtype(dtype))
}

/// The values of a tensor as `f64`, whatever its type and tape.
pub fn to_vec<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.inner()
        .into_data_dtype(DType::F64)
        .try_into_vec()
        .expect("the data was converted to f64")
}

/// The largest difference of two vectors, relative to the larger of 1 and the largest entry of
/// `want`. Infinite if a number is not finite.
pub fn error(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len(), "gradients of one problem");
    if got.iter().chain(want).any(|x| !x.is_finite()) {
        return f64::INFINITY;
    }
    let size = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let gaps = got.iter().zip(want).map(|(a, b)| (a - b).abs());
    gaps.fold(0.0, f64::max) / size
}
