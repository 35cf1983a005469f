//! Weights that turn slopes into finite differences.

use burn::tensor::Tensor;

use super::second_order_st::weighted;
use crate::distribution::{Family, FamilyKind, Law};
use crate::error::Result;
use crate::estimate::{Estimator, Noise, Pathwise, Reduction};
use crate::gradient::with_gradient;

method! {
    /// Straight-through with weights by which `f'` at the samples integrates to finite differences.
    ///
    /// The derivative with respect to the log-rate of a Poisson variable is `λ E [f(z+1) - f(z)]`.
    /// An Adams-Moulton formula writes the difference in slopes at `z + 1, z, z - 1, ..`, and the
    /// Chen-Stein identity `λ E g(z+1) = E z g(z)` moves all slopes to `z`.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i w(z_i) f'(z_i)`; for a Poisson variable, with falling factorials
    ///   `z^(2) = z (z - 1)` and `z^(3) = z (z-1) (z-2)`,
    ///
    ///   | order | weight |
    ///   |---|---|
    ///   | 2 | `½ (λ + z)` |
    ///   | 3 | `(1/12) (5 λ + 8 z - z^(2) / λ)` |
    ///   | 4 | `(1/24) (9 λ + 19 z - 5 z^(2) / λ + z^(3) / λ²)` |
    ///
    ///   For the other families there is order 2, which is
    ///   [`SecondOrderSt`](super::SecondOrderSt) without a baseline.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: none on polynomials whose degree in each of independent coordinates is at most the
    ///   order.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let cubic = estimator("fini:order=3")?;
    /// let q = Poisson::from_log_rates(Tensor::<2>::zeros([4, 2], &Device::flex()))?;
    /// let gradient = cubic.gradient(Key::new(1), &q, |z| {
    ///     z.powi_scalar(3).sum_dim(2)
    /// })?;
    /// assert_eq!(gradient.dims(), [4, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Fini {}

    options FiniConfig {
        /// The degree of the polynomials that are exact: 2, for Poisson also 3 and 4.
        order: usize [2..=4] = 2,
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "fini",
        name: "Fini",
        families: &[
            FamilyKind::Bernoulli,
            FamilyKind::Poisson,
            FamilyKind::Binomial,
            FamilyKind::NegativeBinomial,
            FamilyKind::Geometric,
        ],
        bias: exact on "polynomials of at most the order in each independent coordinate",
        needs: [Gradient],
        price: [1, 1],
        reference: "derived in the documentation of `Fini` from the Chen-Stein identity (Chen 1975, Annals \
                    of Probability 3, 534-545) and the Adams-Moulton formulas (Hairer, Norsett, Wanner 1993, \
                    doi 10.1007/978-3-540-78862-1, section III.1)",
        layers: Tape,
    }
}

impl Estimator for Fini {
    fn accepts(&self, law: &Law) -> Result<()> {
        match (self.config.order, law.family()) {
            (2, _) | (_, Family::Poisson) => Ok(()),
            (order, family) => Err(ENTRY.invalid(format!(
                "`order={order}` is for Poisson variables, not for {} ones",
                family.kind()
            ))),
        }
    }
}

impl Pathwise for Fini {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let (family, order) = (law.family(), self.config.order);
        with_gradient(law.natural(), noise.get(0), move |natural, z, dz| {
            // The falling factorials of 0 and 1 are zero; a rate that underflows must not make them
            // NaN.
            let rate = natural.clone().exp().unsqueeze::<4>();
            let divisor = rate.clone().clamp_min(f64::from(f32::MIN_POSITIVE));
            let twice = z.clone() * (z.clone() - 1.0);
            let each = match order {
                3 => (rate * 5.0 + z * 8.0 - twice / divisor) * dz / 12.0,
                4 => {
                    let thrice =
                        twice.clone() * (z.clone() - 2.0) / divisor.clone() / divisor.clone();
                    (rate * 9.0 + z * 19.0 - twice * 5.0 / divisor + thrice) * dz / 24.0
                }
                _ => weighted(&Law::unchecked(family, natural), z, dz),
            };
            each.sum_dim(0).squeeze_dim(0)
        })
    }
}
