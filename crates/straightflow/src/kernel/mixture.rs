//! Sums of Gaussian kernels.

use super::rbf::gaussian_spectrum;
use super::{Kernel, KernelError, Rbf, Spectrum, check_bandwidth};

/// `K(d) = sum_i a_i exp(-d^2 / (2 h_i^2))` with weights `a_i` scaled to sum to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    components: Vec<(f64, Rbf)>,
    narrowest: f64,
    widest: f64,
    /// `sum_i a_i K_i(k)` and `-sum_i a_i K_i'(k)` for `k = 0, 1, ..` over the components narrower
    /// than 1: their spectra are one short Fourier series.
    narrow: [(f64, f64); NARROW_TERMS],
}

/// `K(10) < exp(-50)` for bandwidths below 1.
const NARROW_TERMS: usize = 10;

impl Mixture {
    /// The mixture of pairs of weight and bandwidth.
    ///
    /// # Errors
    ///
    /// [`KernelError::EmptyMixture`] for no pair, [`KernelError::Weight`] and
    /// [`KernelError::Bandwidth`] for numbers that are not positive and finite.
    pub fn new(components: &[(f64, f64)]) -> Result<Self, KernelError> {
        if components.is_empty() {
            return Err(KernelError::EmptyMixture);
        }
        let total: f64 = components.iter().map(|(weight, _)| weight).sum();
        let (mut narrowest, mut widest) = (f64::INFINITY, 0.0_f64);
        let mut checked = Vec::with_capacity(components.len());
        for &(weight, bandwidth) in components {
            check_bandwidth(weight).map_err(|_| KernelError::Weight(weight))?;
            checked.push((weight / total, Rbf::new(bandwidth)?));
            narrowest = narrowest.min(bandwidth);
            widest = widest.max(bandwidth);
        }
        let mut narrow = [(0.0, 0.0); NARROW_TERMS];
        for (weight, kernel) in checked.iter().filter(|(_, kernel)| is_narrow(kernel)) {
            for (k, (value, slope)) in narrow.iter_mut().enumerate() {
                *value += weight * kernel.value(k as f64);
                *slope -= weight * kernel.derivative(k as f64);
            }
        }
        Ok(Self {
            components: checked,
            narrowest,
            widest,
            narrow,
        })
    }

    fn sum(&self, part: impl Fn(&Rbf) -> f64) -> f64 {
        self.components
            .iter()
            .map(|(weight, kernel)| weight * part(kernel))
            .sum()
    }
}

fn is_narrow(kernel: &Rbf) -> bool {
    kernel.bandwidth() < 1.0
}

impl Kernel for Mixture {
    fn value(&self, difference: f64) -> f64 {
        self.sum(|kernel| kernel.value(difference))
    }

    fn derivative(&self, difference: f64) -> f64 {
        self.sum(|kernel| kernel.derivative(difference))
    }

    fn fall(&self, difference: f64, step: f64) -> f64 {
        self.sum(|kernel| kernel.fall(difference, step))
    }

    fn reach(&self) -> f64 {
        super::rbf::REACH * self.widest
    }

    fn smooth_length(&self, _distance: f64) -> f64 {
        4.0 * self.narrowest
    }

    fn gaussians(&self) -> Option<Vec<(f64, f64)>> {
        let pairs = self.components.iter();
        Some(pairs.map(|(a, kernel)| (*a, kernel.bandwidth())).collect())
    }

    fn spectrum(&self, omega: f64) -> Spectrum {
        let mut total = Spectrum {
            even: self.narrow[0].0,
            odd: 0.0,
        };
        for (k, &(value, slope)) in self.narrow.iter().enumerate().skip(1) {
            if value == 0.0 {
                break;
            }
            let (sin, cos) = (k as f64 * omega).sin_cos();
            total.even += 2.0 * value * cos;
            total.odd += 2.0 * slope * sin;
        }
        let wide = |(_, kernel): &&(f64, Rbf)| !is_narrow(kernel);
        for (weight, kernel) in self.components.iter().filter(wide) {
            let part = gaussian_spectrum(kernel.bandwidth(), omega);
            total.even += weight * part.even;
            total.odd += weight * part.odd;
        }
        total
    }

    fn spectral_length(&self, omega: f64) -> f64 {
        // Components beyond ten of their own standard deviations are below exp(-50) and need no
        // resolution.
        let alive = |kernel: &Rbf| kernel.bandwidth() * omega < 10.0;
        let bandwidths = self.components.iter().map(|(_, kernel)| kernel);
        let widest = bandwidths
            .filter(|kernel| alive(kernel))
            .fold(0.0, |widest: f64, kernel| widest.max(kernel.bandwidth()));
        4.0 / widest.max(self.narrowest)
    }
}
