//! DisARM for multi-sample bounds, one draw at a time.

use burn::tensor::Tensor;

use super::disarm::weight;
use super::vimco::{above_replaced, bound};
use crate::antithetic::{Pair, along};
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::layers::{sum_of, to_rows};
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, NoiseSource, Outcome, Pass, Stacked};
use crate::ops::gradient_only;

method! {
    /// The rise of a multi-sample bound when one draw gives way to its antithetic twin.
    ///
    /// The costs `f_k` are negative log-weights `log q(z_k) - log p(x, z_k)`, and what is minimised
    /// is `E L` with the bound `L = -log (1/n) Σ_k exp(-f_k)`, as for [`Vimco`](super::Vimco). Each
    /// draw `b_k` comes with an antithetic one, `b̃_k`.
    ///
    /// * **Estimates** `d/d logit E L`, and the gradient of the cost's own parameters.
    /// * **With** `Σ_k ½ (L(b) - L(b^(k → b̃_k))) (b_k - b̃_k) σ(|φ|)` for logits `φ`, plus the
    ///   gradient of `L(b)` at fixed draws, for a cost that depends on parameters directly, as a
    ///   log-weight depends on `q`. In `b^(k → b̃_k)` one draw is replaced and all others stay.
    /// * **Requires** the values of the cost, given to
    ///   [`estimate_bound`](crate::estimator::EstimatorExt::estimate_bound) or as an objective of
    ///   the kind [`Bound`](crate::objective::ObjectiveKind::Bound). `samples` is the number of
    ///   pairs; the value of the surrogate is the mean bound of the `b_k`, and `values` and
    ///   `samples` of the estimate are theirs.
    /// * **Bias**: none as to the bound with the same number of draws. Uniform numbers have 23
    ///   random bits in `f32`, so probabilities below 2^-24 are taken for zero there.
    /// * **Several layers**: each layer has twins of its own, for which the layers above are drawn
    ///   anew; that is one evaluation more for each draw and layer.
    /// * **Note**: with one draw it is [`Disarm`](super::Disarm), trained on the first of two.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([3, 2], &Device::flex()))?;
    /// let bound = Single::new(&q, (), |z, _, ()| z.sum_dim(2)).of_kind(ObjectiveKind::Bound);
    /// let gradient = estimator("local-disarm:samples=4")?.gradient_of(Key::new(1), &bound)?;
    /// assert_eq!(gradient.dims(), [3, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct LocalDisarm {}

    options LocalDisarmConfig {
        /// The number n of antithetic pairs of one estimate; it is part of the bound.
        samples: usize = 2,
    }

    facts {
        id: "local-disarm",
        name: "Local DisARM",
        families: &[FamilyKind::Bernoulli],
        objective: Bound,
        bias: none,
        needs: [Value],
        price: [2, 0],
        reference: "Dong, Mnih, Tucker 2020, arXiv 2006.10680, section on multi-sample bounds",
        layers: Own,
        noise: Uniform,
    }
}

impl Estimator for LocalDisarm {}

impl Stacked for LocalDisarm {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let mut pairs = Vec::new();
        let pass = Pass::new(self, noise, objective, |law, noise| {
            let pair = Pair::new(noise.get(0), law);
            pairs.push(pair.clone());
            pair.first
        })?;
        let cost = objective.evaluate_layers(&pass.z, &pass.laws)?;
        let values = cost.clone().inner();
        let term = |(layer, pair): (usize, Pair)| {
            let law = &pass.laws[layer];
            let other = twin_cost(&pass, layer, &pair, noise, objective)?;
            let rise = rises(values.clone(), other);
            let [n, batch] = rise.dims();
            let rise = to_rows(rise.reshape([n, batch, 1, 1]), law.dims()[0]);
            // The bound is not divided by the number of draws, which `along` averages over.
            Ok(along(law, rise * weight(pair, law) * n as f64))
        };
        let scalar = sum_of(pairs.into_iter().enumerate().map(term))?;
        let surrogate = bound(cost.clone()).mean() + gradient_only(scalar);
        Ok(pass.with_surrogate(cost, surrogate))
    }
}

/// The costs `[n, batch]` of the draws whose layer has the twin, with new draws of the layers above.
fn twin_cost(
    pass: &Pass,
    layer: usize,
    pair: &Pair,
    noise: &NoiseSource,
    objective: &CountedObjective,
) -> Result<Tensor<2>> {
    let dims = pass.z[layer].dims();
    let mut z = pass.z[..layer].to_vec();
    z.push(pair.second.clone().reshape(dims));
    let mut laws: Vec<Law> = pass.laws[..=layer].iter().map(Law::constant).collect();
    for _ in layer + 1..objective.layers() {
        let law = objective.frozen_layer(&z)?.constant();
        let [n, batch, ..] = dims;
        let [_, d, k] = law.dims();
        z.push(noise.hard(&law)?.reshape([n, batch, d, k]));
        laws.push(law);
    }
    Ok(objective.evaluate_frozen(&z, &laws)?.inner())
}

/// `L - L_k` for costs `[n, batch]`, where `L_k` has the other cost of draw `k`.
fn rises(cost: Tensor<2>, other: Tensor<2>) -> Tensor<2> {
    // Both bounds move with a constant in all costs; without it the digits of differences stay.
    let least = cost.clone().min_dim(0);
    above_replaced(-(cost - least.clone()), -(other - least))
}
