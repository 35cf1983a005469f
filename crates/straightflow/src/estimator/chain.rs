//! Stacked variables: each layer's distribution depends on the samples of the layers below.

mod conditional;
mod counted;
mod rules;

pub(super) use conditional::Conditional;
pub(super) use counted::Untyped;
pub use counted::{ChainNoise, CountedChain, Pass};
pub(super) use rules::{layerwise, on_tape};

use burn::tensor::Tensor;

use super::estimate::Estimator;
use super::pathwise::Pathwise;
use super::state::Lesson;
use crate::distribution::{Canonical, Distribution, Law};
use crate::error::Result;
use crate::objective::{Counts, ObjectiveKind};

/// A chain of variables $z_0, z_1, \dots$ with laws $q(z_l | z_0, \dots, z_{l-1})$ and a cost of all of
/// them.
///
/// All layers are of one type `D`. Layers of different families are chains of [`Law`]s, the canonical
/// form, whose samples are `[n, batch, d, k]`.
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
/// impl Chain<Bernoulli> for TwoLayers {
///     fn layers(&self) -> usize {
///         2
///     }
///
///     fn layer(&self, below: &[Tensor<3>]) -> straightflow::Result<Bernoulli> {
///         match below {
///             [] => Bernoulli::from_logits(self.logits.clone()),
///             // [n, batch, 3] -> [n batch, 2]
///             [z, ..] => Bernoulli::from_logits(z.clone().flatten(0, 1).matmul(self.weights.clone())),
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
/// let chain = TwoLayers {
///     logits: Tensor::zeros([4, 3], &device).require_grad(),
///     weights: Tensor::ones([3, 2], &device).require_grad(),
/// };
/// let estimator = "arm".parse::<Spec>()?.build()?;
/// let grads = estimator.estimate_chain(Key::new(1), &chain)?.surrogate.backward();
/// assert!(chain.logits.grad(&grads).is_some() && chain.weights.grad(&grads).is_some());
/// # Ok(())
/// # }
/// ```
pub trait Chain<D: Distribution> {
    /// The number of layers.
    fn layers(&self) -> usize;

    /// The distribution of layer `below.len()` given samples `[n, batch, ..]` of all layers below.
    ///
    /// The lowest layer has parameters `[batch, ..]`, every other one `[n batch, ..]`, draw by draw:
    /// `z.flatten(0, 1)` gives its rows. Samples may be relaxed ones and on a tape. The result is to
    /// be computed anew from the model's parameters in each call: a tensor of the tape that the chain
    /// keeps would be consumed by the first backward pass. For `rebar` and `relax:control=sum` it has to
    /// be continuous in the samples.
    ///
    /// # Errors
    ///
    /// Those of the distribution's constructor.
    fn layer(&self, below: &[D::Samples]) -> Result<D>;

    /// The cost `[n, batch]` of samples `[n, batch, ..]` of all layers, with the distributions that
    /// they were drawn from, as [`layer`](Self::layer) made them. [`chain_log_prob`] is $\log q(z)$. As
    /// there, nothing of the tape may be kept from call to call, and the number of draws is not always
    /// the one that was asked for.
    fn cost(&self, z: &[D::Samples], q: &[D]) -> Tensor<2>;

    /// What is made of the costs of several draws.
    fn kind(&self) -> ObjectiveKind {
        ObjectiveKind::Expectation
    }

    /// As [`Objective::frozen_cost`](crate::objective::Objective::frozen_cost).
    fn frozen_cost(&self, z: &[D::Samples], q: &[D]) -> Tensor<2> {
        self.cost(z, q)
    }
}

/// `log q(z)` of all layers together, `[n, batch]`, for samples `[n, batch, ..]` of each.
///
/// # Panics
///
/// If the shapes do not fit.
pub fn chain_log_prob<D: Distribution>(q: &[D], z: &[D::Samples]) -> Tensor<2> {
    let each = q.iter().zip(z).map(|(q, z)| {
        let z = z.clone().into_canonical();
        let [n, batch, ..] = z.dims();
        layer_log_prob(q.law(), z).reshape([n, batch])
    });
    each.reduce(|sum, term| sum + term)
        .expect("a chain has at least one layer")
}

/// `log q(z)` of one layer for samples `[n, batch, d, k]`, in the shape of its law's rows.
fn layer_log_prob(law: &Law, z: Tensor<4>) -> Tensor<2> {
    law.log_prob(to_rows(z, law.dims()[0]))
}

/// Samples `[n, batch, d, k]` as those of a law with `rows` batch elements.
pub(super) fn to_rows(z: Tensor<4>, rows: usize) -> Tensor<4> {
    let [n, batch, d, k] = z.dims();
    z.reshape([n * batch / rows, rows, d, k])
}

/// How an estimator treats the layers of a [`Chain`].
#[derive(Clone, Copy, Debug)]
pub enum Stacking<'a> {
    /// It has no rule for chains.
    Unsupported,
    /// The samples of each layer are on the tape, and so is what depends on them.
    Tape(&'a dyn Pathwise),
    /// One layer after the other, with the layers below fixed at one draw of them and those above
    /// drawn anew for each evaluation.
    Layerwise,
    /// A rule of its own for all layers together.
    Own(&'a dyn Stacked),
}

/// An estimator with a rule of its own for chains.
pub trait Stacked: Estimator {
    /// The estimate for a source of noise.
    ///
    /// # Errors
    ///
    /// If a layer is not one that the estimator supports, or the cost has the wrong shape or is not
    /// finite.
    fn chain_outcome(&self, noise: &ChainNoise, chain: &CountedChain) -> Result<ChainOutcome>;
}

/// What an estimator computes for a chain, in canonical shapes.
#[derive(Clone, Debug)]
pub struct ChainOutcome {
    /// The cost of each draw and batch element `[n, batch]`, on no tape.
    pub values: Tensor<2>,
    /// A scalar whose value is the mean of `values` (of a bound: the mean bound) and whose gradient is
    /// the estimate.
    pub surrogate: Tensor<1>,
    /// The samples `[n, batch, d, k]` of each layer at which the cost was evaluated, on no tape.
    pub samples: Vec<Tensor<4>>,
    /// What the estimate teaches the state of each layer; empty if nothing.
    pub lessons: Vec<Lesson>,
}

/// An estimate of the expected cost of a chain and of its gradients.
#[derive(Clone, Debug)]
pub struct ChainEstimate<D: Distribution> {
    /// The cost of each draw and batch element, `[n, batch]`, as constants.
    pub values: Tensor<2>,
    /// A scalar: the mean cost over draws and batch, or the mean bound. Its one `backward()` gives
    /// the gradients of all layers' parameters, of the cost's own, and of bound state.
    pub surrogate: Tensor<1>,
    /// The samples of each layer at which the cost was evaluated, as constants.
    pub samples: Vec<D::Samples>,
    /// How often the cost was evaluated and differentiated, live.
    pub counts: Counts,
    /// What [`ChainState::update`](super::ChainState::update) learns from it besides.
    pub lessons: Vec<Lesson>,
}
