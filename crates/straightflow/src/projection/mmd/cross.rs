//! The response `r(y)` of a law to one sample, its derivative and its differences.

use super::fourier::{SelfTerms, ln_square};
use super::gaussian::GaussianSum;
use super::panels::{law_length, sum_nodes, window};
use crate::distribution::CountLaw;
use crate::kernel::Kernel;
use crate::projection::{ProjectionError, check_law};

/// The natural logarithm of the tail probability that windows leave out.
pub(super) const LOG_TAIL: f64 = 40.0;

/// Everything about a law and a kernel that does not depend on the samples.
///
/// With `w` the [weight](CountLaw::weight) of the law,
///
/// ```text
/// r(y) = d/dm E K(Z - y) = sum_x w(x) [K(x + 1 - y) - K(x - y)],   c(y) = r'(y).
/// ```
///
/// Gaussian kernels and their mixtures use a table of `w` over a window with a stride as wide as
/// the smoothness of `w` and `K` allows (a few dozen terms at any mean), other kernels a Gauss rule
/// on panels; both keep a cost that is bounded in the mean, in the number of trials and in the
/// dispersion. Sums are accurate to about `1e-13` of their largest term.
///
/// ```
/// use straightflow::distribution::CountLaw;
/// use straightflow::kernel::Rbf;
/// use straightflow::projection::MmdLaw;
///
/// let kernel = Rbf::new(1.0)?;
/// let law = MmdLaw::new(&CountLaw::Poisson { rate: 5.0 }, &kernel)?;
/// assert!((law.r(5.25) - 1.123426676809e-2).abs() < 1e-14);
/// assert!((law.c(5.0) - 6.859412249499e-2).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MmdLaw<'k> {
    law: CountLaw,
    kernel: &'k dyn Kernel,
    sums: Sums,
}

#[derive(Debug)]
enum Sums {
    /// A weighted sum of Gaussian kernels.
    Gaussians(Vec<(f64, GaussianSum)>),
    /// Panels around each sample.
    Panels { weight: CountLaw, lo: u64, hi: u64 },
}

impl<'k> MmdLaw<'k> {
    /// Prepares a law.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Law`] for parameters that are not finite or out of range,
    /// [`ProjectionError::PointMass`] for a binomial law without trials.
    pub fn new(law: &CountLaw, kernel: &'k dyn Kernel) -> Result<Self, ProjectionError> {
        check_law(law)?;
        let weight = law.weight().ok_or(ProjectionError::PointMass)?;
        let sums = match kernel.gaussians() {
            Some(parts) => {
                let sum = |(share, bandwidth)| (share, GaussianSum::new(&weight, bandwidth));
                Sums::Gaussians(parts.into_iter().map(sum).collect())
            }
            None => {
                let (lo, hi) = window(&weight, LOG_TAIL);
                Sums::Panels { weight, lo, hi }
            }
        };
        Ok(Self {
            law: *law,
            kernel,
            sums,
        })
    }

    /// The law.
    pub fn law(&self) -> &CountLaw {
        &self.law
    }

    /// `r(y)`, the derivative of `E K(Z - y)` with respect to the mean.
    pub fn r(&self, y: f64) -> f64 {
        self.sum(y, 0.0, |part| part.r(y), |d| -self.kernel.fall(d, 1.0))
    }

    /// `c(y) = r'(y)`, the weight that a sample's gradient gets for infinitely small moves.
    pub fn c(&self, y: f64) -> f64 {
        let fall = |d: f64| self.kernel.derivative(d) - self.kernel.derivative(d + 1.0);
        self.sum(y, 0.0, |part| part.c(y), fall)
    }

    /// `r(y) - r(y - shift)` without cancellation for small shifts, exactly 0 for none.
    pub fn fall(&self, y: f64, shift: f64) -> f64 {
        if shift == 0.0 {
            return 0.0;
        }
        let fall = |d: f64| self.kernel.fall(d + 1.0, shift) - self.kernel.fall(d, shift);
        self.sum(y, shift, |part| part.fall(y, shift), fall)
    }

    /// A sum over the weight: that of each Gaussian, or that of `part(x - y)` on panels.
    fn sum(
        &self,
        y: f64,
        shift: f64,
        gaussian: impl Fn(&GaussianSum) -> f64,
        part: impl Fn(f64) -> f64,
    ) -> f64 {
        match &self.sums {
            Sums::Gaussians(parts) => {
                let each = parts.iter().map(|(share, sum)| share * gaussian(sum));
                each.sum()
            }
            Sums::Panels { weight, lo, hi } => {
                panel_sum(weight, self.kernel, *lo, *hi, y, shift, part)
            }
        }
    }

    /// The self terms `E K`, `M` and `E c` of the law.
    pub fn self_terms(&self) -> SelfTerms {
        SelfTerms::new(&self.law, self.kernel)
    }
}

/// The function `y -> E K(Z - y)` of a law.
pub(super) fn kernel_mean<'k>(law: &CountLaw, kernel: &'k dyn Kernel) -> impl Fn(f64) -> f64 + 'k {
    let law = *law;
    let (lo, hi) = window(&law, LOG_TAIL);
    let prepare = |(share, bandwidth)| (share, GaussianSum::new(&law, bandwidth));
    let parts = kernel.gaussians();
    let parts: Option<Vec<_>> = parts.map(|parts| parts.into_iter().map(prepare).collect());
    move |y| match &parts {
        Some(parts) => parts.iter().map(|(share, part)| share * part.mean(y)).sum(),
        None => panel_sum(&law, kernel, lo, hi, y, 0.0, |d| kernel.value(d)),
    }
}

/// `sum_x w(x) g(x - y)` over `lo..=hi`, for a `g` made of `K` at `d`, `d + 1` and at these plus
/// `shift`; panels are cut where one of them meets a kink.
fn panel_sum(
    weight: &CountLaw,
    kernel: &dyn Kernel,
    lo: u64,
    hi: u64,
    y: f64,
    shift: f64,
    part: impl Fn(f64) -> f64,
) -> f64 {
    let mut total = 0.0;
    let reach = kernel.reach();
    let (left, right) = (y.min(y - shift), y.max(y - shift));
    // Casts to integers saturate; a sample out of reach leaves no integer.
    let lo = lo.max((left - reach - 1.0).floor().max(0.0) as u64);
    let hi = hi.min((right + reach).ceil().max(0.0) as u64);
    if lo > hi {
        return 0.0;
    }
    let mut cuts = vec![lo];
    for centre in [y, y - shift] {
        // x - centre and x + 1 - centre change sign at these integers.
        for first in [centre.ceil() - 1.0, centre.ceil(), centre.floor() + 1.0] {
            if kernel.has_kink() && first > lo as f64 && first <= hi as f64 {
                cuts.push(first as u64);
            }
        }
    }
    cuts.push(hi.saturating_add(1));
    cuts.sort_unstable();
    let longest = |start: f64| {
        // A panel on the way to the centre may use half of the distance that is left.
        let distance = if start >= right {
            start - right
        } else {
            (0.5 * (left - 1.0 - start)).max(0.0)
        };
        law_length(weight, start).min(kernel.smooth_length(distance))
    };
    for pair in cuts.windows(2) {
        if pair[0] < pair[1] {
            sum_nodes(pair[0], pair[1] - 1, longest, |x, node| {
                total += node * weight.pmf(x) * part(x - y);
            });
        }
    }
    total
}

/// The largest stride at which a sum of `w(x) K(x - y)` over every `k`-th integer, times `k`, is
/// the full sum to rounding.
///
/// The error is the transform of the summand at the multiples of `2 pi / k`, that is
/// `cf_w(2 pi / k - u)` against the Gaussian `exp(-h^2 u^2 / 2)`; it has to be below `exp(-37)` for
/// every `u`. For moderate means this is stricter than the Gaussian approximation of `cf_w`.
pub(super) fn safe_stride(law: &CountLaw, bandwidth: f64) -> u64 {
    const NEGLIGIBLE: f64 = 37.0;
    let square = 1.0 / (1.0 / law.variance() + 1.0 / (bandwidth * bandwidth));
    let mut stride = (square.sqrt() / 1.36).floor();
    while stride >= 2.0 {
        let omega = std::f64::consts::TAU / stride;
        let safe = (0..=16).all(|j| {
            let u = omega * f64::from(j) / 16.0;
            let sine = (0.5 * (omega - u)).sin();
            let own = -0.5 * ln_square(law, sine * sine);
            own + 0.5 * (bandwidth * u).powi(2) >= NEGLIGIBLE
        });
        if safe {
            return stride as u64;
        }
        stride = if stride < 16.0 {
            stride - 1.0
        } else {
            (0.8 * stride).floor()
        };
    }
    1
}
