//! How estimators are used: `estimate`, `gradient`, and the drop-ins `draw` and `sample`.

use burn::tensor::Tensor;

use super::noise::{Noise, NoiseSource};
use super::objective::{
    Context, CountedObjective, Counts, IntoCost, Objective, ObjectiveKind, Single, Untyped,
};
use super::run::{Estimator, run};
use super::state::Lesson;
use crate::Key;
use crate::distribution::{Distribution, parameters_of, samples_of};
use crate::error::{Error, Result};
use crate::method::drop_ins;
use crate::ops::on_the_side;

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
    /// What [`State::update`](super::State::update) learns from it besides.
    pub lessons: Vec<Lesson>,
}

/// How estimators are used, by any distribution and any cost.
///
/// The trait is implemented for every [`Estimator`], also for a `Box<dyn Estimator>` from
/// [`estimator`](crate::estimator::estimator).
pub trait EstimatorExt: Estimator {
    /// Estimates the mean cost and its gradients. The number of draws `n` is the configuration's.
    ///
    /// The noise comes from a [`Key`], which is the usual case, or is passed in: the tensors that
    /// [`Estimator::noise`] declares, whose number of draws is that of the estimate.
    ///
    /// The cost maps samples `[n, batch, ..]`, of one rank more than the parameters, to `[n, batch]`
    /// or `[n, batch, 1, ..]`, and may fail; see [`IntoCost`]. What else is on the tape, `q` included, is
    /// to be handed in by [`estimate_with`](Self::estimate_with) rather than captured; leaves, such
    /// as the weights of a decoder, may be captured.
    ///
    /// The surrogate is the mean over draws *and batch*, so its gradient is that of one batch
    /// element divided by the size of the batch; [`gradient`](Self::gradient) gives that of each
    /// element.
    ///
    /// # Errors
    ///
    /// If the family is not supported, a parameter is not finite, or the cost fails, has the wrong
    /// shape or is not finite; if given noise is not of the declared shape. If the method needs the
    /// gradient of the cost and the cost is on no tape, because it ignores `z` or is detached from
    /// it: [`NoGradient`](Error::NoGradient). If the cost captures `q` and the method
    /// differentiates it on the side: [`CapturedTape`](Error::CapturedTape).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let estimate = estimator("disarm:samples=4")?.estimate(Key::new(1), &q, |z| {
    ///     (z - 0.3).square().sum_dim(2)
    /// })?;
    /// let grads = estimate.surrogate.backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    fn estimate<D: Distribution, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<Estimate<D>> {
        self.estimate_with(noise, q, (), |z, _: &D, ()| cost(z))
    }

    /// As [`estimate`](Self::estimate), for a cost that also uses the distribution, or tensors of
    /// the tape: the [`Context`].
    ///
    /// Where the estimator differentiates the cost on the side, the cost gets the distribution and
    /// the context as constants; where it evaluates the cost for the surrogate, their gradients
    /// are part of it. So a skip connection works with every method.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let weights = Tensor::<2>::ones([4, 2], &device).require_grad();
    /// let x = Tensor::<2>::ones([3, 4], &device);
    /// let features = x.matmul(weights.clone()).tanh();
    /// let q = Bernoulli::from_logits(features.clone())?;
    /// let muprop = estimator("muprop")?;
    /// let estimate = muprop.estimate_with(Key::new(1), &q, features, |z, q, features| {
    ///     let error = (z.clone() - features.unsqueeze_dim(0)).square().sum_dim(2);
    ///     error.squeeze_dim::<2>(2) + q.log_prob(z)
    /// })?;
    /// let grads = estimate.surrogate.backward();
    /// assert!(weights.grad(&grads).is_some());
    /// # Ok::<(), Error>(())
    /// ```
    fn estimate_with<D: Distribution, C: Context, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        context: C,
        cost: impl Fn(D::Samples, &D, C) -> R,
    ) -> Result<Estimate<D>> {
        self.estimate_objective(noise, &Single::new(q, context, cost))
    }

    /// As [`estimate`](Self::estimate), for the multi-sample bound `-E log (1/n) sum_i
    /// exp(-f(z_i))`: see [`ObjectiveKind::Bound`](crate::objective::ObjectiveKind::Bound). The
    /// value of the surrogate is the mean bound. A bound with a context is a [`Single`].
    ///
    /// # Errors
    ///
    /// As [`estimate`](Self::estimate), and if the estimator is one of expectations.
    fn estimate_bound<D: Distribution, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<Estimate<D>> {
        let single = Single::new(q, (), |z, _: &D, ()| cost(z));
        self.estimate_objective(noise, &single.of_kind(ObjectiveKind::Bound))
    }

    /// As [`estimate`](Self::estimate), for an objective that is more than a closure: a model with
    /// a frozen cost, or with several layers of variables.
    ///
    /// | estimators | rule for several layers |
    /// |---|---|
    /// | pathwise ones | samples of all layers on the tape |
    /// | `reinforce`, `vimco` | the score of all layers together, with the full cost |
    /// | `muprop` | the expansion about a mean-field pass |
    /// | `local-disarm` | each layer's draws replaced by their twins, with fresh draws above |
    /// | `arm`, `disarm`, `arms`, `carms`, `unordered-set`, `double-cv`, `rodeo`, `finite-difference` | one layer after the other: hard samples below, fresh draws above for each evaluation |
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
        Ok(Estimate {
            values: outcome.values,
            surrogate: outcome.surrogate,
            samples: untyped.typed(&outcome.samples),
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
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([3, 2], &Device::flex()))?;
    /// let gradient = estimator("arm")?.gradient(Key::new(1), &q, |z| z.square().sum_dim(2))?;
    /// assert_eq!(gradient.dims(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    fn gradient<D: Distribution, R: IntoCost>(
        &self,
        noise: impl Into<NoiseSource>,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<D::Parameters> {
        self.gradient_of(noise, &Single::new(q, (), |z, _: &D, ()| cost(z)))
    }

    /// As [`gradient`](Self::gradient), for a cost that also uses the distribution, for one with a
    /// context, which is a constant here, or for a bound.
    fn gradient_of<D, C, F, R>(
        &self,
        noise: impl Into<NoiseSource>,
        single: &Single<'_, D, C, F>,
    ) -> Result<D::Parameters>
    where
        D: Distribution,
        C: Context,
        F: Fn(D::Samples, &D, C) -> R,
        R: IntoCost,
    {
        let leaf = D::from_law(single.distribution().law().leaf());
        let estimate = self.estimate_objective(noise, &single.at(&leaf))?;
        on_the_side(|| Ok(natural_gradient(&leaf, &estimate)))
    }

    /// The drop-in: one sample of each variable, of the shape of the parameters and on their tape. An existing model changes the line that samples, and its loss stays as it was.
    ///
    /// The gradient is, bit for bit, that of [`estimate`](Self::estimate) with one draw and the
    /// same key.
    ///
    /// The values are hard, except that a relaxation ([`hard_samples`](Estimator::hard_samples) is
    /// false: `gumbel-softmax`, `exponential-arrival`, `truncated-gumbel` and `relaxed-top-k`) gives relaxed
    /// ones while the parameters are on a tape. On no tape, as in a model after `valid()`, its samples
    /// are those of `q.draw(key)`.
    ///
    /// # Errors
    ///
    /// If the family is not supported or a parameter is not finite; [`NoDropIn`](Error::NoDropIn) if
    /// the method has no samples on the tape, with the names of those that have.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let z = estimator("reinmax")?.draw(Key::new(1), &q)?;
    /// let grads = (z - 0.3).square().mean().backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [3, 2]);
    /// assert!(matches!(estimator("arm")?.draw(Key::new(1), &q), Err(Error::NoDropIn { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    fn draw<D: Distribution>(&self, key: Key, q: &D) -> Result<D::Parameters> {
        let z = attach(self, key, q, 1)?;
        Ok(parameters_of::<D>(q.law(), z.squeeze_dim(0)))
    }

    /// As [`draw`](Self::draw), `n` samples `[n, batch, ..]`.
    fn sample<D: Distribution>(&self, key: Key, q: &D, n: usize) -> Result<D::Samples> {
        Ok(samples_of::<D>(q.law(), attach(self, key, q, n)?))
    }
}

impl<E: Estimator + ?Sized> EstimatorExt for E {}

/// Samples `[n, batch, d, k]` on the tape of the parameters.
fn attach<E: Estimator + ?Sized, D: Distribution>(
    estimator: &E,
    key: Key,
    q: &D,
    n: usize,
) -> Result<Tensor<4>> {
    let law = q.law();
    let Some(pathwise) = estimator.pathwise() else {
        let (entry, family) = (estimator.entry(), law.family().kind());
        // An estimate would not work either.
        entry.need_family(family)?;
        return Err(Error::NoDropIn {
            estimator: entry.id,
            family,
            drop_ins: drop_ins(family),
        });
    };
    pathwise.check(law, n)?;
    if !pathwise.hard_samples() && !law.natural().is_tracked() {
        // Nothing is trained, so there is nothing to soften the samples for.
        return Ok(law.sample(key, n));
    }
    let noise = Noise::draw(key, law, &pathwise.noise(law, n));
    Ok(pathwise.attach(&noise, law, pathwise.loss_reduction()))
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
    parameters_of::<D>(leaf.law(), gradient)
}
