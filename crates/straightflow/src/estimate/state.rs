//! What an estimator learns or remembers from one estimate to the next.

use std::fmt::Debug;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::ext::Estimate;
use super::facts::Entry;
use super::network::{ControlNetwork, Network, SteinNetwork};
use super::run::Estimator;
use crate::Key;
use crate::distribution::{Distribution, Law};
use crate::error::{Error, Result};
use crate::ops::{from_host, to_host};

/// The sizes that the parts of a [`State`] depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateShape {
    /// The features of the conditioning input `[batch, features]`; 0 if there is none.
    pub features: usize,
    /// The numbers in one sample of all layers below; 0 for a single variable.
    pub below: usize,
    /// The coordinates of the variable.
    pub d: usize,
    /// The categories of each coordinate; 1 if it is ordered.
    pub k: usize,
    /// The type of the parameters' numbers.
    pub dtype: DType,
}

impl StateShape {
    /// The shape that fits a law and a conditioning input of so many features.
    pub fn of(law: &Law, features: usize) -> Self {
        let [_, d, k] = law.dims();
        Self {
            features,
            below: 0,
            d,
            k,
            dtype: law.natural().dtype(),
        }
    }

    /// The shapes for each layer of an objective with these laws, from the lowest up.
    pub fn stacked(laws: &[Law], features: usize) -> Vec<Self> {
        let mut below = 0;
        let mut shapes = Vec::new();
        for law in laws {
            let shape = Self::of(law, features);
            shapes.push(Self { below, ..shape });
            below += shape.d * shape.k;
        }
        shapes
    }
}

/// The state of one estimator, for each layer of its objective: what it learns or remembers.
///
/// Estimators themselves never change. Their state is a burn module that the user owns: made by
/// [`init_state`](Estimator::init_state), attached by [`bind`](super::Described::bind), trained by
/// an optimiser of its own on the same surrogate, told of each estimate by
/// [`update`](Self::update), and saved with the model's record. A [`Sampler`](super::Sampler) does
/// all of that.
///
/// ```
/// use burn::optim::{AdamConfig, GradientsParams};
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let device = Device::flex().autodiff();
/// let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
/// let x = Tensor::<2>::ones([3, 4], &device); // what the encoder sees
///
/// let estimator = estimator("reinforce:baseline=learned")?;
/// let shape = StateShape { features: 4, below: 0, d: 2, k: 1, dtype: x.dtype() };
/// let mut state = estimator.init_state(Key::new(1), shape, &device).expect("it learns");
/// let mut optimiser = AdamConfig::new().init();
/// for step in 0..3 {
///     let q = Bernoulli::from_logits(logits.clone())?;
///     let bound = estimator.bind(&state, Some(x.clone()))?;
///     let estimate = bound.estimate(Key::new(2).child(step), &q, |z| {
///         (z - 0.3).square().sum_dim(2)
///     })?;
///     let mut grads = estimate.surrogate.backward();
///     // The model takes its gradients from the same `grads`.
///     let own = GradientsParams::from_module(&mut grads, &state);
///     state = optimiser.step(1e-3, state, own);
///     state.update(&estimate);
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Module, Debug, Default)]
pub struct State {
    /// One for each layer, from the lowest up; a single variable has one.
    pub layers: Vec<LayerState>,
}

impl State {
    /// New state for an objective of several layers, with the shapes of [`StateShape::stacked`];
    /// `None` if the estimator has none. Layer `i` takes the child `i` of the key, so one layer has
    /// other weights than by [`init_state`](Estimator::init_state).
    pub fn stacked(
        estimator: &(impl Estimator + ?Sized),
        key: Key,
        shapes: &[StateShape],
        device: &Device,
    ) -> Option<Self> {
        let layer = |(i, shape): (usize, &StateShape)| {
            estimator.init_layer(key.child(i as u64), *shape, device)
        };
        let layers: Option<Vec<LayerState>> = shapes.iter().enumerate().map(layer).collect();
        layers.map(|layers| Self { layers })
    }

    /// Takes note of an estimate: call it once for each, after `surrogate.backward()` and after the
    /// optimiser's step. It changes what is not trained by gradients, and does nothing if there is
    /// no such part.
    pub fn update<D: Distribution>(&mut self, estimate: &Estimate<D>) {
        self.note(estimate.values.clone(), &estimate.lessons);
    }

    /// As [`update`](Self::update), from the costs `[n, batch]` and the lessons of an estimate: one
    /// for each layer, or none at all.
    pub fn note(&mut self, values: Tensor<2>, lessons: &[Lesson]) {
        for (layer, state) in self.layers.iter_mut().enumerate() {
            if let Some(average) = &mut state.average {
                average.update(values.clone().mean());
            }
            if let Some(lesson) = lessons.get(layer) {
                lesson.0.teach(state);
            }
        }
    }
}

/// The state of one layer: the parts that the estimator uses, and nothing else.
#[derive(Module, Debug, Default)]
#[non_exhaustive]
pub struct LayerState {
    /// The average of the costs so far.
    pub average: Option<MovingAverage>,
    /// The network that predicts the cost from the conditioning input.
    pub baseline: Option<Network>,
    /// The numbers that scale the parts of a control variate.
    pub coefficients: Option<Param<Tensor<1>>>,
    /// The logarithm of the temperature of a relaxation, `[1]`.
    pub log_temperature: Option<Param<Tensor<1>>>,
    /// The network that is a control variate itself.
    pub control: Option<ControlNetwork>,
    /// Half the curvature of the cost along each move of a sample, `[d, cells, k]`.
    pub curvature: Option<RunningMeans>,
    /// The mean square of what a prediction of each move's slope leaves, `[d, cells, k]`.
    pub residual: Option<RunningMeans>,
    /// The best factor of a base, a ratio of two means.
    pub scale: Option<RunningMeans>,
    /// The network behind two control variates that a Stein operator makes.
    pub stein: Option<SteinNetwork>,
}

/// What an estimate teaches a [`LayerState`] that is not trained by gradients. It is complete once
/// the surrogate was differentiated.
#[derive(Clone, Debug)]
pub struct Lesson(Arc<dyn Teach>);

impl Lesson {
    pub(crate) fn new(lesson: impl Teach + 'static) -> Self {
        Self(Arc::new(lesson))
    }

    /// Whether the surrogate was differentiated.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.is_complete()
    }
}

pub(crate) trait Teach: Debug + Send + Sync {
    fn teach(&self, state: &mut LayerState);
    fn is_complete(&self) -> bool;
}

/// What is subtracted from the cost besides a control variate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LearnedBaseline {
    /// Nothing.
    #[default]
    None,
    /// What a network predicts from the conditioning input.
    Learned,
}

/// Learned numbers `[count]`, at their start.
pub(crate) fn numbers(start: &[f64], device: &Device, dtype: DType) -> Param<Tensor<1>> {
    let data = TensorData::new(start.to_vec(), [start.len()]);
    Param::from_tensor(Tensor::from_data(data, (device, dtype)))
}

/// The states of an estimator's layers and its conditioning input, as `bind` attaches them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attached {
    layers: Vec<LayerState>,
    pub input: Option<Tensor<2>>,
}

impl Attached {
    /// Attaches the states of a method that `learns`, with all parts that it uses; `lacks` names
    /// the first one that a state does not have.
    pub fn attach(
        &mut self,
        entry: &Entry,
        learns: bool,
        state: &State,
        input: Option<Tensor<2>>,
        lacks: impl FnMut(&LayerState) -> Option<&'static str>,
    ) -> Result<()> {
        let estimator = entry.id;
        if !learns {
            return Err(Error::NoState { estimator });
        }
        if let Some(part) = state.layers.iter().find_map(lacks) {
            return Err(Error::ForeignState { estimator, part });
        }
        self.layers = state.layers.clone();
        self.input = input;
        Ok(())
    }

    /// The state of a layer.
    pub fn layer(&self, entry: &Entry, layer: usize) -> Result<&LayerState> {
        let estimator = entry.id;
        let missing = Error::MissingState { estimator };
        self.layers.get(layer).ok_or(missing)
    }

    /// The state of a layer, if the configuration learns anything.
    pub fn learned(
        &self,
        entry: &Entry,
        learns: bool,
        layer: usize,
    ) -> Result<Option<&LayerState>> {
        learns.then(|| self.layer(entry, layer)).transpose()
    }

    /// The state of one layer alone, as that of the only one; none if there is none.
    pub fn only(&self, layer: usize) -> Self {
        Self {
            layers: self.layers.get(layer).cloned().into_iter().collect(),
            input: self.input.clone(),
        }
    }
}

/// A part of an attached state.
pub(crate) fn part<T>(of_state: &Option<T>) -> &T {
    of_state
        .as_ref()
        .expect("`bind` refuses a state without it")
}

/// Whether a part of a state has so many numbers; those of another estimator may be more or fewer.
pub(crate) fn has(numbers: &Option<Param<Tensor<1>>>, count: usize) -> bool {
    let found = numbers.as_ref().map(|numbers| numbers.val().dims());
    found == Some([count])
}

/// Learned numbers for a law, on their own tape, after a look at their precision.
pub(crate) fn read(numbers: &Param<Tensor<1>>, law: &Law) -> Result<Tensor<1>> {
    let numbers = numbers.val();
    same_dtype(numbers.dtype(), law)?;
    Ok(numbers)
}

/// An exponential moving average of the mean cost, corrected for its start at zero.
///
/// With the mean costs `c_1, .., c_t` it is `s / w`, where `s <- decay s + (1 - decay) c` and
/// `w <- decay w + (1 - decay)` from `s = w = 0`: a weighted mean from the first cost on.
#[derive(Module, Debug)]
pub struct MovingAverage {
    sum: Param<Tensor<1>>,
    weight: Param<Tensor<1>>,
    #[module(skip)]
    decay: f64,
}

impl MovingAverage {
    /// An average of nothing yet.
    pub fn new(decay: f64, device: &Device, dtype: DType) -> Self {
        let [sum, weight] = [(); 2].map(|()| untrained([1], device, dtype));
        Self { sum, weight, decay }
    }

    /// The average as a constant `[1]`; 0 before the first update.
    pub fn value(&self) -> Tensor<1> {
        // The weight is zero or at least 1 - decay, and the sum is zero when the weight is.
        let weight = self.weight.val().inner();
        self.sum.val().inner() / weight.clamp_min(f64::from(f32::MIN_POSITIVE))
    }

    /// The average for a law, after a look at its precision.
    pub(crate) fn predict(&self, law: &Law) -> Result<Tensor<1>> {
        same_dtype(self.sum.val().dtype(), law)?;
        Ok(self.value())
    }

    fn update(&mut self, mean_cost: Tensor<1>) {
        let decay = self.decay;
        let blend = |old: &Param<Tensor<1>>, new: Tensor<1>| {
            rewritten(old, |old| old.inner() * decay + new * (1.0 - decay))
        };
        let one = mean_cost.ones_like();
        (self.sum, self.weight) = (blend(&self.sum, mean_cost), blend(&self.weight, one));
    }
}

/// Weighted means of cells `[a, b, c]` that forget: each observation of a cell has the share `rate`
/// in its mean.
#[derive(Module, Debug)]
pub struct RunningMeans {
    sums: Param<Tensor<3>>,
    weights: Param<Tensor<3>>,
    #[module(skip)]
    rate: f64,
}

impl RunningMeans {
    pub(crate) fn new(shape: [usize; 3], rate: f64, device: &Device, dtype: DType) -> Self {
        let [sums, weights] = [(); 2].map(|()| untrained(shape, device, dtype));
        Self {
            sums,
            weights,
            rate,
        }
    }

    /// The means, each as if `prior` had been its first observation, with weight 1. It is forgotten
    /// like any other: if it stayed, no mean could come near zero.
    pub(crate) fn means(&self, prior: f64) -> Vec<f64> {
        let [sums, weights] = self.parts();
        let mean = |(sum, weight): (f64, f64)| {
            // With weights of 1 their sum is `1 - (1 - rate)^n` after n observations.
            let share = self.rate * (1.0 - weight).max(0.0);
            (sum + prior * share) / (weight + share)
        };
        sums.into_iter().zip(weights).map(mean).collect()
    }

    /// The sums and weights of all observations, in row-major order.
    pub(crate) fn parts(&self) -> [Vec<f64>; 2] {
        let weights = to_host(self.weights.val()).into_iter();
        [
            to_host(self.sums.val()),
            weights.map(|weight| weight.max(0.0)).collect(),
        ]
    }

    /// Looks at the precision of a law.
    pub(crate) fn fits(&self, law: &Law) -> Result<()> {
        same_dtype(self.sums.val().dtype(), law)
    }

    /// Takes in observations: a cell, a weighted value and its weight. Several of one cell count as
    /// their mean, with the share of as many. Cells without any keep what they have.
    pub(crate) fn observe(&mut self, observations: &[(usize, f64, f64)]) {
        let [mut sums, mut weights] = [&self.sums, &self.weights].map(|part| to_host(part.val()));
        let mut seen = observations.to_vec();
        seen.sort_by_key(|(cell, ..)| *cell);
        for same in seen.chunk_by(|a, b| a.0 == b.0) {
            let (cell, count) = (same[0].0, same.len() as f64);
            let keep = (1.0 - self.rate).powf(count);
            let share = (1.0 - keep) / count;
            let sum: f64 = same.iter().map(|(_, value, _)| value).sum();
            let weight: f64 = same.iter().map(|(_, _, weight)| weight).sum();
            sums[cell] = keep * sums[cell] + share * sum;
            weights[cell] = keep * weights[cell] + share * weight;
        }
        let write = |old: &Param<Tensor<3>>, new: Vec<f64>| {
            rewritten(old, |old| from_host(new, old.dims(), &old))
        };
        (self.sums, self.weights) = (write(&self.sums, sums), write(&self.weights, weights));
    }
}

/// Zeros that are no optimiser's business.
fn untrained<const D: usize>(shape: [usize; D], device: &Device, dtype: DType) -> Param<Tensor<D>> {
    Param::from_tensor(Tensor::zeros(shape, (device, dtype))).set_require_grad(false)
}

/// A parameter with another value, off the tape also if someone asked all parameters to want
/// gradients.
fn rewritten<const D: usize>(
    old: &Param<Tensor<D>>,
    new: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Param<Tensor<D>> {
    old.clone().map(|old| match old.is_autodiff() {
        true => Tensor::from_inner(new(old)),
        false => new(old),
    })
}

pub(crate) fn same_dtype(state: DType, law: &Law) -> Result<()> {
    let parameters = law.natural().dtype();
    if state != parameters {
        return Err(Error::StateDType { state, parameters });
    }
    Ok(())
}
