//! The Gaussian kernel.

use std::f64::consts::{PI, TAU};

use super::{Kernel, KernelError, Spectrum, check_bandwidth};

/// The radial basis function kernel `K(d) = exp(-d^2 / (2 h^2))`.
///
/// ```
/// use straightflow::kernel::{Kernel, Rbf};
///
/// let kernel = Rbf::new(2.0)?;
/// assert_eq!(kernel.value(2.0), (-0.5_f64).exp());
/// # Ok::<(), straightflow::kernel::KernelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rbf {
    bandwidth: f64,
}

impl Rbf {
    /// The kernel of bandwidth `h`.
    ///
    /// # Errors
    ///
    /// [`KernelError::Bandwidth`] unless `h` is positive and finite.
    pub fn new(bandwidth: f64) -> Result<Self, KernelError> {
        check_bandwidth(bandwidth).map(|bandwidth| Self { bandwidth })
    }

    /// The bandwidth `h`.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }
}

impl Kernel for Rbf {
    fn value(&self, difference: f64) -> f64 {
        let t = difference / self.bandwidth;
        (-0.5 * t * t).exp()
    }

    fn derivative(&self, difference: f64) -> f64 {
        -difference / (self.bandwidth * self.bandwidth) * self.value(difference)
    }

    fn fall(&self, difference: f64, step: f64) -> f64 {
        let square = self.bandwidth * self.bandwidth;
        let exponent = -(2.0 * difference + step) * step / (2.0 * square);
        if exponent > 1.0 {
            // The end is higher than the start, which may have underflowed.
            let back = self.value(difference + step);
            return back * (-exponent).exp_m1();
        }
        -self.value(difference) * exponent.exp_m1()
    }

    fn reach(&self) -> f64 {
        REACH * self.bandwidth
    }

    fn smooth_length(&self, _distance: f64) -> f64 {
        4.0 * self.bandwidth
    }

    fn gaussians(&self) -> Option<Vec<(f64, f64)>> {
        Some(vec![(1.0, self.bandwidth)])
    }

    fn spectrum(&self, omega: f64) -> Spectrum {
        gaussian_spectrum(self.bandwidth, omega)
    }

    fn spectral_length(&self, _omega: f64) -> f64 {
        4.0 / self.bandwidth
    }
}

/// `exp(-REACH^2 / 2) = 4e-17`: what is further away than this many bandwidths is left out.
pub(crate) const REACH: f64 = 8.7;

/// The lattice transforms of `exp(-d^2 / (2 h^2))`.
pub(crate) fn gaussian_spectrum(bandwidth: f64, omega: f64) -> Spectrum {
    let mut spectrum = Spectrum {
        even: 0.0,
        odd: 0.0,
    };
    if bandwidth < 1.0 {
        // The sums over the lattice themselves; K(10) < exp(-50).
        spectrum.even = 1.0;
        for k in 1..10 {
            let k = f64::from(k);
            let value = 2.0 * (-0.5 * (k / bandwidth).powi(2)).exp();
            if value == 0.0 {
                break;
            }
            let (sin, cos) = (k * omega).sin_cos();
            spectrum.even += value * cos;
            spectrum.odd += value * k / (bandwidth * bandwidth) * sin;
        }
        return spectrum;
    }
    // Poisson summation: the transform of the line, h sqrt(2 pi) exp(-h^2 w^2 / 2), folded onto
    // one period. On (0, pi] the images |j| > 1 are below exp(-44).
    let peak = bandwidth * TAU.sqrt();
    for w in [omega, omega - TAU, omega + TAU] {
        let t = bandwidth * w;
        if t.abs() > 39.0 {
            break;
        }
        let height = peak * (-0.5 * t * t).exp();
        spectrum.even += height;
        spectrum.odd += height * w;
    }
    if omega >= PI {
        // Odd and periodic, so zero there.
        spectrum.odd = 0.0;
    }
    spectrum
}
