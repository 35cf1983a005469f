//! The second-order straight-through estimator.

use burn::tensor::{Tensor, activation::softmax};
use serde::{Deserialize, Serialize};

use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction};
use crate::gradient::with_gradient;

/// What is subtracted from a draw's gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecondOrderBaseline {
    /// Nothing.
    #[default]
    None,
    /// The mean gradient of the other draws; it needs at least two.
    Loo,
}

method! {
    /// Straight-through with a weight for each draw, by which it becomes a trapezoid rule.
    ///
    /// The derivative with respect to the mean is `Σ_x w(x) [f(x+1) - f(x)]` with the law `w` of
    /// [`Law::weight`]. The trapezoid rule `f(x+1) - f(x) ≈ ½ (f'(x) + f'(x+1))`, summed with the
    /// probabilities of the samples instead of `w`, gives each draw a weight. It is also the limit
    /// of the gradient of the exact Wasserstein projection for small steps and many draws.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i v(z_i) f'(z_i)`, the weight times the chain factor being
    ///
    ///   | family | weight |
    ///   |---|---|
    ///   | Bernoulli | `½ (z (1-p) + (1-z) p)` |
    ///   | Poisson | `½ (z + λ)` |
    ///   | Binomial | `½ (p (N - z) + (1-p) z)` |
    ///   | Negative binomial | `½ (p̄ (z + r) + z)`, `p̄ = m / (r + m)` |
    ///   | Categorical | `½ [z_k ∇f · (e_k - p) + p_k ∇f · (e_k - z)]` |
    ///   | Subset | `½ [(z - m) (z - m)·∇f + J ∇f]`, `J` the covariance matrix |
    ///
    ///   None of them divides by a probability, so logits of any size are safe. With
    ///   `baseline = loo`, the part of the weight that deviates from straight-through multiplies
    ///   `f'(z_i)` minus the mean of the other draws' gradients: no variance is left on linear
    ///   costs.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: none on quadratic costs, also those that couple the coordinates: given the
    ///   others, such a cost is quadratic in each, and the coordinates are independent.
    /// * **Note**: for Bernoulli and Categorical it is ReinMax at temperature 1 (Liu et al. 2023,
    ///   arXiv 2304.08612).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let rates = Tensor::<2>::full([1, 1], 5.0, &device).require_grad();
    /// let estimator = SecondOrderStConfig { samples: 1000, ..Default::default() }.init()?;
    /// let q = Poisson::from_rates(rates.clone())?;
    /// let estimate = estimator.estimate(Key::new(1), &q, |z| z.square())?;
    /// let gradient: f32 = rates.grad(&estimate.surrogate.backward()).unwrap().into_scalar();
    /// // d/dm E z^2 = 2 m + 1; straight-through would give 2 m.
    /// assert!((gradient - 11.0).abs() < 0.6);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct SecondOrderSt {}

    options SecondOrderStConfig {
        /// `none`, or `loo`: the gradient of the other draws, on average.
        baseline: SecondOrderBaseline = SecondOrderBaseline::None,
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "second-order-st",
        name: "Second-order straight-through",
        families: FamilyKind::WITH_SCORE,
        bias: exact on "quadratic f of independent coordinates",
        needs: [Gradient],
        price: [1, 1],
        reference: "the limit of the Wasserstein projection of Cheng et al. 2019, arXiv \
                    1910.02176; for Bernoulli and Categorical ReinMax: Liu et al. 2023, arXiv \
                    2304.08612",
        layers: Tape,
    }
}

impl Estimator for SecondOrderSt {
    fn least_samples(&self) -> usize {
        match self.config.baseline {
            SecondOrderBaseline::None => 1,
            SecondOrderBaseline::Loo => 2,
        }
    }
}

impl Pathwise for SecondOrderSt {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let (family, baseline) = (law.family(), self.config.baseline);
        with_gradient(law.natural(), noise.get(0), move |natural, z, dz| {
            let law = Law::unchecked(family, natural);
            let each = match baseline {
                SecondOrderBaseline::None => weighted(&law, z, dz),
                // J dz + (weight - J) (dz - b): the second factor has mean zero for a constant dz.
                SecondOrderBaseline::Loo => {
                    let others = dz.dims()[0] as f64 - 1.0;
                    let baseline = (dz.clone().sum_dim(0) - dz.clone()) / others;
                    let spread = dz - baseline.clone();
                    law.chain(baseline) + weighted(&law, z, spread)
                }
            };
            each.sum_dim(0).squeeze_dim(0)
        })
    }
}

/// The weight of each draw times a gradient with respect to the sample, both `[n, batch, d, k]`.
pub(super) fn weighted(law: &Law, z: Tensor<4>, grad: Tensor<4>) -> Tensor<4> {
    if law.family().is_one_hot() {
        let p = softmax(law.natural().unsqueeze::<4>(), 3);
        let along = |v: &Tensor<4>| (v.clone() * grad.clone()).sum_dim(3);
        let chosen = z.clone() * (grad.clone() - along(&p));
        let others = p * (grad.clone() - along(&z));
        return (chosen + others) * 0.5;
    }
    if law.family().is_vector() {
        let deviation = z - law.mean().unsqueeze::<4>();
        let along = (deviation.clone() * grad.clone()).sum_dim(3);
        return (deviation * along + law.chain(grad)) * 0.5;
    }
    // The trapezoid rule: half of the slope for the step down from z, half for the step up.
    let [down, up] = law.step_weights(z);
    (down + up) * grad * 0.5
}
