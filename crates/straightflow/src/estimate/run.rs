//! From a cost to one scalar, the *surrogate*, whose single `backward()` gives the gradients of
//! the parameters (through the discrete samples) and of everything else that the cost uses.

use burn::tensor::{Device, Tensor};

use super::facts::{Described, Price, PriceRule};
use super::layers::{Stacking, layerwise, on_tape, single};
use super::noise::{Noise, NoiseLaw, NoiseSource, NoiseSpec};
use super::pathwise::pathwise_outcome;
use super::state::{LayerState, Lesson, State, StateShape};
use crate::Key;
use crate::distribution::Law;
use crate::error::{Error, Result};
use crate::estimate::objective::CountedObjective;
use crate::ops::gradient_only;

/// What an estimator computes. [`method!`](crate::method) declares the rest, and users call the
/// methods of [`EstimatorExt`](super::EstimatorExt).
pub trait Estimator: Described {
    /// The noise of an estimate with `n` draws. The first tensor is `n` long in its first
    /// dimension.
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        vec![match self.entry().noise {
            NoiseLaw::Samples => NoiseSpec::samples(law, n),
            NoiseLaw::Weight => NoiseSpec::weight(law, n),
            NoiseLaw::Uniform => NoiseSpec::uniform("uniform", law.sample_dims(n)),
        }]
    }

    /// What an estimate with `n` draws costs, in evaluations of the cost.
    ///
    /// # Panics
    ///
    /// If the entry leaves it to this method.
    fn price(&self, _law: &Law, n: usize) -> Price {
        match self.entry().price {
            PriceRule::PerDraw {
                evaluations,
                gradients,
            } => Price::new(evaluations * n, gradients * n),
            PriceRule::Own(_) => panic!("`{}` does not say its price", self.entry().id),
        }
    }

    /// The estimate of a single variable for given noise.
    ///
    /// Estimators with samples on the tape or with a rule of their own for all layers have it from
    /// there.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape or is not finite.
    ///
    /// # Panics
    ///
    /// If the estimator has neither and does not implement this method.
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        match self.stacking() {
            Stacking::Tape(pathwise) => pathwise_outcome(pathwise, noise, law, objective),
            Stacking::Own(stacked) => stacked.layers_outcome(&noise.into(), objective),
            Stacking::Layerwise | Stacking::Unsupported => {
                panic!("`{}` has no rule for a single variable", self.entry().id)
            }
        }
    }

    /// Whether the samples are hard: the values of the family, not points between them. A
    /// relaxation has relaxed ones, on which it is trained.
    ///
    /// At hard samples the direct dependence of a cost on the parameters through `log q(z)` has an
    /// expected gradient of zero and may be dropped; at relaxed samples, and in a bound, it has
    /// not.
    fn hard_samples(&self) -> bool {
        self.entry().hard
    }

    /// New state for one layer, with weights from the key; `None` if the estimator has none. This
    /// is what an estimator with state implements; users call [`init_state`](Self::init_state).
    fn init_layer(&self, _key: Key, _shape: StateShape, _device: &Device) -> Option<LayerState> {
        None
    }

    /// New state for a single variable, with weights from the key; `None` if the estimator has
    /// none. For several layers there is [`State::stacked`].
    ///
    /// `device` is that of the model's parameters: an autodiff device if the state is to be
    /// trained, with the same strategy of gradient checkpointing.
    fn init_state(&self, key: Key, shape: StateShape, device: &Device) -> Option<State> {
        let layer = self.init_layer(key, shape, device)?;
        Some(State {
            layers: vec![layer],
        })
    }

    /// The least number of draws of one estimate.
    fn least_samples(&self) -> usize {
        self.entry().least_samples
    }

    /// What the configuration asks of a law beyond its family.
    ///
    /// # Errors
    ///
    /// If an option does not fit the law.
    fn accepts(&self, _law: &Law) -> Result<()> {
        Ok(())
    }

    /// Checks that the estimator can work with `n` draws of a law.
    ///
    /// # Errors
    ///
    /// If the family is not supported, the draws are too few or a parameter is not finite (unless
    /// the law has its [`Checks`](crate::distribution::Checks) off).
    fn check(&self, law: &Law, n: usize) -> Result<()> {
        let entry = self.entry();
        entry.need_samples(n, self.least_samples())?;
        entry.need_family(law.family().kind())?;
        if !law.skips_checks() {
            law.validate()?;
        }
        self.accepts(law)
    }
}

/// What an estimator computes, in canonical shapes.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The cost of each draw and batch element `[n, batch]`, on no tape.
    pub values: Tensor<2>,
    /// A scalar whose value is the mean of `values` (of a bound: the mean bound) and whose gradient
    /// is the estimate.
    pub surrogate: Tensor<1>,
    /// The samples `[n, batch, d, k]` of each layer at which the cost was evaluated, on no tape.
    pub samples: Vec<Tensor<4>>,
    /// What the estimate teaches the state of each layer, if that learns from more than gradients
    /// and costs; else empty.
    pub lessons: Vec<Lesson>,
}

impl Outcome {
    /// The outcome of costs `[n, batch]` at samples of a single layer, both on their tapes, and of
    /// a scalar whose gradient is added to that of the mean cost. The scalar's own value does not
    /// matter.
    pub fn new(cost: Tensor<2>, gradient: Tensor<1>, samples: Tensor<4>) -> Self {
        let surrogate = cost.clone().mean() + gradient_only(gradient);
        Self::with_surrogate(cost, surrogate, vec![samples])
    }

    /// The outcome of costs `[n, batch]` at samples of each layer, both on their tapes, with a
    /// surrogate that is complete.
    pub fn with_surrogate(cost: Tensor<2>, surrogate: Tensor<1>, samples: Vec<Tensor<4>>) -> Self {
        Self {
            values: cost.inner(),
            surrogate,
            samples: samples.into_iter().map(Tensor::inner).collect(),
            lessons: Vec::new(),
        }
    }
}

/// The one way through, whatever the number of layers.
pub(super) fn run<E: Estimator + ?Sized>(
    estimator: &E,
    noise: &NoiseSource,
    objective: &CountedObjective,
) -> Result<Outcome> {
    let (entry, got) = (estimator.entry(), objective.kind());
    if got != entry.objective {
        return Err(Error::UnsupportedObjective {
            estimator: entry.id,
            expected: entry.objective,
            got,
        });
    }
    match estimator.stacking() {
        Stacking::Own(stacked) => stacked.layers_outcome(noise, objective),
        _ if objective.layers() == 1 => single(estimator, noise, objective),
        Stacking::Tape(pathwise) => on_tape(pathwise, noise, objective),
        Stacking::Layerwise => layerwise(estimator, noise, objective),
        Stacking::Unsupported => Err(Error::UnsupportedLayers {
            estimator: entry.id,
            because: "",
        }),
    }
}
