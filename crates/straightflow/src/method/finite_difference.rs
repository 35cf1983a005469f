//! The measure-valued derivative of each family.

use burn::tensor::{Tensor, activation::softmax};

use crate::distribution::{FamilyKind, Law, Moves};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, Noise, NoiseSpec, Outcome, Price};
use crate::ops::from_host;

method! {
    /// Moves one coordinate at a time by one and takes the difference of the costs.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(dm/dη) (1/n) Σ_i [f(z_i^(j → x+1)) - f(z_i^(j → x))]` for coordinate `j`, where
    ///   `x` is a draw of the law `w` of [`Law::weight`]. One of the two is mostly `f(z_i)`:
    ///
    ///   | family | `x` |
    ///   |---|---|
    ///   | Bernoulli, Binomial(N) | `z - 1` with probability `z / N`, else `z`: both have the law of `w` |
    ///   | Poisson | `z` |
    ///   | Negative binomial | a draw of `w` of its own |
    ///   | Rounded | the lower neighbour: `(f(hi) - f(lo)) / s` |
    ///   | Categorical | all `k` categories, `p_c (f(e_c) - Σ_l p_l f(e_l))` |
    ///   | Subset | `m_i (1 - m_i) [f(z with i) - f(z without i)]`: one of the two is `z`, the other has item `i` exchanged for a partner, such that the rest keeps its law |
    /// * **Requires** the values of the cost, at integers only: no gradient, no relaxation.
    /// * **Bias**: none.
    /// * **Price**: the best choice for few coordinates: it has no variance at all on linear costs.
    ///
    /// The moved samples are evaluated with a constant `q`; the direct dependence of the cost on
    /// the parameters enters once, at the samples.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 1], &Device::flex()))?;
    /// // A step function has no useful gradient, but it has differences.
    /// let gradient = FiniteDifference::default().gradient(Key::new(1), &q, |z| {
    ///     z.greater_elem(0.5).float()
    /// })?;
    /// assert_eq!(gradient.into_scalar::<f32>(), 0.25);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct FiniteDifference {}

    options FiniteDifferenceConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "finite-difference",
        name: "Finite difference",
        families: FamilyKind::ALL,
        bias: none,
        needs: [Value],
        price: "n (d + 1) f; negative binomial and geometric n (2 d + 1), categorical and subset n (k d + 1)",
        reference: "measure-valued derivatives: Pflug 1989; Mohamed et al. 2020, arXiv 1906.10652",
        layers: Layerwise,
    }
}

impl Estimator for FiniteDifference {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let samples = NoiseSpec::samples(law, n);
        let family = law.family();
        if family.weighs_draws() {
            return vec![samples, NoiseSpec::weight(law, n)];
        }
        if !family.takes_side() {
            return vec![samples];
        }
        let [n, batch, d, _] = samples.shape;
        vec![samples, NoiseSpec::uniform("side", [n, batch, d, 1])]
    }

    fn price(&self, law: &Law, n: usize) -> Price {
        let [_, d, k] = law.dims();
        let moves = match law.family().weighs_draws() {
            true => 2 * d,
            // One to each category, or one step.
            false => k * d,
        };
        Price::new(n * (moves + 1), 0)
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        if law.family().has_swaps() {
            return swaps(noise, law, objective);
        }
        let z = noise.get(0);
        let cost = objective.evaluate(z.clone(), law)?;
        let [n, batch, d, k] = z.dims();
        let values = cost.clone().inner();
        let fixed = law.constant();
        let moves = self.moves(noise, &fixed);
        // All moved samples in one evaluation: [coordinate and move, n] as draws.
        let points: Vec<Tensor<4>> = (0..d)
            .flat_map(|j| moves.iter().map(move |to| (j, to)))
            .map(|(j, to)| replace(&z, j, to))
            .collect();
        let count = moves.len();
        let moved = objective.value(Tensor::cat(points, 0), &fixed)?;
        let moved = moved.reshape([d, count, n, batch]);
        let at = |m: usize| {
            moved
                .clone()
                .narrow(1, m, 1)
                .reshape([d, n, batch])
                .permute([1, 2, 0])
        };

        let gradient: Tensor<3> = if law.family().is_one_hot() {
            let all: Vec<Tensor<4>> = (0..k).map(|c| at(c).unsqueeze_dim(3)).collect();
            let all = Tensor::cat(all, 3); // [n, batch, d, k]
            let p = softmax(fixed.natural(), 2).unsqueeze::<4>();
            let mean = (p.clone() * all.clone()).sum_dim(3);
            (p * (all - mean)).mean_dim(0).squeeze_dim(0)
        } else {
            let slope = match law.family().weighs_draws() {
                true => at(1) - at(0),
                false => {
                    let rise = at(0) - values.clone().unsqueeze_dim::<3>(2);
                    rise / (moves[0].clone() - z.clone()).squeeze_dim::<3>(3)
                }
            };
            fixed.chain(slope.mean_dim(0).squeeze_dim::<2>(0).unsqueeze_dim(2))
        };
        // burn divides by a number in single precision when it differentiates; it multiplies in
        // full.
        let carrier = (law.natural() * gradient).sum() * (1.0 / batch as f64);
        Ok(Outcome::new(cost, carrier, z))
    }
}

impl FiniteDifference {
    /// What the coordinates are replaced by, each `[n, batch, d, k]`: one coordinate at a time
    /// takes its value from here.
    fn moves(&self, noise: &Noise, law: &Law) -> Vec<Tensor<4>> {
        let z = noise.get(0);
        let family = law.family();
        if family.is_one_hot() {
            return corners(&z);
        }
        // Two neighbours of the law w. Where a unit move always weighs the same, a draw and its
        // move are such neighbours.
        if family.weighs_draws() {
            let x = noise.get(1);
            return vec![x.clone(), x + 1.0];
        }
        let side = family.takes_side().then(|| noise.get(1));
        vec![law.moved(z, side)]
    }
}

/// Exchanges each item of each vector in turn, all in one evaluation.
fn swaps(noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
    let z = noise.get(0);
    let cost = objective.evaluate(z.clone(), law)?;
    let [n, batch, d, k] = z.dims();
    let fixed = law.constant();
    let moves = Moves::new(law, z.clone(), Some(noise.get(1)));
    let mut points = moves.z.repeat(d * k);
    let size = moves.per_draw();
    for (place, point) in points.chunks_exact_mut(size).enumerate() {
        // [item, n, batch]
        let (item, draw) = (place / moves.draws(), place % moves.draws());
        moves.apply(draw * size + item, point);
    }
    let points = from_host(points, [d * k * n, batch, d, k], &fixed.natural());
    let moved = objective.value(points, &fixed)?.reshape([d, k, n, batch]);
    let rise = moved.permute([2, 3, 0, 1]) - cost.clone().inner().reshape([n, batch, 1, 1]);
    let slope = rise * (-z.clone() * 2.0 + 1.0);
    let slope: Tensor<3> = slope.mean_dim(0).squeeze_dim(0);
    let gradient = fixed.chain_factor() * slope;
    let carrier = (law.natural() * gradient).sum() * (1.0 / batch as f64);
    Ok(Outcome::new(cost, carrier, z))
}

/// Every category as a one-hot vector, in the shape of `z`.
fn corners(z: &Tensor<4>) -> Vec<Tensor<4>> {
    let [.., k] = z.dims();
    let corner = |c: usize| {
        let before = z.zeros_like().narrow(3, 0, c.max(1));
        let one = z.ones_like().narrow(3, 0, 1);
        let after = z.zeros_like().narrow(3, 0, (k - 1 - c).max(1));
        let parts = [(c > 0, before), (true, one), (c + 1 < k, after)];
        let parts = parts.into_iter().filter(|(keep, _)| *keep);
        Tensor::cat(parts.map(|(_, part)| part).collect(), 3)
    };
    (0..k).map(corner).collect()
}

/// `z` with coordinate `j` from `to`.
fn replace(z: &Tensor<4>, j: usize, to: &Tensor<4>) -> Tensor<4> {
    let [n, batch, _, k] = z.dims();
    let value = to.clone().narrow(2, j, 1);
    z.clone()
        .slice_assign([0..n, 0..batch, j..j + 1, 0..k], value)
}
