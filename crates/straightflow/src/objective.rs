//! The function whose expectation is minimised, and the count of its evaluations.

use std::fmt::{self, Debug};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::tensor::Tensor;
use serde::Serialize;

use crate::distribution::{Canonical, Distribution, Law};
use crate::error::{Error, Result};
use crate::ops::{Rule, custom_grad, first_non_finite, leaf_like};

/// What is made of the costs of several draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectiveKind {
    /// Their expectation, `E f(z)`.
    #[default]
    Expectation,
    /// The multi-sample bound `-E log (1/n) sum_i exp(-f(z_i))`, where the cost of a draw is its
    /// negative log-weight, `f(z) = log q(z) - log p(x, z)`. With one draw it is the expectation.
    Bound,
}

impl fmt::Display for ObjectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expectation => "the expectation of a cost",
            Self::Bound => "a bound over negative log-weights",
        })
    }
}

/// A cost of samples, as a model states it when a closure is not enough.
///
/// A closure `|z, q| ..` is the common case and needs no implementation of this trait; see
/// [`EstimatorExt::estimate`](crate::estimator::EstimatorExt::estimate).
pub trait Objective<D: Distribution> {
    /// The cost of each draw and batch element: samples `[n, batch, d]` (categorical:
    /// `[n, batch, d, k]`) of `q` to `[n, batch]`.
    ///
    /// The number of draws is not always the one that was asked for: an estimator may evaluate
    /// several points in one call. The cost of one draw must not depend on another.
    ///
    /// `q` is an argument because an estimator may have to pass a constant one: a `q` that the
    /// objective holds itself would join two tapes, and burn would panic.
    fn cost(&self, z: D::Samples, q: &D) -> Tensor<2>;

    /// What is made of the costs of several draws.
    fn kind(&self) -> ObjectiveKind {
        ObjectiveKind::Expectation
    }

    /// The same cost with the model's own parameters as constants, for gradients with respect to
    /// `z` that are needed on the side and should not pay for the decoder's.
    fn frozen_cost(&self, z: D::Samples, q: &D) -> Tensor<2> {
        self.cost(z, q)
    }
}

/// A closure as an [`Objective`].
#[derive(Clone, Copy)]
pub(crate) struct CostFn<F>(pub F);

impl<D, F> Objective<D> for CostFn<F>
where
    D: Distribution,
    F: Fn(D::Samples, &D) -> Tensor<2>,
{
    fn cost(&self, z: D::Samples, q: &D) -> Tensor<2> {
        (self.0)(z, q)
    }
}

/// A closure as a multi-sample bound.
#[derive(Clone, Copy)]
pub(crate) struct BoundFn<F>(pub F);

impl<D, F> Objective<D> for BoundFn<F>
where
    D: Distribution,
    F: Fn(D::Samples, &D) -> Tensor<2>,
{
    fn cost(&self, z: D::Samples, q: &D) -> Tensor<2> {
        (self.0)(z, q)
    }

    fn kind(&self) -> ObjectiveKind {
        ObjectiveKind::Bound
    }
}

/// How often the cost was evaluated, in draws: an evaluation of `n` draws counts `n`.
///
/// The counts are live: the backward pass of a surrogate adds to them.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    evaluations: Arc<AtomicUsize>,
    gradients: Arc<AtomicUsize>,
}

impl Counts {
    /// Evaluations of the cost.
    pub fn evaluations(&self) -> usize {
        self.evaluations.load(Ordering::Relaxed)
    }

    /// Backward passes through the cost, to the samples or to the model's parameters.
    pub fn gradients(&self) -> usize {
        self.gradients.load(Ordering::Relaxed)
    }

    /// Lets a cost `[n, batch]` of `draws` draws through that has the expected shape and is finite,
    /// and counts it and its backward pass.
    pub(crate) fn watch(
        &self,
        cost: Tensor<2>,
        expected: [usize; 2],
        draws: usize,
    ) -> Result<Tensor<2>> {
        self.evaluations.fetch_add(draws, Ordering::Relaxed);
        let cost = check_cost(cost, expected)?;
        let probe = Probe {
            gradients: self.gradients.clone(),
            draws,
        };
        Ok(custom_grad(cost.clone(), cost.inner(), Arc::new(probe)))
    }
}

/// An objective in canonical shapes, as estimators see it: checked and counted.
pub struct CountedObjective<'a> {
    objective: &'a dyn CanonicalObjective,
    counts: Counts,
    /// How many draws of the estimate each batch element of the law stands for.
    draws_per_element: usize,
}

impl Debug for CountedObjective<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountedObjective")
            .field(&self.counts)
            .finish()
    }
}

impl<'a> CountedObjective<'a> {
    pub(crate) fn new(objective: &'a dyn CanonicalObjective) -> Self {
        Self::sharing(objective, Counts::default(), 1)
    }

    /// An objective that adds to the counts of another.
    pub(crate) fn sharing(
        objective: &'a dyn CanonicalObjective,
        counts: Counts,
        draws_per_element: usize,
    ) -> Self {
        Self {
            objective,
            counts,
            draws_per_element,
        }
    }

    /// What is made of the costs of several draws.
    pub fn kind(&self) -> ObjectiveKind {
        self.objective.kind()
    }

    /// The counts so far, and from now on.
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// The cost `[n, batch]` of samples `[n, batch, d, k]`, on the tapes of the samples, of `law`
    /// and of the model.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape or is not finite.
    pub fn evaluate(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>> {
        self.checked(z, law, |z| self.objective.cost(z, law))
    }

    /// The cost `[n, batch]` of constant samples as a constant: the model's own parameters are left
    /// out.
    ///
    /// # Errors
    ///
    /// As [`evaluate`](Self::evaluate).
    pub fn value(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>> {
        let law = law.constant();
        let cost = self.checked(z, &law, |z| self.objective.frozen_cost(z, &law))?;
        Ok(cost.inner())
    }

    /// The cost `[n, batch]` and its gradient `[n, batch, d, k]` at constant samples, both as
    /// constants.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape, is not finite or does not depend on the samples.
    pub fn value_and_gradient(&self, z: Tensor<4>, law: &Law) -> Result<(Tensor<2>, Tensor<4>)> {
        let leaf = leaf_like(z, &law.natural());
        let law = law.constant();
        let cost = self.checked(leaf.clone(), &law, |z| self.objective.frozen_cost(z, &law))?;
        if !cost.is_tracked() {
            return Err(Error::NoGradient);
        }
        // The sum keeps draws and batch elements apart.
        let gradient = leaf.grad(&cost.clone().sum().backward());
        Ok((cost.inner(), gradient.ok_or(Error::NoGradient)?))
    }

    fn checked(
        &self,
        z: Tensor<4>,
        law: &Law,
        cost: impl FnOnce(Tensor<4>) -> Result<Tensor<2>>,
    ) -> Result<Tensor<2>> {
        let expected = [z.dims()[0], law.dims()[0]];
        let draws = expected[0] * self.draws_per_element;
        self.counts.watch(cost(z)?, expected, draws)
    }
}

/// Lets a cost through that has the shape `[n, batch]` and is finite.
pub(crate) fn check_cost(cost: Tensor<2>, expected: [usize; 2]) -> Result<Tensor<2>> {
    if cost.dims() != expected {
        return Err(Error::CostShape {
            expected,
            got: cost.dims(),
        });
    }
    if let Some((index, value)) = first_non_finite(&cost) {
        return Err(Error::NonFiniteCost {
            draw: index / expected[1],
            element: index % expected[1],
            value,
        });
    }
    Ok(cost)
}

/// An identity whose backward pass counts.
#[derive(Debug)]
struct Probe {
    gradients: Arc<AtomicUsize>,
    draws: usize,
}

impl Rule<2, 2> for Probe {
    fn backward(&self, _parent: Tensor<2>, _output: Tensor<2>, grad: Tensor<2>) -> Tensor<2> {
        self.gradients.fetch_add(self.draws, Ordering::Relaxed);
        grad
    }
}

/// [`Objective`] without the type of the distribution.
pub(crate) trait CanonicalObjective {
    fn kind(&self) -> ObjectiveKind;
    fn cost(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>>;
    fn frozen_cost(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>>;
}

/// The bridge from the typed to the canonical form.
pub(crate) struct Untyped<'a, D, O> {
    objective: &'a O,
    distribution: PhantomData<D>,
}

impl<'a, D, O> Untyped<'a, D, O> {
    pub(crate) fn new(objective: &'a O) -> Self {
        Self {
            objective,
            distribution: PhantomData,
        }
    }
}

impl<D: Distribution, O: Objective<D>> CanonicalObjective for Untyped<'_, D, O> {
    fn kind(&self) -> ObjectiveKind {
        self.objective.kind()
    }

    fn cost(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>> {
        let q = D::from_law(law.clone());
        Ok(self.objective.cost(D::Samples::from_canonical(z), &q))
    }

    fn frozen_cost(&self, z: Tensor<4>, law: &Law) -> Result<Tensor<2>> {
        let q = D::from_law(law.clone());
        let z = D::Samples::from_canonical(z);
        Ok(self.objective.frozen_cost(z, &q))
    }
}
