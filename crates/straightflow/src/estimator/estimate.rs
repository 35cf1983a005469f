//! From a cost to one scalar, the *surrogate*, whose single `backward()` gives the gradients of
//! the parameters (through the discrete samples) and of everything else that the cost uses.

use std::fmt::Debug;

use burn::tensor::{Device, Tensor};

use super::chain::{
    self, Chain, ChainEstimate, ChainNoise, CountedChain, Stacking, layerwise, on_tape,
};
use super::noise::{Noise, NoiseSpec};
use super::pathwise::Pathwise;
use super::registry::{Entry, Price};
use super::spec::Spec;
use super::state::{Lesson, State, StateShape};
use super::temperature::Temperature;
use crate::Key;
use crate::distribution::{Canonical, Distribution, Law};
use crate::error::{Error, Result};
use crate::objective::{
    BoundFn, CostFn, CountedObjective, Counts, Objective, ObjectiveKind, Untyped,
};
use crate::ops::gradient_only;

/// What an estimator implements. Users call the methods of [`EstimatorExt`].
pub trait Estimator: Debug + Send + Sync {
    /// The entry in the registry.
    fn entry(&self) -> &'static Entry;

    /// The configuration as it is recorded.
    fn config(&self) -> serde_json::Value;

    /// The number of draws of one estimate, or of the antithetic pairs if it takes those.
    fn samples(&self) -> usize;

    /// The noise of an estimate with `n` draws. The first tensor is `n` long in its first dimension.
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec>;

    /// What an estimate with `n` draws costs, in evaluations of the cost.
    fn price(&self, law: &Law, n: usize) -> Price;

    /// The estimate for given noise.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape or is not finite.
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome>;

    /// Whether what the surrogate differentiates is the cost at hard samples only. Then the direct
    /// dependence of a cost on the parameters through `log q(z)` has an expected gradient of zero and
    /// may be dropped; at relaxed samples, and in a bound, it has not.
    fn hard_samples(&self) -> bool {
        true
    }

    /// The same estimator as a source of samples on the tape, if it is one.
    fn pathwise(&self) -> Option<&dyn Pathwise> {
        None
    }

    /// New state for the estimator, with weights from the key; `None` if it has none.
    ///
    /// The state belongs to the user: it is optimised beside the model, by an optimiser of its
    /// own, saved with the model's record, and given to each estimate by [`bind`](Self::bind).
    /// `device` is that of the model's parameters: an autodiff device if the state is to be
    /// trained, with the same strategy of gradient checkpointing.
    fn init_state(&self, _key: Key, _shape: StateShape, _device: &Device) -> Option<State> {
        None
    }

    /// The same estimator with its state and a conditioning input `[batch, features]` attached.
    ///
    /// The input is what the state may look at besides the samples, such as the observation that
    /// the encoder sees. It is taken as a constant.
    ///
    /// # Errors
    ///
    /// If the estimator has no state of its own, or a part of the state is missing.
    fn bind(&self, state: &State, input: Option<Tensor<2>>) -> Result<Box<dyn Estimator>> {
        self.bind_layers(std::slice::from_ref(state), input)
    }

    /// As [`bind`](Self::bind), with the states of all layers of a [`Chain`](super::Chain), from
    /// the lowest up. This is the method that an estimator with state implements.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    fn bind_layers(
        &self,
        _states: &[State],
        _input: Option<Tensor<2>>,
    ) -> Result<Box<dyn Estimator>> {
        Err(Error::NoState {
            estimator: self.entry().id,
        })
    }

    /// How the estimator treats the layers of a [`Chain`](super::Chain).
    fn stacking(&self) -> Stacking<'_> {
        match self.pathwise() {
            Some(pathwise) => Stacking::Tape(pathwise),
            None => Stacking::Unsupported,
        }
    }

    /// The same estimator with the state of one layer of a [`Chain`](super::Chain) only, if its
    /// layers have states.
    fn at_layer(&self, _layer: usize) -> Option<Box<dyn Estimator>> {
        None
    }

    /// The estimator of a training step: the same, with a scheduled temperature advanced to that
    /// step. State is bound afterwards.
    ///
    /// # Errors
    ///
    /// None for an estimator that was built from a valid configuration.
    fn at_step(&self, step: u64) -> Result<Box<dyn Estimator>> {
        let mut config = self.config();
        let scheduled = config.get("temperature").and_then(|text| text.as_str());
        if let Some(temperature) = scheduled.and_then(|text| text.parse::<Temperature>().ok()) {
            config["temperature"] = temperature.at(step).to_string().into();
        }
        self.entry().build(config)
    }

    /// The specification that builds this estimator again.
    fn spec(&self) -> Spec {
        self.entry().spec_of(&self.config())
    }

    /// The least number of draws of one estimate.
    fn least_samples(&self) -> usize {
        1
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
    /// The samples `[n, batch, d, k]` at which the cost was evaluated, on no tape.
    pub samples: Tensor<4>,
    /// What the estimate teaches the state, if that learns from more than gradients and costs.
    pub lesson: Option<Lesson>,
}

impl Outcome {
    /// The outcome of costs `[n, batch]` at samples, both on their tapes, and of a scalar whose
    /// gradient is added to that of the mean cost. The scalar's own value does not matter.
    pub fn new(cost: Tensor<2>, gradient: Tensor<1>, samples: Tensor<4>) -> Self {
        Self {
            values: cost.clone().inner(),
            surrogate: cost.mean() + gradient_only(gradient),
            samples: samples.inner(),
            lesson: None,
        }
    }
}

/// An estimate of `E f(z)` and of its gradients.
#[derive(Clone, Debug)]
pub struct Estimate<D: Distribution> {
    /// The cost of each draw and batch element, `[n, batch]`, as constants.
    pub values: Tensor<2>,
    /// A scalar: the mean cost over draws and batch, or the mean bound. Its one `backward()` gives
    /// the gradients of the distribution's parameters, of the cost's own, and of bound state.
    pub surrogate: Tensor<1>,
    /// The samples at which the cost was evaluated, as constants.
    pub samples: D::Samples,
    /// How often the cost was evaluated and differentiated, live.
    pub counts: Counts,
    /// What [`State::update`] learns from it besides.
    pub lesson: Option<Lesson>,
}

/// How estimators are used, by any distribution and any cost.
///
/// The trait is implemented for every [`Estimator`], also for a `Box<dyn Estimator>` from the
/// registry.
pub trait EstimatorExt: Estimator {
    /// Estimates the mean cost and its gradients. The number of draws `n` is the configuration's.
    ///
    /// The cost maps samples `[n, batch, d]` (categorical: `[n, batch, d, k]`) and `q` to
    /// `[n, batch]`. It must not capture `q` itself: see [`Objective::cost`]. The surrogate is the
    /// mean over draws *and batch*, so its gradient is that of one batch element divided by the size
    /// of the batch; [`gradient`](Self::gradient) gives that of each element.
    ///
    /// # Errors
    ///
    /// If the family is not supported, a parameter is not finite, or the cost has the wrong shape
    /// or is not finite.
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
        key: Key,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<Estimate<D>> {
        self.estimate_objective(key, q, &CostFn(cost))
    }

    /// As [`estimate`](Self::estimate), for the multi-sample bound
    /// `-E log (1/n) sum_i exp(-f(z_i))`: see
    /// [`ObjectiveKind::Bound`](crate::objective::ObjectiveKind::Bound). The value of the surrogate is
    /// the mean bound.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate), and if the estimator is one of expectations.
    fn estimate_bound<D: Distribution>(
        &self,
        key: Key,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<Estimate<D>> {
        self.estimate_objective(key, q, &BoundFn(cost))
    }

    /// As [`estimate`](Self::estimate), for a cost that is more than a closure.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate).
    fn estimate_objective<D: Distribution>(
        &self,
        key: Key,
        q: &D,
        objective: &impl Objective<D>,
    ) -> Result<Estimate<D>> {
        self.check(q.law(), self.samples())?;
        let specs = self.noise(q.law(), self.samples());
        run(self, &Noise::draw(key, q.law(), &specs), q, objective)
    }

    /// As [`estimate`](Self::estimate), with the noise that [`Estimator::noise`] declares passed
    /// in. The number of draws is that of the noise.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate), and if the noise is not of the declared shape.
    fn estimate_from_noise<D: Distribution>(
        &self,
        noise: Vec<Tensor<4>>,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<Estimate<D>> {
        self.estimate_objective_from_noise(noise, q, &CostFn(cost))
    }

    /// As [`estimate_from_noise`](Self::estimate_from_noise), for a cost that is more than a
    /// closure.
    ///
    /// # Errors
    ///
    /// As [`estimate_from_noise`](Self::estimate_from_noise).
    fn estimate_objective_from_noise<D: Distribution>(
        &self,
        noise: Vec<Tensor<4>>,
        q: &D,
        objective: &impl Objective<D>,
    ) -> Result<Estimate<D>> {
        let n = match noise.first() {
            Some(first) => first.dims()[0],
            None => self.samples(),
        };
        self.check(q.law(), n)?;
        let noise = Noise::given(noise, &self.noise(q.law(), n))?;
        run(self, &noise, q, objective)
    }

    /// Estimates the mean cost of a [`Chain`] of stacked variables and its gradients.
    ///
    /// | estimators | rule |
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
    /// [`UnsupportedChain`](Error::UnsupportedChain) if the estimator has no rule for chains, and as
    /// [`estimate`](Self::estimate).
    fn estimate_chain<D: Distribution>(
        &self,
        key: Key,
        chain: &impl Chain<D>,
    ) -> Result<ChainEstimate<D>> {
        run_chain(self, &ChainNoise::new(key), chain)
    }

    /// As [`estimate_chain`](Self::estimate_chain), with the noise passed in: one piece after the
    /// other, as the estimator asks for it.
    ///
    /// # Errors
    ///
    /// As [`estimate_chain`](Self::estimate_chain), and if the noise is not what is asked for.
    fn estimate_chain_from_noise<D: Distribution>(
        &self,
        noise: Vec<Vec<Tensor<4>>>,
        chain: &impl Chain<D>,
    ) -> Result<ChainEstimate<D>> {
        run_chain(self, &ChainNoise::given(noise), chain)
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
        key: Key,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<D::Parameters> {
        self.gradient_objective(key, q, &CostFn(cost))
    }

    /// As [`gradient`](Self::gradient), for a cost that is more than a closure, such as a bound.
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate).
    fn gradient_objective<D: Distribution>(
        &self,
        key: Key,
        q: &D,
        objective: &impl Objective<D>,
    ) -> Result<D::Parameters> {
        let leaf = D::from_law(q.law().leaf());
        let estimate = self.estimate_objective(key, &leaf, objective)?;
        Ok(natural_gradient(&leaf, &estimate))
    }

    /// As [`gradient`](Self::gradient), with the noise passed in.
    ///
    /// # Errors
    ///
    /// As [`estimate_from_noise`](Self::estimate_from_noise).
    fn gradient_from_noise<D: Distribution>(
        &self,
        noise: Vec<Tensor<4>>,
        q: &D,
        cost: impl Fn(D::Samples, &D) -> Tensor<2>,
    ) -> Result<D::Parameters> {
        self.gradient_objective_from_noise(noise, q, &CostFn(cost))
    }

    /// As [`gradient_objective`](Self::gradient_objective), with the noise passed in.
    ///
    /// # Errors
    ///
    /// As [`estimate_from_noise`](Self::estimate_from_noise).
    fn gradient_objective_from_noise<D: Distribution>(
        &self,
        noise: Vec<Tensor<4>>,
        q: &D,
        objective: &impl Objective<D>,
    ) -> Result<D::Parameters> {
        let leaf = D::from_law(q.law().leaf());
        let estimate = self.estimate_objective_from_noise(noise, &leaf, objective)?;
        Ok(natural_gradient(&leaf, &estimate))
    }
}

impl<E: Estimator + ?Sized> EstimatorExt for E {}

fn check_kind(entry: &Entry, got: ObjectiveKind) -> Result<()> {
    if got != entry.objective {
        return Err(Error::UnsupportedObjective {
            estimator: entry.id,
            expected: entry.objective,
            got,
        });
    }
    Ok(())
}

fn run_chain<E: Estimator + ?Sized, D: Distribution>(
    estimator: &E,
    noise: &ChainNoise,
    chain: &impl Chain<D>,
) -> Result<ChainEstimate<D>> {
    let chain = chain::Untyped::new(chain);
    let chain = CountedChain::new(&chain)?;
    let entry = estimator.entry();
    check_kind(entry, chain.kind())?;
    let outcome = match estimator.stacking() {
        Stacking::Tape(pathwise) => on_tape(pathwise, noise, &chain)?,
        Stacking::Layerwise => layerwise(estimator, noise, &chain)?,
        Stacking::Own(stacked) => stacked.chain_outcome(noise, &chain)?,
        Stacking::Unsupported => {
            return Err(Error::UnsupportedChain {
                estimator: entry.id,
                because: "",
            });
        }
    };
    let samples = outcome.samples.into_iter();
    Ok(ChainEstimate {
        values: outcome.values,
        surrogate: outcome.surrogate,
        samples: samples.map(D::Samples::from_canonical).collect(),
        counts: chain.counts(),
        lessons: outcome.lessons,
    })
}

fn run<E: Estimator + ?Sized, D: Distribution>(
    estimator: &E,
    noise: &Noise,
    q: &D,
    objective: &impl Objective<D>,
) -> Result<Estimate<D>> {
    let objective = Untyped::new(objective);
    let objective = CountedObjective::new(&objective);
    check_kind(estimator.entry(), objective.kind())?;
    let outcome = estimator.outcome(noise, q.law(), &objective)?;
    Ok(Estimate {
        values: outcome.values,
        surrogate: outcome.surrogate,
        samples: D::Samples::from_canonical(outcome.samples),
        counts: objective.counts(),
        lesson: outcome.lesson,
    })
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
