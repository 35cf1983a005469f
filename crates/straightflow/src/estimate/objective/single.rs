//! One variable and a closure.

use burn::tensor::Tensor;

use super::{Context, IntoCost, Objective, ObjectiveKind};
use crate::distribution::{Canonical, Distribution};
use crate::error::Result;

/// One variable, a context and a closure: the objective of one layer.
///
/// The closures `|z| ..` of [`estimate`](crate::estimator::EstimatorExt::estimate) and its sisters
/// are short for one. It is for costs that also use the distribution or a [`Context`], where those
/// short forms have no room: in bounds, in gradients, and in [`Exact`](crate::exact::Exact).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let q = Bernoulli::from_logits(Tensor::<2>::zeros([3, 2], &Device::flex()))?;
/// let x = Tensor::<2>::ones([3, 2], &Device::flex());
/// let weight = Single::new(&q, x, |z, q, x| {
///     q.log_prob(z.clone()) + (z - x.unsqueeze_dim(0)).square().sum_dim(2).squeeze_dim(2)
/// });
/// let bound = weight.of_kind(ObjectiveKind::Bound);
/// let gradient = estimator("vimco:samples=4")?.gradient_of(Key::new(1), &bound)?;
/// assert_eq!(gradient.dims(), [3, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Single<'a, D, C, F> {
    q: &'a D,
    context: C,
    cost: F,
    kind: ObjectiveKind,
}

impl<'a, D, C, F, R> Single<'a, D, C, F>
where
    D: Distribution,
    C: Context,
    F: Fn(D::Samples, &D, C) -> R,
    R: IntoCost,
{
    /// The expectation of a cost of samples of `q`.
    ///
    /// The cost maps samples `[n, batch, ..]`, of one rank more than the parameters, the
    /// distribution and the context to `[n, batch]`; see [`IntoCost`].
    pub fn new(q: &'a D, context: C, cost: F) -> Self {
        Self {
            q,
            context,
            cost,
            kind: ObjectiveKind::Expectation,
        }
    }

    /// The same cost for another kind of objective.
    #[must_use]
    pub fn of_kind(mut self, kind: ObjectiveKind) -> Self {
        self.kind = kind;
        self
    }

    /// The distribution.
    pub fn distribution(&self) -> &'a D {
        self.q
    }

    /// The same cost of samples of another distribution, with a constant context.
    pub(crate) fn at<'b>(
        &'b self,
        q: &'b D,
    ) -> Single<'b, D, C, impl Fn(D::Samples, &D, C) -> R + 'b> {
        Single {
            q,
            context: self.context.as_constant(),
            cost: &self.cost,
            kind: self.kind,
        }
    }

    /// The cost `[n, batch]` of samples of a distribution.
    fn evaluate(&self, z: D::Samples, q: &D, context: C) -> Result<Tensor<2>> {
        let sizes = z.sizes();
        (self.cost)(z, q, context).into_cost([sizes[0], sizes[1]])
    }
}

impl<D, C, F, R> Objective<D> for Single<'_, D, C, F>
where
    D: Distribution,
    C: Context,
    F: Fn(D::Samples, &D, C) -> R,
    R: IntoCost,
{
    fn layer(&self, _below: &[D::Samples]) -> Result<D> {
        Ok(self.q.clone())
    }

    fn cost(&self, z: &[D::Samples], q: &[D]) -> Result<Tensor<2>> {
        self.evaluate(z[0].clone(), &q[0], self.context.clone())
    }

    fn kind(&self) -> ObjectiveKind {
        self.kind
    }

    fn frozen_cost(&self, z: &[D::Samples], q: &[D]) -> Result<Tensor<2>> {
        self.evaluate(z[0].clone(), &q[0], self.context.as_constant())
    }
}
