//! The function whose expectation is minimised: what a user states, and what estimators see of it.

mod context;
mod cost;
mod counted;
mod single;

pub use context::Context;
pub use cost::IntoCost;
pub(crate) use counted::{CanonicalObjective, Untyped, check_cost};
pub use counted::{CountedObjective, Counts};
pub use single::Single;

use std::fmt;

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
/// Variables may be stacked in layers `z_0, z_1, …` with laws `q(z_l | z_0, …, z_{l-1})`: an
/// encoder with several stochastic layers, say. A single variable is the case of one layer, and a
/// closure `|z| ..` does for that; see
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
///     fn layer(&self, below: &[Tensor<3>]) -> Result<Bernoulli> {
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
///     fn cost(&self, z: &[Tensor<3>], _q: &[Bernoulli]) -> Result<Tensor<2>> {
///         Ok((z[1].clone() - 0.3).square().sum_dim(2).squeeze_dim(2))
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let device = Device::flex().autodiff();
/// let model = TwoLayers {
///     logits: Tensor::zeros([4, 3], &device).require_grad(),
///     weights: Tensor::ones([3, 2], &device).require_grad(),
/// };
/// let grads = estimator("arm")?.estimate_objective(Key::new(1), &model)?.surrogate.backward();
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

    /// The same distribution with the model's own parameters as constants, for layers that are drawn
    /// again on the side: what is made of them there needs no gradient of the model, and a backward
    /// pass on the side should not walk through it. By default it does, and with `rebar` and
    /// `relax:control=sum` burn then keeps something of each pass, so that steps become slower and
    /// slower.
    ///
    /// # Errors
    ///
    /// As [`layer`](Self::layer).
    fn frozen_layer(&self, below: &[D::Samples]) -> Result<D> {
        self.layer(below)
    }

    /// The cost `[n, batch]` of samples of all layers, each `[n, batch, ..]`, with the distributions
    /// that they were drawn from.
    /// [`layers_log_prob`](crate::estimator::layers_log_prob) is `log q(z)`.
    ///
    /// The number of draws is not always the one that was asked for: an estimator may evaluate
    /// several points in one call. The cost of one draw must not depend on another.
    ///
    /// `q` is an argument because an estimator may have to pass a constant one: a `q` that the
    /// objective holds itself would join two tapes, and burn would panic.
    ///
    /// # Errors
    ///
    /// Those of the model; they end the estimate.
    fn cost(&self, z: &[D::Samples], q: &[D]) -> Result<Tensor<2>>;

    /// What is made of the costs of several draws.
    fn kind(&self) -> ObjectiveKind {
        ObjectiveKind::Expectation
    }

    /// The same cost with the model's own parameters as constants, for gradients with respect to
    /// `z` that are needed on the side and should not pay for the decoder's. A tensor of the tape
    /// that the objective holds, such as features of an encoder, has to be a constant here.
    ///
    /// # Errors
    ///
    /// As [`cost`](Self::cost).
    fn frozen_cost(&self, z: &[D::Samples], q: &[D]) -> Result<Tensor<2>> {
        self.cost(z, q)
    }
}
