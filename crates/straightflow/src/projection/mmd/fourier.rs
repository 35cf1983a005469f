//! Expectations of a kernel between two independent draws, as integrals over one period.
//!
//! With the lattice transforms `Theta` and `T` of the kernel and `s = sin^2(omega / 2)`,
//!
//! ```text
//! E K(Z - Z') = 1/(2 pi) int Theta |cf|^2,
//! M           = 1/(2 pi) int Theta 4 s |cf_w|^2,
//! E c(Z)      = 1/(2 pi) int T sin(omega) |cf_w|^2,
//! ```
//!
//! where `cf` belongs to the law and `cf_w` to its weight `w`. The squared moduli are
//! `exp(-4 m s)` (Poisson), `(1 - 4 p (1 - p) s)^n` (binomial) and
//! `(1 + 4 (m/r)(1 + m/r) s)^(-r)` (negative binomial), so no probability is ever summed. The
//! last line uses `cf_w conj(cf) = |cf_w|^2 (1 + b (e^{-i omega} - 1))` with
//! `b = p, 0, -m/r`: only `sin(omega)` survives the symmetry.

use std::f64::consts::PI;

use super::panels::integral_nodes;
use crate::distribution::CountLaw;
use crate::kernel::Kernel;

/// What the discrepancy needs to know about two draws of the same law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfTerms {
    /// `E K(Z - Z')` of independent draws.
    pub kernel_mean: f64,
    /// `M = E[2 K(D) - K(D + 1) - K(D - 1)]` with `D` the difference of two draws of the weight
    /// `w`: the squared length of the family's tangent in the kernel's geometry, half the second
    /// derivative of the discrepancy at its minimum.
    pub curvature: f64,
    /// `E c(Z)`, the mean response of the gradient to a unit shift of the samples.
    pub gain: f64,
}

impl SelfTerms {
    /// The self terms of a law. With a binomial law without trials, which has no weight, the
    /// curvature and the gain are 0.
    ///
    /// ```
    /// use straightflow::distribution::CountLaw;
    /// use straightflow::kernel::Rbf;
    /// use straightflow::projection::SelfTerms;
    ///
    /// let terms = SelfTerms::new(&CountLaw::Poisson { rate: 5.0 }, &Rbf::new(1.0)?);
    /// assert!((terms.curvature - 2.826876003271e-2).abs() < 1e-14);
    /// # Ok::<(), straightflow::kernel::KernelError>(())
    /// ```
    pub fn new(law: &CountLaw, kernel: &dyn Kernel) -> Self {
        let weight = law.weight();
        let mut total = [0.0; 3];
        let mut start = 0.0;
        while start < PI {
            let mut length = kernel.spectral_length(start);
            for law in [Some(*law), weight].into_iter().flatten() {
                length = length.min(spectral_length(&law, start));
            }
            let end = if start + length * 1.0625 > PI {
                PI
            } else {
                start + length
            };
            let mut panel = [0.0; 3];
            integral_nodes(start, end, |omega, node| {
                let spectrum = kernel.spectrum(omega);
                let sine = (0.5 * omega).sin();
                let s = sine * sine;
                let own = if kernel.is_conditional() {
                    // The integral of Theta alone, K(0) = 0, is taken off before it diverges.
                    ln_square(law, s).exp_m1()
                } else {
                    ln_square(law, s).exp()
                };
                let weight = weight.map_or(0.0, |weight| ln_square(&weight, s).exp());
                panel[0] += node * spectrum.even * own;
                panel[1] += node * spectrum.even * 4.0 * s * weight;
                panel[2] += node * spectrum.odd * omega.sin() * weight;
            });
            let mut settled = true;
            for (total, panel) in total.iter_mut().zip(panel) {
                *total += panel;
                settled &= panel.abs() <= 1e-19 * total.abs();
            }
            if settled {
                break;
            }
            start = end;
        }
        let [kernel_mean, curvature, gain] = total.map(|integral| integral / PI);
        Self {
            kernel_mean,
            curvature,
            gain,
        }
    }

    /// `d/dm E K(Z - Z') = 2 E r(Z) = -(1 - 2 b) M` with `b = p, 0, -m/r`.
    pub fn mean_slope(&self, law: &CountLaw) -> f64 {
        let share = match *law {
            CountLaw::Binomial { trials: 0, .. } | CountLaw::Poisson { .. } => 0.0,
            CountLaw::Binomial { trials, .. } => law.mean() / f64::from(trials),
            CountLaw::NegativeBinomial { dispersion, mean } => -mean / dispersion,
        };
        -(1.0 - 2.0 * share) * self.curvature
    }
}

/// `ln |cf|^2` at `s = sin^2(omega / 2)`.
pub(super) fn ln_square(law: &CountLaw, s: f64) -> f64 {
    match *law {
        CountLaw::Poisson { rate } => -4.0 * rate * s,
        CountLaw::Binomial { trials: 0, .. } => 0.0,
        CountLaw::Binomial { trials, .. } => {
            let n = f64::from(trials);
            n * (-4.0 * (law.variance() / n) * s).ln_1p()
        }
        CountLaw::NegativeBinomial { dispersion, mean } => {
            let ratio = mean / dispersion;
            -dispersion * (4.0 * ratio * (1.0 + ratio) * s).ln_1p()
        }
    }
}

/// How long a panel of frequencies may be for `|cf|^2`: four of its standard deviations, or for the
/// algebraic decay of a negative binomial law twice the distance to the branch points.
fn spectral_length(law: &CountLaw, omega: f64) -> f64 {
    let sine = (0.5 * omega).sin();
    if ln_square(law, sine * sine) < -60.0 {
        return f64::INFINITY;
    }
    // |cf|^2 is a Gaussian of variance 1 / (2 V) near 0.
    let gaussian = 4.0 / (2.0 * law.variance()).sqrt();
    match *law {
        CountLaw::Poisson { .. } | CountLaw::Binomial { .. } => gaussian,
        CountLaw::NegativeBinomial { dispersion, mean } => {
            let ratio = mean / dispersion;
            let branch = 1.0 / (ratio * (1.0 + ratio)).sqrt();
            let growth = (4.0 / (2.0 * dispersion).sqrt()).min(2.0);
            gaussian.min(branch).max(growth * omega)
        }
    }
}
