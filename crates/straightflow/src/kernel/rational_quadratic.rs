//! The rational quadratic kernel.

use super::{Kernel, KernelError, Mixture, Spectrum, check_bandwidth};

/// `K(d) = (1 + d^2 / (2 a h^2))^(-a)`, a Gaussian kernel whose precision is gamma distributed.
///
/// For `a -> infinity` it is the Gaussian kernel; its tails fall like `|d|^(-2a)`.
#[derive(Clone, Debug, PartialEq)]
pub struct RationalQuadratic {
    bandwidth: f64,
    exponent: f64,
    /// The same kernel as a sum of Gaussians, exact to rounding, for its spectrum.
    mixture: Mixture,
}

impl RationalQuadratic {
    /// The kernel of bandwidth `h` and exponent `a`.
    ///
    /// # Errors
    ///
    /// [`KernelError::Bandwidth`] unless `h` is positive and finite, [`KernelError::Exponent`]
    /// unless `0.05 <= a <= 100`.
    pub fn new(bandwidth: f64, exponent: f64) -> Result<Self, KernelError> {
        let bandwidth = check_bandwidth(bandwidth)?;
        if !(0.05..=100.0).contains(&exponent) {
            return Err(KernelError::Exponent(exponent));
        }
        let mixture = Mixture::new(&gaussian_components(bandwidth, exponent))?;
        Ok(Self {
            bandwidth,
            exponent,
            mixture,
        })
    }

    /// `d^2 / (2 a h^2)`.
    fn excess(&self, difference: f64) -> f64 {
        let t = difference / self.bandwidth;
        t * t / (2.0 * self.exponent)
    }

    /// The distance of the branch points `+- i h sqrt(2 a)` from the line.
    fn branch(&self) -> f64 {
        self.bandwidth * (2.0 * self.exponent).sqrt()
    }
}

/// `K(d) = E exp(-tau d^2 / (2 h^2))` with `tau ~ Gamma(a, rate a)`, by the trapezoidal rule in
/// `t = ln tau`. The integrand is analytic for `|Im t| < pi/2`, so a step of 0.3 has an error of
/// `exp(-pi^2 / 0.3) = 5e-15`; the range leaves out `exp(-37)` on either side.
fn gaussian_components(bandwidth: f64, exponent: f64) -> Vec<(f64, f64)> {
    const STEP: f64 = 0.3;
    // Relative to its maximum at t = 0, ln density = a (t + 1 - e^t).
    let ln_density = |t: f64| exponent * (t + 1.0 - t.exp());
    let mut components = Vec::new();
    for direction in [-1, 1] {
        let first = if direction < 0 { 1 } else { 0 };
        for j in first.. {
            let t = STEP * f64::from(direction * j);
            if ln_density(t) < -37.0 {
                break;
            }
            components.push((ln_density(t).exp(), bandwidth * (-0.5 * t).exp()));
        }
    }
    components
}

impl Kernel for RationalQuadratic {
    fn value(&self, difference: f64) -> f64 {
        (-self.exponent * self.excess(difference).ln_1p()).exp()
    }

    fn derivative(&self, difference: f64) -> f64 {
        let square = self.bandwidth * self.bandwidth;
        -difference / square * self.value(difference) / (1.0 + self.excess(difference))
    }

    fn fall(&self, difference: f64, step: f64) -> f64 {
        // ln K(d + e) - ln K(d) = -a ln(1 + (2 d e + e^2) / (2 a h^2 + d^2)).
        let numerator = (2.0 * difference + step) * step;
        let branch = self.branch();
        let ratio = numerator / (branch * branch + difference * difference);
        -self.value(difference) * (-self.exponent * ratio.ln_1p()).exp_m1()
    }

    fn reach(&self) -> f64 {
        f64::INFINITY
    }

    fn smooth_length(&self, distance: f64) -> f64 {
        // Half a panel must stay below 0.77 of the distance to the branch points; a large exponent
        // makes the kernel as steep as a Gaussian long before.
        let branch = self.branch();
        let near = (branch * branch + distance * distance).sqrt();
        let gaussian = 4.0 * (self.bandwidth * self.bandwidth + distance * distance).sqrt();
        near.min(gaussian)
    }

    fn spectrum(&self, omega: f64) -> Spectrum {
        self.mixture.spectrum(omega)
    }

    fn spectral_length(&self, omega: f64) -> f64 {
        // The transform decays like exp(-branch |w|) and has a branch point at 0, smoothed by the
        // widest Gaussian.
        self.mixture
            .spectral_length(0.0)
            .max(2.0 * omega)
            .min(8.0 / self.branch())
            .min(4.0 / self.bandwidth)
    }
}
