//! The kernel of the energy distance.

use super::laplace::growth;
use super::{Kernel, Spectrum};

/// `K(d) = -|d|`, conditionally positive definite: the discrepancy with it is the energy distance
/// `2 E|X - Y| - E|X - X'| - E|Y - Y'|`.
///
/// It has no bandwidth. At the kink `d = 0` its derivative is taken as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Energy;

impl Kernel for Energy {
    fn value(&self, difference: f64) -> f64 {
        -difference.abs()
    }

    fn derivative(&self, difference: f64) -> f64 {
        if difference == 0.0 {
            0.0
        } else {
            -difference.signum()
        }
    }

    fn fall(&self, difference: f64, step: f64) -> f64 {
        growth(difference, step)
    }

    fn reach(&self) -> f64 {
        f64::INFINITY
    }

    fn smooth_length(&self, _distance: f64) -> f64 {
        f64::INFINITY
    }

    fn has_kink(&self) -> bool {
        true
    }

    /// The second difference of `-|k|` is `-2` at 0 and 0 elsewhere, so
    /// `Theta = 1 / (2 sin^2(w/2))` and `T = cot(w/2)` (as limits of damped sums).
    fn spectrum(&self, omega: f64) -> Spectrum {
        let (sin, cos) = (0.5 * omega).sin_cos();
        Spectrum {
            even: 0.5 / (sin * sin),
            odd: cos / sin,
        }
    }

    fn spectral_length(&self, omega: f64) -> f64 {
        // At 0 the double pole is cancelled by the factor it is multiplied with.
        if omega == 0.0 {
            f64::INFINITY
        } else {
            2.0 * omega
        }
    }

    fn is_conditional(&self) -> bool {
        true
    }
}
