//! The exponential kernel.

use super::{Kernel, KernelError, Spectrum, check_bandwidth};

/// The Laplace kernel `K(d) = exp(-|d| / h)`.
///
/// It has a kink at 0, where its derivative is taken as 0. On a lattice this means that a sample
/// that has not moved yet feels the neighbours of its own point but not the point itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laplace {
    bandwidth: f64,
}

impl Laplace {
    /// The kernel of bandwidth `h`.
    ///
    /// # Errors
    ///
    /// [`KernelError::Bandwidth`] unless `h` is positive and finite.
    pub fn new(bandwidth: f64) -> Result<Self, KernelError> {
        check_bandwidth(bandwidth).map(|bandwidth| Self { bandwidth })
    }
}

impl Kernel for Laplace {
    fn value(&self, difference: f64) -> f64 {
        (-difference.abs() / self.bandwidth).exp()
    }

    fn derivative(&self, difference: f64) -> f64 {
        if difference == 0.0 {
            return 0.0;
        }
        -difference.signum() / self.bandwidth * self.value(difference)
    }

    fn fall(&self, difference: f64, step: f64) -> f64 {
        let exponent = -growth(difference, step) / self.bandwidth;
        if exponent > 1.0 {
            return self.value(difference + step) * (-exponent).exp_m1();
        }
        -self.value(difference) * exponent.exp_m1()
    }

    fn reach(&self) -> f64 {
        40.0 * self.bandwidth
    }

    fn smooth_length(&self, _distance: f64) -> f64 {
        // A 16-point rule integrates exp(-t) over 16 units to exp(-8) I_32(8) < 1e-19.
        16.0 * self.bandwidth
    }

    fn has_kink(&self) -> bool {
        true
    }

    /// The geometric series: `Theta = sinh(1/h) / (cosh(1/h) - cos w)`,
    /// `T = (1/h) sin w / (cosh(1/h) - cos w)`.
    fn spectrum(&self, omega: f64) -> Spectrum {
        // Everything divided by cosh(1/h), which overflows for small h.
        let a = (-1.0 / self.bandwidth).exp();
        let gap = -(-1.0 / self.bandwidth).exp_m1();
        let half_sine = (0.5 * omega).sin();
        let denominator = gap * gap + 4.0 * a * half_sine * half_sine;
        Spectrum {
            even: gap * (1.0 + a) / denominator,
            odd: 2.0 * a * omega.sin() / (self.bandwidth * denominator),
        }
    }

    fn spectral_length(&self, omega: f64) -> f64 {
        // The poles lie at +- i / h.
        (1.0 / self.bandwidth).max(2.0 * omega)
    }
}

/// `|d + e| - |d|` without cancellation.
pub(crate) fn growth(difference: f64, step: f64) -> f64 {
    let end = difference + step;
    if difference >= 0.0 && end >= 0.0 {
        step
    } else if difference <= 0.0 && end <= 0.0 {
        -step
    } else {
        end.abs() - difference.abs()
    }
}
