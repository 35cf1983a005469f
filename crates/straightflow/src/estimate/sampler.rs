//! A method as a layer of a model.

mod learned;

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::ext::{Estimate, EstimatorExt as _};
use super::noise::NoiseSource;
use super::objective::{Context, IntoCost, Objective, Single};
use super::run::Estimator;
use super::state::{State, StateShape};
use crate::Key;
use crate::distribution::Distribution;
use crate::error::Result;
use crate::key::words::{Words, count, set_count};
use crate::method::estimator;
use learned::Learned;

/// The configuration of a [`Sampler`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerConfig {
    /// The method by its specification, such as `relax` or `disarm:samples=4`.
    pub spec: String,
    /// The features of the conditioning input that is given by [`Sampler::seeing`]; 0 if none is.
    #[serde(default)]
    pub features: usize,
}

impl SamplerConfig {
    /// A method by its specification, without a conditioning input.
    pub fn new(spec: impl Into<String>) -> Self {
        Self {
            spec: spec.into(),
            features: 0,
        }
    }

    /// The same, with a conditioning input of so many features.
    #[must_use]
    pub fn with_features(mut self, features: usize) -> Self {
        self.features = features;
        self
    }

    /// The layer for variables like those of an example: their number, type of numbers and device
    /// count, not their values or the size of the batch. `q` is on an autodiff device if the layer
    /// is to be trained.
    ///
    /// # Errors
    ///
    /// If there is no such method, or an option of it is wrong.
    pub fn init_for<D: Distribution>(&self, key: Key, q: &D) -> Result<Sampler> {
        let law = q.law();
        let shape = StateShape::of(law, self.features);
        self.init(key, &[shape], &law.natural().device())
    }

    /// The layer for variables of given shapes, one for each layer of the objective; see
    /// [`StateShape::stacked`].
    ///
    /// # Errors
    ///
    /// As [`init_for`](Self::init_for).
    pub fn init(&self, key: Key, shapes: &[StateShape], device: &Device) -> Result<Sampler> {
        Ok(Sampler::new(key, estimator(&self.spec)?, shapes, device))
    }
}

/// A method and what it learns, as a field of a burn model.
///
/// * It draws, or estimates, as the method does. Methods without samples on the tape, such as
///   REINFORCE, work by [`estimate`](Self::estimate).
/// * What the method learns is part of the model: it is in the model's record, and the `backward()`
///   of the surrogate has its gradients too. One optimiser serves both, or the layer has one of its
///   own: take `GradientsParams::from_module(&mut grads, &model.code)` first.
/// * Averages, which no gradient trains, take note of an estimate when its gradients are collected
///   or the next one is made.
/// * A schedule advances with each draw or estimate on a tape. The step is in the record.
///
/// Shapes are fixed when the layer is made; using it never changes them.
///
/// ```
/// use burn::module::Module;
/// use burn::nn::{Linear, LinearConfig};
/// use burn::optim::{AdamConfig, GradientsParams};
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// #[derive(Module, Debug)]
/// struct Model {
///     encoder: Linear,
///     code: Sampler,
///     keys: KeyStream,
///     decoder: Linear,
/// }
///
/// impl Model {
///     fn loss(&self, x: Tensor<2>) -> Result<Tensor<1>> {
///         let q = Bernoulli::from_logits(self.encoder.forward(x.clone()))?;
///         let estimate = self.code.estimate(self.keys.next(), &q, |z| {
///             (self.decoder.forward(z) - x.clone().unsqueeze()).square().sum_dim(2)
///         })?;
///         Ok(estimate.surrogate)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let device = Device::flex().autodiff();
/// let [layers, code, noise] = Key::new(1).split();
/// let example = Bernoulli::from_logits(Tensor::<2>::zeros([1, 4], &device))?;
/// let mut model = layers.init(Model {
///     encoder: LinearConfig::new(6, 4).init(&device),
///     code: SamplerConfig::new("relax").init_for(code, &example)?,
///     keys: KeyStream::new(noise),
///     decoder: LinearConfig::new(4, 6).init(&device),
/// });
/// let mut optimiser = AdamConfig::new().init();
/// let x = Tensor::<2>::ones([8, 6], &device);
/// for _ in 0..3 {
///     let gradients = GradientsParams::from_grads(model.loss(x.clone())?.backward(), &model);
///     model = optimiser.step(1e-2, model, gradients);
/// }
/// let record = model.into_record(); // weights, what RELAX learned, the step, the next key
/// # let _ = record;
/// # Ok(())
/// # }
/// ```
#[derive(Module, Debug)]
pub struct Sampler {
    learned: Learned,
    steps: Words<2>,
    #[module(skip)]
    method: Arc<dyn Estimator>,
}

impl Sampler {
    /// A layer of any method, also one that is not in the registry, for variables of given shapes.
    pub fn new(
        key: Key,
        method: Box<dyn Estimator>,
        shapes: &[StateShape],
        device: &Device,
    ) -> Self {
        let state = match shapes {
            [shape] => method.init_state(key, *shape, device),
            shapes => State::stacked(method.as_ref(), key, shapes, device),
        };
        Self {
            learned: Learned::new(state.unwrap_or_default()),
            steps: Words::new([0; 2]),
            method: method.into(),
        }
    }

    /// The number of draws and estimates on a tape so far.
    pub fn step(&self) -> u64 {
        count(&self.steps.get())
    }

    /// What the method learned so far; empty if it learns nothing.
    pub fn state(&self) -> State {
        self.learned.state()
    }

    /// The method of the current step, with what it learned and a conditioning input
    /// `[batch, features]`: to look at, or for what this type has no method for. Its estimates are
    /// not learned from and do not count as steps.
    ///
    /// # Errors
    ///
    /// None for a layer that was made by its constructors.
    pub fn method(&self, input: Option<Tensor<2>>) -> Result<Box<dyn Estimator>> {
        let method = self.method.at_step(self.step())?;
        let state = self.state();
        match state.layers.is_empty() {
            true => Ok(method),
            false => method.bind(&state, input),
        }
    }

    /// One sample of each variable on the tape, as [`EstimatorExt::draw`] gives it.
    ///
    /// [`EstimatorExt::draw`]: super::EstimatorExt::draw
    ///
    /// # Errors
    ///
    /// As `EstimatorExt::draw`; a method that cannot draw is named with those that can.
    pub fn draw<D: Distribution>(&self, key: Key, q: &D) -> Result<D::Parameters> {
        let z = self.method(None)?.draw(key, q)?;
        if q.law().natural().is_tracked() {
            self.advance();
        }
        Ok(z)
    }

    /// The layer together with a conditioning input `[batch, features]`, which learned baselines and
    /// control variates look at; it is taken as a constant.
    pub fn seeing(&self, input: Tensor<2>) -> Seeing<'_> {
        Seeing {
            sampler: self,
            input: Some(input),
        }
    }

    /// The mean cost and its gradients, as [`EstimatorExt::estimate`] gives them.
    ///
    /// [`EstimatorExt::estimate`]: super::EstimatorExt::estimate
    ///
    /// # Errors
    ///
    /// As `EstimatorExt::estimate`.
    pub fn estimate<D: Distribution, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<Estimate<D>> {
        self.blind().estimate(noise, q, cost)
    }

    /// As [`estimate`](Self::estimate), for a cost that also uses the distribution or a context.
    pub fn estimate_with<D: Distribution, C: Context, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        context: C,
        cost: impl Fn(D::Samples, &D, C) -> R,
    ) -> Result<Estimate<D>> {
        self.blind().estimate_with(noise, q, context, cost)
    }

    /// As [`estimate`](Self::estimate), for an objective of one or several layers.
    pub fn estimate_objective<D: Distribution>(
        &self,
        noise: impl Into<NoiseSource>,
        objective: &impl Objective<D>,
    ) -> Result<Estimate<D>> {
        self.blind().estimate_objective(noise, objective)
    }

    fn blind(&self) -> Seeing<'_> {
        Seeing {
            sampler: self,
            input: None,
        }
    }

    fn advance(&self) {
        self.steps
            .change(|words| set_count(words, count(words) + 1));
    }
}

/// A [`Sampler`] with a conditioning input, made by [`Sampler::seeing`].
#[derive(Clone, Debug)]
pub struct Seeing<'a> {
    sampler: &'a Sampler,
    input: Option<Tensor<2>>,
}

impl Seeing<'_> {
    /// As [`Sampler::estimate`].
    ///
    /// # Errors
    ///
    /// As there, and if the input has another number of features than the layer was made for.
    pub fn estimate<D: Distribution, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<Estimate<D>> {
        self.estimate_with(noise, q, (), |z, _: &D, ()| cost(z))
    }

    /// As [`Sampler::estimate_with`].
    pub fn estimate_with<D: Distribution, C: Context, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        context: C,
        cost: impl Fn(D::Samples, &D, C) -> R,
    ) -> Result<Estimate<D>> {
        self.estimate_objective(noise, &Single::new(q, context, cost))
    }

    /// As [`Sampler::estimate_objective`].
    pub fn estimate_objective<D: Distribution>(
        &self,
        noise: impl Into<NoiseSource>,
        objective: &impl Objective<D>,
    ) -> Result<Estimate<D>> {
        let method = self.sampler.method(self.input.clone())?;
        let estimate = method.estimate_objective(noise, objective)?;
        if estimate.surrogate.is_tracked() {
            let (values, lessons) = (estimate.values.clone(), estimate.lessons.clone());
            self.sampler.learned.expect(values, lessons);
            self.sampler.advance();
        }
        Ok(estimate)
    }
}
