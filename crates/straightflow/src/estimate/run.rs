//! From a cost to one scalar, the *surrogate*, whose single `backward()` gives the gradients of
//! the parameters (through the discrete samples) and of everything else that the cost uses.

use burn::tensor::{Device, Tensor};

use super::facts::{Described, Price, PriceRule};
use super::layers::{Stacking, layerwise, on_tape, single};
use super::noise::{Noise, NoiseLaw, NoiseSource, NoiseSpec};
use super::pathwise::pathwise_outcome;
use super::state::{LayerState, Lesson, State, StateShape};
use crate::Key;
use crate::distribution::{Canonical, Distribution, Law};
use crate::error::{Error, Result};
use crate::estimate::objective::{
    CountedObjective, Counts, Objective, ObjectiveKind, Single, Untyped,
};
use crate::ops::gradient_only;

/// What an estimator computes. [`method!`](crate::method) declares the rest, and users call the
/// methods of [`EstimatorExt`].
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
            } => Price {
                evaluations: evaluations * n,
                gradients: gradients * n,
            },
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

    /// Whether what the surrogate differentiates is the cost at hard samples only. Then the direct
    /// dependence of a cost on the parameters through `log q(z)` has an expected gradient of zero
    /// and may be dropped; at relaxed samples, and in a bound, it has not.
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
    /// The state belongs to the user: it is optimised beside the model, by an optimiser of its
    /// own, saved with the model's record, and given to each estimate by [`bind`](Described::bind).
    /// `device` is that of the model's parameters: an autodiff device if the state is to be
    /// trained, with the same strategy of gradient checkpointing.
    fn init_state(&self, key: Key, shape: StateShape, device: &Device) -> Option<State> {
        let layer = self.init_layer(key, shape, device)?;
        Some(State {
            layers: vec![layer],
        })
    }

    /// The same estimator with the state of one layer only, if its layers have states.
    fn at_layer(&self, _layer: usize) -> Option<Box<dyn Estimator>> {
        None
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
    /// If the family is not supported, the draws are too few or a parameter is not finite.
    fn check(&self, law: &Law, n: usize) -> Result<()> {
        let entry = self.entry();
        entry.need_samples(n, self.least_samples())?;
        let family = law.family().kind();
        if !entry.families.contains(&family) {
            return Err(Error::UnsupportedFamily {
                estimator: entry.id,
                family,
                supported: entry.families,
            });
        }
        law.validate()?;
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
        Self {
            values: cost.clone().inner(),
            surrogate: cost.mean() + gradient_only(gradient),
            samples: vec![samples.inner()],
            lessons: Vec::new(),
        }
    }
}

/// An estimate of `E f(z)` and of its gradients.
#[derive(Clone, Debug)]
pub struct Estimate<D: Distribution> {
    /// The cost of each draw and batch element, `[n, batch]`, as constants.
    pub values: Tensor<2>,
    /// A scalar: the mean cost over draws and batch, or the mean bound. Its one `backward()` gives
    /// the gradients of the parameters of all layers, of the cost's own, and of bound state.
    pub surrogate: Tensor<1>,
    /// The samples of each layer at which the cost was evaluated, as constants; `samples[0]` are
    /// those of a single variable.
    pub samples: Vec<D::Samples>,
    /// How often the cost was evaluated and differentiated, live.
    pub counts: Counts,
    /// What [`State::update`] learns from it besides.
    pub lessons: Vec<Lesson>,
}

/// How estimators are used, by any distribution and any cost.
///
/// The trait is implemented for every [`Estimator`], also for a `Box<dyn Estimator>` from the
/// registry.
pub trait EstimatorExt: Estimator {
    /// Estimates the mean cost and its gradients. The number of draws `n` is the configuration's.
    ///
    /// The noise comes from a [`Key`], which is the usual case, or is passed in: the tensors that
    /// [`Estimator::noise`] declares, whose number of draws is that of the estimate.
    ///
    /// The cost maps samples `[n, batch, d]` (categorical: `[n, batch, d, k]`) and `q` to `[n,
    /// batch]`. It must not capture `q` itself: see [`Objective::cost`]. The surrogate is the mean
    /// over draws *and batch*, so its gradient is that of one batch element divided by the size of
    /// the batch; [`gradient`](Self::gradient) gives that of each element.
    ///
    /// # Errors
    ///
    /// If the family is not supported, a parameter is not finite, or the cost has the wrong shape
    /// or is not finite; if given noise is not of the declared shape.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// # fn main() -> Result<(), straightflow::Error> {
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let estimate = StraightThrough::default().estimate(Key::new(1), &q, |z, _q| {
    ///     (z - 0.3).square().sum_dim(2).squeeze_dim(2)
    /// })?;
    /// let grads = estimate.surrogate.backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [3, 2]);
    /// # Ok(())
    /// # }
    /// ```
    fn estimate<D: Distribution>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<Estimate<D>> {
        self.estimate_objective(noise, &Single::new(q, cost))
    }

    /// As [`estimate`](Self::estimate), for the multi-sample bound `-E log (1/n) sum_i
    /// exp(-f(z_i))`: see [`ObjectiveKind::Bound`](crate::objective::ObjectiveKind::Bound). The
    /// value of the surrogate is the mean bound.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate), and if the estimator is one of expectations.
    fn estimate_bound<D: Distribution>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<Estimate<D>> {
        self.estimate_objective(noise, &Single::new(q, cost).of_kind(ObjectiveKind::Bound))
    }

    /// As [`estimate`](Self::estimate), for an objective that is more than a closure: a model with
    /// a frozen cost, or with several layers of variables.
    ///
    /// | estimators | rule for several layers |
    /// |---|---|
    /// | pathwise ones | samples of all layers on the tape |
    /// | `reinforce`, `vimco` | the score of all layers together, with the full cost |
    /// | `muprop` | the expansion about a mean-field pass |
    /// | `arm`, `disarm`, `arms`, `double-cv`, `finite-difference` | one layer after the other: hard samples below, fresh draws above for each evaluation |
    /// | `rebar`, `relax` | for each layer: hard samples below, relaxed ones at and above it |
    /// | `debiased-st` | straight-through on the tape, each layer corrected along one move of its samples |
    /// | `enumerate` | the sum over the states of all layers |
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate), and [`UnsupportedLayers`](Error::UnsupportedLayers) if the
    /// estimator has no rule for several layers.
    fn estimate_objective<D: Distribution>(
        &self,
        noise: impl Into<NoiseSource>,
        objective: &impl Objective<D>,
    ) -> Result<Estimate<D>> {
        let untyped = Untyped::new(objective);
        let objective = CountedObjective::new(&untyped)?;
        let noise = noise.into().for_layers(objective.layers());
        let outcome = run(self, &noise, &objective)?;
        let samples = outcome.samples.into_iter();
        Ok(Estimate {
            values: outcome.values,
            surrogate: outcome.surrogate,
            samples: samples.map(D::Samples::from_canonical).collect(),
            counts: objective.counts(),
            lessons: outcome.lessons,
        })
    }

    /// The gradient of the mean cost of *each* batch element with respect to its natural
    /// parameters, of their shape and on no tape: what variances are measured on.
    ///
    /// It comes from the same surrogate, on a tape of its own, so no network is involved.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate).
    fn gradient<D: Distribution>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<D::Parameters> {
        self.gradient_of_kind(ObjectiveKind::Expectation, noise, q, cost)
    }

    /// As [`gradient`](Self::gradient), for a bound or whatever kind of objective.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate).
    fn gradient_of_kind<D: Distribution>(
        &self,
        kind: ObjectiveKind,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<D::Parameters> {
        let leaf = D::from_law(q.law().leaf());
        let objective = Single::new(&leaf, cost).of_kind(kind);
        let estimate = self.estimate_objective(noise, &objective)?;
        Ok(natural_gradient(&leaf, &estimate))
    }
}

impl<E: Estimator + ?Sized> EstimatorExt for E {}

/// The one way through, whatever the number of layers.
fn run<E: Estimator + ?Sized>(
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

/// The surrogate averages over the batch; its gradient times the batch size is that of each
/// element.
fn natural_gradient<D: Distribution>(leaf: &D, estimate: &Estimate<D>) -> D::Parameters {
    let natural = leaf.law().natural();
    // A cost without any dependence on z or q leaves the surrogate a constant.
    let gradient = estimate
        .surrogate
        .is_tracked()
        .then(|| natural.grad(&estimate.surrogate.backward()))
        .flatten();
    let gradient = match gradient {
        Some(gradient) => gradient * natural.dims()[0] as f64,
        None => natural.inner().zeros_like(),
    };
    D::Parameters::from_canonical(gradient)
}
