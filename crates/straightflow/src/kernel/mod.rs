//! Kernels `K(x, y) = K(x - y)` for the maximum mean discrepancy.
//!
//! A kernel gives its values and, for sums over the integers, its *lattice spectrum*: the expected
//! kernel between two integer laws is an integral over one period of the spectrum times their
//! characteristic functions, at a cost that does not grow with the laws.

mod bandwidth;
mod energy;
mod family;
mod laplace;
mod mixture;
mod rational_quadratic;
mod rbf;

use std::fmt::Debug;

pub use bandwidth::Bandwidth;
pub use energy::Energy;
pub use family::KernelFamily;
pub use laplace::Laplace;
pub use mixture::Mixture;
pub use rational_quadratic::RationalQuadratic;
pub(crate) use rbf::REACH;
pub use rbf::Rbf;

/// Why a kernel or a bandwidth rule was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// A bandwidth must be a positive finite number.
    #[error("a bandwidth must be positive and finite, got {0}")]
    Bandwidth(f64),
    /// The exponent of a rational quadratic kernel is outside the supported range.
    #[error("the exponent of a rational quadratic kernel must lie in [0.05, 100], got {0}")]
    Exponent(f64),
    /// A weight of a mixture must be a positive finite number.
    #[error("a mixture weight must be positive and finite, got {0}")]
    Weight(f64),
    /// A mixture needs at least one bandwidth.
    #[error("a mixture of kernels needs at least one bandwidth")]
    EmptyMixture,
    /// The text is neither a number nor a number of standard deviations.
    #[error("cannot read {0:?} as a bandwidth: write `1.5`, `3sd` or `3sd>0.5`")]
    BandwidthText(String),
    /// The text does not name a kernel.
    #[error(
        "cannot read {0:?} as a kernel: write `rbf`, `laplace`, `energy`, `rational-quadratic:1` \
         or `mixture:0.5+1+2`"
    )]
    KernelText(String),
}

/// The lattice transforms of a kernel at one angular frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spectrum {
    /// `Theta(omega) = sum_k K(k) cos(k omega)` over all integers `k`.
    pub even: f64,
    /// `T(omega) = -sum_k K'(k) sin(k omega)` over all integers `k`.
    pub odd: f64,
}

/// A symmetric, translation-invariant kernel on the real line.
pub trait Kernel: Debug + Send + Sync {
    /// `K(d)`.
    fn value(&self, difference: f64) -> f64;

    /// `K'(d)`. At a kink (`d = 0` of [`Laplace`] and [`Energy`]) it is 0, the mean of the two
    /// one-sided slopes.
    fn derivative(&self, difference: f64) -> f64;

    /// `K(d) - K(d + e)` without cancellation for small `e`.
    fn fall(&self, difference: f64, step: f64) -> f64;

    /// A distance beyond which `K` and its differences are below the rounding of `K(0)`; infinite
    /// for kernels with heavy tails.
    fn reach(&self) -> f64;

    /// How long a panel that comes no nearer to the centre than `distance` may be, so that
    /// 16-point Gauss rules resolve `K` on it to rounding.
    fn smooth_length(&self, distance: f64) -> f64;

    /// Whether `K` has a kink at 0.
    fn has_kink(&self) -> bool {
        false
    }

    /// The kernel as a finite sum of Gaussians, in pairs of weight and bandwidth, if it is one.
    fn gaussians(&self) -> Option<Vec<(f64, f64)>> {
        None
    }

    /// The lattice transforms at a frequency in `(0, pi]`.
    fn spectrum(&self, omega: f64) -> Spectrum;

    /// How long a panel of frequencies that starts at `omega` may be, so that 16-point Gauss rules
    /// resolve the spectrum on it to rounding.
    fn spectral_length(&self, omega: f64) -> f64;

    /// Whether the kernel is only conditionally positive definite: `Theta` is then not integrable
    /// at 0, and expectations use `|cf|^2 - 1` in place of `|cf|^2`.
    fn is_conditional(&self) -> bool {
        false
    }
}

/// Accepts a bandwidth that is positive and finite.
pub(crate) fn check_bandwidth(bandwidth: f64) -> Result<f64, KernelError> {
    if bandwidth > 0.0 && bandwidth.is_finite() {
        Ok(bandwidth)
    } else {
        Err(KernelError::Bandwidth(bandwidth))
    }
}
