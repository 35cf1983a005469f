//! The training of one model, step by step, with everything that a checkpoint has to hold.

#[cfg(test)]
mod tests;

use crate::adam::AdamConfig;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};
use straightflow::Key;
use straightflow::distribution::Law;
use straightflow::estimator::{Estimate, Estimator, EstimatorExt, State, StateShape};
use straightflow::objective::Counts;
use straightflow_data::{Batches, Order};

use super::config::Config;
use super::elbo::Elbo;
use super::error::VaeError;
use super::images::{Batch, Images};
use super::model::{Layout, Vae};
use super::moments::Moments;
use super::protocol::Source;
use super::summary::{Epoch, StepBound};

/// What has been done, and what was counted on the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Place {
    /// The epochs that are complete.
    pub epoch: u64,
    /// The batches of the current epoch that are done.
    pub batch: usize,
    /// All steps so far.
    pub steps: u64,
    /// The sum over the images of this epoch of what was minimised, and their number.
    pub cost: f64,
    pub images: usize,
    /// Evaluations of the cost and backward passes so far, for each image of a batch.
    pub evaluations: u64,
    pub gradients: u64,
    /// What was measured after each complete epoch.
    pub epochs: Vec<Epoch>,
    /// The bounds of the test images on the way.
    #[serde(default)]
    pub bounds: Vec<StepBound>,
}

impl Place {
    /// The epochs that have begun, complete or not.
    pub fn begun(&self) -> u64 {
        self.epoch + u64::from(self.batch > 0)
    }
}

/// The independent sources of randomness of a run.
pub(super) struct Keys {
    pub weights: Key,
    pub state: Key,
    pub images: Key,
    pub training: Key,
    pub evaluation: Key,
    pub pictures: Key,
}

impl Keys {
    fn new(seed: u64) -> Self {
        let [weights, state, images, training, evaluation, pictures] = Key::new(seed).split();
        Self {
            weights,
            state,
            images,
            training,
            evaluation,
            pictures,
        }
    }
}

/// A model in training.
pub struct Trainer<'a> {
    pub(super) config: &'a Config,
    pub(super) keys: Keys,
    pub(super) images: Images<'a>,
    estimator: Box<dyn Estimator>,
    /// Whether the estimator may have a temperature that follows the steps.
    scheduled: bool,
    batches: Batches,
    order: Option<(u64, Order)>,
    pub(super) model: Vae,
    pub(super) optimiser: ModuleOptimizer,
    pub(super) prior_optimiser: ModuleOptimizer,
    pub(super) state: Option<State>,
    pub(super) state_optimiser: ModuleOptimizer,
    pub(super) moments: Moments,
    pub(super) place: Place,
}

impl<'a> Trainer<'a> {
    /// A model before its first step.
    ///
    /// # Errors
    ///
    /// Bad settings, or data that does not belong to them.
    pub fn new(config: &'a Config, data: &'a Source) -> Result<Self, VaeError> {
        config.check(data)?;
        let device = config.device.open()?.autodiff();
        let keys = Keys::new(config.seed);
        let images = Images::new(config, data, keys.images, &device)?;
        let estimator = config.estimator.build().map_err(VaeError::Estimator)?;
        let shapes = state_shapes(config, data.pixels());
        let mut model = Vae::new(Layout::new(config), data.pixels(), keys.weights, &device);
        if config.output_bias {
            model = model.with_pixel_means(images.means(), &device);
        }
        let adam = AdamConfig::default();
        Ok(Self {
            state: State::stacked(&*estimator, keys.state, &shapes, &device),
            scheduled: estimator.config().get("temperature").is_some(),
            batches: images.batches(config.batch),
            optimiser: adam.init(),
            prior_optimiser: SgdConfig::new().init(),
            state_optimiser: adam.init(),
            moments: Moments::default(),
            place: Place::default(),
            order: None,
            config,
            keys,
            images,
            estimator,
            model,
        })
    }

    /// The model as it is now.
    pub fn model(&self) -> &Vae {
        &self.model
    }

    /// Binary images `[count, pixels]` as an epoch shows them.
    pub fn training_images(&self, epoch: u64, indices: &[usize]) -> Tensor<2> {
        self.images.training(epoch, indices).x
    }

    /// The steps of an epoch.
    pub fn steps_per_epoch(&self) -> usize {
        self.batches.per_epoch()
    }

    /// Complete epochs.
    pub fn epochs(&self) -> u64 {
        self.place.epoch
    }

    /// The share of all steps that is done.
    pub fn share(&self) -> f64 {
        let all = self.config.epochs as f64 * self.steps_per_epoch() as f64;
        self.place.steps as f64 / all
    }

    /// Whether all parameters, of the model and of what the estimator learns, are finite numbers.
    pub fn is_finite(&self) -> bool {
        struct Look(bool);
        impl ModuleVisitor for Look {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                let data = param.val().inner().into_data();
                let values = data.as_slice::<f32>().expect("parameters of type f32");
                self.0 &= values.iter().all(|x| x.is_finite());
            }
        }
        let mut look = Look(true);
        self.model.visit(&mut look);
        if let Some(state) = &self.state {
            state.visit(&mut look);
        }
        look.0
    }

    /// Whether the step that comes next is the first of an epoch.
    pub fn at_epoch(&self) -> bool {
        self.place.batch == 0
    }

    /// One step of the optimiser on the next batch. After the last of an epoch, that epoch is complete.
    ///
    /// # Errors
    ///
    /// If the estimate fails, above all if the cost is not finite.
    pub fn step(&mut self) -> Result<(), VaeError> {
        let batch = self.next_batch();
        let images = batch.x.dims()[0];
        let (cost, counts) = self.learn(batch).map_err(|source| VaeError::Step {
            epoch: self.place.epoch + 1,
            step: self.place.steps + 1,
            source,
        })?;
        let place = &mut self.place;
        place.cost += cost * images as f64;
        place.images += images;
        place.evaluations += counts.evaluations() as u64;
        place.gradients += counts.gradients() as u64;
        place.steps += 1;
        place.batch += 1;
        if place.batch == self.batches.per_epoch() {
            place.batch = 0;
            place.epoch += 1;
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Batch {
        let epoch = self.place.epoch;
        let order = match self.order.take() {
            Some((of, order)) if of == epoch => order,
            _ => self.batches.epoch(epoch),
        };
        let batch = self.images.training(epoch, order.batch(self.place.batch));
        self.order = Some((epoch, order));
        batch
    }

    /// One step on a batch: the mean cost, and how often the cost was evaluated.
    fn learn(&mut self, batch: Batch) -> straightflow::Result<(f64, Counts)> {
        let key = self.keys.training.child(self.place.steps);
        let of_step = match self.scheduled {
            true => Some(self.estimator.at_step(self.place.steps)?),
            false => None,
        };
        let plain = of_step.as_deref().unwrap_or(&*self.estimator);
        let bound = match &self.state {
            Some(state) => Some(plain.bind(state, Some(batch.input.tensor()))?),
            None => None,
        };
        let estimator = bound.as_deref().unwrap_or(plain);

        let kind = estimator.entry().objective;
        let elbo = Elbo::new(&self.model, batch.x, batch.input, self.config.direct).of_kind(kind);
        let estimate = estimator.estimate_objective(key, &elbo)?;
        // What is held twice is not changed in place.
        drop(elbo);
        drop(bound);
        let cost = scalar(estimate.surrogate.clone().inner());
        let mut gradients = estimate.surrogate.backward();
        self.learn_state(&mut gradients, &estimate);

        let mut own = GradientsParams::from_module(&mut gradients, &self.model);
        if self.place.steps.is_multiple_of(Moments::EVERY) {
            self.moments.update(&self.model.encoder, &own);
        }
        let model = self.model.take();
        let prior = own.remove::<2>(model.prior.id);
        let mut model = self.optimiser.step(self.config.learning_rate, model, own);
        if let Some(prior) = prior {
            let mut own = GradientsParams::new();
            own.register(model.prior.id, prior);
            let rate = self.config.prior_learning_rate;
            model = self.prior_optimiser.step(rate, model, own);
        }
        self.model = model;
        Ok((cost, estimate.counts))
    }

    fn learn_state(&mut self, gradients: &mut burn::tensor::Gradients, estimate: &Estimate<Law>) {
        if let Some(state) = self.state.take() {
            let own = GradientsParams::from_module(gradients, &state);
            let rate = self.config.state_learning_rate;
            let mut state = self.state_optimiser.step(rate, state, own);
            state.update(estimate);
            self.state = Some(state);
        }
    }
}

fn state_shapes(config: &Config, pixels: usize) -> Vec<StateShape> {
    let [d, k] = config.dims();
    let shape = |layer: usize| StateShape {
        features: pixels,
        below: layer * d * k,
        d,
        k,
        dtype: DType::F32,
    };
    (0..config.arch.layers()).map(shape).collect()
}

fn scalar(x: Tensor<1>) -> f64 {
    f64::from(x.into_scalar::<f32>())
}

impl std::fmt::Debug for Trainer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("config", self.config)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
