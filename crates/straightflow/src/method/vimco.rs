//! The estimator of multi-sample bounds, VIMCO.

use burn::tensor::Tensor;

use crate::distribution::FamilyKind;
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, NoiseSource, Outcome, Pass, Stacked};
use crate::ops::gradient_only;

method! {
    /// The score-function estimator of a multi-sample bound, with a baseline for each draw.
    ///
    /// The costs `f_k` are negative log-weights `log q(z_k) - log p(x, z_k)`, and what is minimised
    /// is `E L` with the bound `L = -log((1/n) Σ_k exp(-f_k))`, which is nearer to `-log p(x)` the
    /// more draws there are.
    ///
    /// * **Estimates** `d/d natural E L`, and the gradient of the cost's own parameters.
    /// * **With** `Σ_k (L - L_{-k}) ∇ log q(z_k) + Σ_k w_k ∇f_k`, where `L_{-k}` is the bound with
    ///   `f_k` replaced by the mean of the other `f_j` (the geometric mean of their weights), and
    ///   `w_k = exp(-f_k) / Σ_j exp(-f_j)`. The second sum is the gradient of `L` at fixed draws;
    ///   it is there if the cost depends on parameters directly, as a log-weight depends on `q`.
    ///   All in log space.
    /// * **Requires** the values of the cost, given to
    ///   [`estimate_bound`](crate::estimator::EstimatorExt::estimate_bound) or as an objective of
    ///   the kind [`Bound`](crate::objective::ObjectiveKind::Bound), and at least two draws. The
    ///   value of the surrogate is the mean bound; the estimate's `values` are the costs.
    /// * **Bias**: none as to the bound with the same number of draws.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([1, 3], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let prior = q.constant();
    /// // log q(z) - log p(z) - log p(x | z), for a likelihood that likes ones.
    /// let weight = Single::new(&q, prior, |z, q, prior| {
    ///     q.log_prob(z.clone()) - prior.log_prob(z.clone()) - z.sum_dim(2).squeeze_dim(2)
    /// });
    /// let bound = weight.of_kind(ObjectiveKind::Bound);
    /// let estimate = Vimco::default().estimate_objective(Key::new(1), &bound)?;
    /// assert!(logits.grad(&estimate.surrogate.backward()).is_some());
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Vimco {}

    options VimcoConfig {
        /// The number of draws n of one estimate, at least 2; it is part of the bound.
        samples: usize = 2,
    }

    facts {
        id: "vimco",
        name: "VIMCO",
        families: FamilyKind::WITH_SCORE,
        objective: Bound,
        bias: none,
        needs: [Value],
        price: [1, 0],
        reference: "Mnih, Rezende 2016, arXiv 1602.06725",
        layers: Own,
        least: 2,
    }
}

impl Estimator for Vimco {}

impl Stacked for Vimco {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let pass = Pass::hard(self, noise, objective)?;
        let cost = objective.evaluate_layers(&pass.z, &pass.laws)?;
        let surrogate = surrogate(cost.clone(), pass.log_prob());
        Ok(pass.with_surrogate(cost, surrogate))
    }
}

/// The mean bound, with the gradient of the score besides its own.
fn surrogate(cost: Tensor<2>, log_prob: Tensor<2>) -> Tensor<1> {
    let score = log_prob * advantages(cost.clone().inner());
    bound(cost).mean() + gradient_only(score.sum_dim(0).mean())
}

/// `L - L_{-k}` for costs `[n, batch]`: the logarithms of n cancel.
fn advantages(cost: Tensor<2>) -> Tensor<2> {
    let n = cost.dims()[0];
    // Both bounds move with a constant in all costs, so the least cost becomes zero: that keeps
    // the digits of differences.
    let log_weights = -(cost.clone() - cost.min_dim(0));
    let own = Tensor::<2>::eye(n, &log_weights.device()).cast(log_weights.dtype());
    // A sum without the draw itself, rather than the sum of all less the draw.
    let fill_in = (-own + 1.0).matmul(log_weights.clone()) / (n as f64 - 1.0);
    above_replaced(log_weights, fill_in)
}

/// `L - L_k` for log-weights `[n, batch]`, where `L_k` is the bound with the weight of draw `k`
/// replaced by another one.
pub(super) fn above_replaced(log_weights: Tensor<2>, other: Tensor<2>) -> Tensor<2> {
    let n = log_weights.dims()[0];
    let own = Tensor::<2>::eye(n, &log_weights.device()).cast(log_weights.dtype());
    // [draw that is replaced, draw, batch]
    let own = own.unsqueeze_dim::<3>(2);
    let replaced = log_weights.clone().unsqueeze_dim::<3>(0) * (-own.clone() + 1.0)
        + other.unsqueeze_dim::<3>(1) * own;
    let without = log_sum_exp(replaced, 1).squeeze_dim::<2>(1);
    without - log_sum_exp(log_weights, 0)
}

/// The bound `-log (1/n) sum exp(-f)` `[1, batch]` of costs `[n, batch]`, on their tape.
pub(super) fn bound(cost: Tensor<2>) -> Tensor<2> {
    let n = cost.dims()[0] as f64;
    -log_sum_exp(-cost, 0) + n.ln()
}

/// `log sum exp` along a dimension, which stays with size 1, on the tape of `x`.
fn log_sum_exp<const D: usize>(x: Tensor<D>, dim: usize) -> Tensor<D> {
    let top = x.clone().inner().max_dim(dim);
    (x - top.clone()).exp().sum_dim(dim).log() + top
}
