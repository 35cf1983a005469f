//! The ReinMax estimator.

use burn::tensor::Tensor;

use super::second_order_st::weighted;
use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction, Temperature};
use crate::gradient::with_gradient;

method! {
    /// A second-order rule for the difference of the cost between two corners, with a temperature.
    ///
    /// At temperature 1, the default, it *is* [`SecondOrderSt`](super::SecondOrderSt) without
    /// baseline.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i [2 J(π_i) - ½ J(p)]ᵀ ∇f(z_i)`, where `π_i = ½ (softmax(φ/τ) + z_i)`,
    ///   `p = softmax(φ)` and `J(π) = diag π - π πᵀ`. There is no factor `1/τ`: the temperature
    ///   only moves the point at which the Jacobian is taken. A Bernoulli variable is one of two
    ///   categories with logits `(φ, 0)`. With `s = softmax(φ/τ)` the same is
    ///   `v_s(z) + ½ [J(s) - J(p)]ᵀ ∇f(z)`, where `v_s` is the second-order rule at `s`; this is
    ///   how it is computed.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: at temperature 1 none on costs that are quadratic in one variable; at others on
    ///   every cost that is not constant.
    /// * **Note**: temperatures below 1 are refused, as by its authors' code. At temperature 1 it is
    ///   also ZGR (Shekhovtsov 2023), `½ [J ∇f + (z - p) (z - p)·∇f]`,
    ///   for any number of categories; `zgr` is another name of it. Two successors (Wang, Bui
    ///   2026, arXiv 2603.08257) are not here. ReinMax-Rao, which averages a relaxed Jacobian over
    ///   conditional noise, is biased on linear costs, which ReinMax is not. ReinMax-CV subtracts
    ///   the difference of two relaxed gradients; with the noise conditioned on the draw, that
    ///   difference has mean zero given the draw, is uncorrelated with ReinMax, and only adds
    ///   variance.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<3>::zeros([1, 2, 4], &device).require_grad();
    /// let q = Categorical::from_logits(logits.clone())?;
    /// let reinmax = estimator("reinmax:temperature=1.1")?;
    /// let estimate = reinmax.estimate(Key::new(1), &q, |z| {
    ///     z.slice([0..1, 0..1, 0..2, 0..1]).sum_dims(&[2, 3])
    /// })?;
    /// assert_eq!(logits.grad(&estimate.surrogate.backward()).unwrap().dims(), [1, 2, 4]);
    /// assert!(estimator("reinmax:temperature=0.9").is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Reinmax {}

    options ReinmaxConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature at one end of the trapezoid: a number, or a schedule `2>1@1e-5`.
        temperature: Temperature [1.0..=f64::MAX] = Temperature::Constant(1.0),
    }

    facts {
        id: "reinmax",
        name: "ReinMax",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: exact on "quadratic f of independent coordinates, at temperature 1",
        needs: [Gradient],
        price: [1, 1],
        reference: "Liu et al. 2023, arXiv 2304.08612; as ZGR: Shekhovtsov 2023, \
                    Cold analysis of Rao-Blackwellized straight-through Gumbel-softmax, ICML",
        layers: Tape,
        step: temperature,
        aliases: &["zgr"],
    }
}

impl Estimator for Reinmax {}

impl Pathwise for Reinmax {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let (family, temperature) = (law.family(), self.config.temperature.start());
        with_gradient(law.natural(), noise.get(0), move |natural, z, dz| {
            let law = Law::unchecked(family, natural.clone());
            let each = if temperature == 1.0 {
                weighted(&law, z, dz)
            } else {
                let soft = law.with_natural(natural / temperature);
                let correction = soft.chain(dz.clone()) - law.chain(dz.clone());
                weighted(&soft, z, dz) + correction * 0.5
            };
            each.sum_dim(0).squeeze_dim(0)
        })
    }
}
