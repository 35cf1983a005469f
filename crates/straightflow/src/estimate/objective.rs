//! The function whose expectation is minimised: what a user states, and what estimators see of it.

mod counted;

pub(crate) use counted::{CanonicalObjective, Untyped, check_cost};
pub use counted::{CountedObjective, Counts};

use std::fmt::{self, Debug};

use burn::tensor::Tensor;
use serde::Serialize;

use crate::distribution::Distribution;
use crate::error::Result;

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

/// A cost of random variables, and the distributions that they are drawn from.
///
/// Variables may be stacked in layers $z_0, z_1, \dots$ with laws $q(z_l | z_0, \dots, z_{l-1})$:
/// an encoder with several stochastic layers, say. A single variable is the case of one layer, and
/// a closure `|z, q| ..` does for that; see
/// [`EstimatorExt::estimate`](crate::estimator::EstimatorExt::estimate) and [`Single`].
///
/// All layers are of one type `D`. Layers of different families are [`Law`]s, the canonical form,
/// whose samples are `[n, batch, d, k]`.
///
/// [`Law`]: crate::distribution::Law
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// /// Two layers of bits; the logits of the second are a linear function of the first.
/// struct TwoLayers {
///     logits: Tensor<2>,  // [batch, 3]
///     weights: Tensor<2>, // [3, 2]
/// }
///
/// impl Objective<Bernoulli> for TwoLayers {
///     fn layers(&self) -> usize {
///         2
///     }
///
///     fn layer(&self, below: &[Tensor<3>]) -> straightflow::Result<Bernoulli> {
///         match below {
///             [] => Bernoulli::from_logits(self.logits.clone()),
///             // [n, batch, 3] -> [n batch, 2]
///             [z, ..] => {
///                 let rows: Tensor<2> = z.clone().flatten(0, 1);
///                 Bernoulli::from_logits(rows.matmul(self.weights.clone()))
///             }
///         }
///     }
///
///     fn cost(&self, z: &[Tensor<3>], _q: &[Bernoulli]) -> Tensor<2> {
///         (z[1].clone() - 0.3).square().sum_dim(2).squeeze_dim(2)
///     }
/// }
///
/// # fn main() -> straightflow::Result<()> {
/// let device = Device::flex().autodiff();
/// let model = TwoLayers {
///     logits: Tensor::zeros([4, 3], &device).require_grad(),
///     weights: Tensor::ones([3, 2], &device).require_grad(),
/// };
/// let estimator = "arm".parse::<Spec>()?.build()?;
/// let grads = estimator.estimate_objective(Key::new(1), &model)?.surrogate.backward();
/// assert!(model.logits.grad(&grads).is_some() && model.weights.grad(&grads).is_some());
/// # Ok(())
/// # }
/// ```
pub trait Objective<D: Distribution> {
    /// The number of layers.
    fn layers(&self) -> usize {
        1
    }

    /// The distribution of layer `below.len()` given samples `[n, batch, ..]` of all layers below.
    ///
    /// The lowest layer has parameters `[batch, ..]`, every other one `[n batch, ..]`, draw by
    /// draw: `z.flatten(0, 1)` gives its rows. Samples may be relaxed ones and on a tape. With
    /// several layers the result is to be computed anew from the model's parameters in each call: a
    /// tensor of the tape that the objective keeps would be consumed by the first backward pass.
    /// For `rebar` and `relax:control=sum` it has to be continuous in the samples.
    ///
    /// # Errors
    ///
    /// Those of the distribution's constructor.
    fn layer(&self, below: &[D::Samples]) -> Result<D>;

    /// The cost `[n, batch]` of samples of all layers, each `[n, batch, d]` (categorical:
    /// `[n, batch, d, k]`), with the distributions that they were drawn from.
    /// [`layers_log_prob`](crate::estimator::layers_log_prob) is $\log q(z)$.
    ///
    /// The number of draws is not always the one that was asked for: an estimator may evaluate
    /// several points in one call. The cost of one draw must not depend on another.
    ///
    /// `q` is an argument because an estimator may have to pass a constant one: a `q` that the
    /// objective holds itself would join two tapes, and burn would panic.
    fn cost(&self, z: &[D::Samples], q: &[D]) -> Tensor<2>;

    /// What is made of the costs of several draws.
    fn kind(&self) -> ObjectiveKind {
        ObjectiveKind::Expectation
    }

    /// The same cost with the model's own parameters as constants, for gradients with respect to
    /// `z` that are needed on the side and should not pay for the decoder's.
    fn frozen_cost(&self, z: &[D::Samples], q: &[D]) -> Tensor<2> {
        self.cost(z, q)
    }
}

/// One variable and a closure: the objective of one layer.
#[derive(Clone, Copy, Debug)]
pub struct Single<'a, D, F> {
    q: &'a D,
    cost: F,
    kind: ObjectiveKind,
}

impl<'a, D, F> Single<'a, D, F>
where
    D: Distribution,
    F: Fn(D::Samples, &D) -> Tensor<2>,
{
    /// The expectation of the cost of samples of `q`.
    pub fn new(q: &'a D, cost: F) -> Self {
        Self {
            q,
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
}

impl<D, F> Objective<D> for Single<'_, D, F>
where
    D: Distribution,
    F: Fn(D::Samples, &D) -> Tensor<2>,
{
    fn layer(&self, _below: &[D::Samples]) -> Result<D> {
        Ok(self.q.clone())
    }

    fn cost(&self, z: &[D::Samples], q: &[D]) -> Tensor<2> {
        (self.cost)(z[0].clone(), &q[0])
    }

    fn kind(&self) -> ObjectiveKind {
        self.kind
    }
}
