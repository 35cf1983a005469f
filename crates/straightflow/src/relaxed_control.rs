//! What REBAR and RELAX share: relaxed samples, their law given the hard ones, and the surrogate of
//! a control variate with its variance.
//!
//! With `z = φ + noise` and the hard sample `b = b(z)`, let `z̃` have the law of `z` given `b`. For
//! any `c`,
//!
//! ```text
//! g = (f(b) - c(z̃)) ∇ log q(b) + ∂_φ c(z) - ∂_φ c(z̃)
//! ```
//!
//! has the expectation of `f(b) ∇ log q(b)`. Expectations do not care how `z` and `z̃` depend on
//! each other, so here they are *tied*: `z̃ = z`, with the derivative of a variable that is drawn
//! given `b`. That leaves one evaluation of `c` instead of two, and
//!
//! ```text
//! g = (f(b) - c(z)) ∇ log q(b) + (1 - ∂z̃/∂φ)ᵀ ∇c(z)
//! ```

mod cost;
mod pass;
#[cfg(all(test, feature = "flex"))]
mod tests;

pub(crate) use cost::{RelaxedCost, check_temperature};
pub(crate) use pass::{RelaxedPass, Rows, tiled};

use burn::tensor::{Tensor, activation::softmax};

use crate::antithetic::along;
use crate::distribution::{Family, Law};
#[cfg(feature = "flex")]
use crate::ops::fused::control::controlled_bits;
use crate::ops::fused::{RelaxedBits, relaxed_bits};
use crate::relaxation::{harden, log_exponential, shifted};

/// Relaxed samples and the hard ones that belong to them, all constants.
#[derive(Clone, Debug)]
pub(crate) struct Relaxed {
    family: Family,
    /// The natural parameters plus noise, `[n, batch, d, k]`; their derivative is the identity.
    pub z: Tensor<4>,
    /// The hard samples.
    pub hard: Tensor<4>,
    /// `∇ log q(hard)`.
    score: Tensor<4>,
    /// Bernoulli: `1 - dz~/dlogit`. Categorical: `exp(z_i - z_max)`.
    weight: Tensor<4>,
    /// The probabilities of the categories, `[1, batch, d, k]`; none for bits.
    probability: Option<Tensor<4>>,
}

impl Relaxed {
    /// From uniform numbers `[n, batch, d, k]`.
    ///
    /// * Bernoulli: `z = φ + log(u/(1-u))` is positive where `u > 1 - p`. Given `b`, the uniform
    ///   number is `ũ = 1 - p + p v` or `(1 - p) v`, and `dz̃ / dφ` is `1 - (1-p)/ũ` or
    ///   `1 - p/(1-ũ)`.
    /// * Categorical: `z_i = φ_i + G_i`. Given that `b` is the largest, `z̃_b` is a Gumbel variable
    ///   around `log Σ_j exp(φ_j)`, and `exp(-z̃_i) = E_i exp(-φ_i) + exp(-z̃_b)` with exponential
    ///   `E_i`; so `∂z̃_i / ∂φ_j = (1 - ρ_i) δ_ij + ρ_i p_j` with `ρ_i = exp(z̃_i - z̃_b)`.
    pub fn new(law: &Law, u: Tensor<4>) -> Self {
        let family = law.family();
        let natural = law.natural().inner();
        if !family.is_one_hot() {
            let RelaxedBits {
                z,
                hard,
                score,
                weight,
            } = relaxed_bits(natural, u);
            return Self {
                family,
                z,
                hard,
                score,
                weight,
                probability: None,
            };
        }
        let natural = natural.unsqueeze::<4>();
        let z = natural.clone() - log_exponential(u);
        let hard = harden(family, z.clone());
        Self {
            family,
            score: law.constant().score(hard.clone()),
            hard,
            weight: shifted(z.clone()).exp(),
            probability: Some(softmax(natural, 3)),
            z,
        }
    }

    /// `(1 - ∂z̃/∂φ)ᵀ x`.
    fn difference(&self, x: Tensor<4>) -> Tensor<4> {
        let weighted = x * self.weight.clone();
        match &self.probability {
            Some(p) => weighted.clone() - p.clone() * weighted.sum_dim(3),
            None => weighted,
        }
    }

    /// `(1 - ∂z̃/∂φ) a`, the transpose of [`difference`](Self::difference).
    fn direction(&self, a: Tensor<4>) -> Tensor<4> {
        let a = match &self.probability {
            Some(p) => a.clone() - (a * p.clone()).sum_dim(3),
            None => a,
        };
        a * self.weight.clone()
    }

    /// `g = signal ∇ log q(b) + (1 - ∂z̃/∂φ)ᵀ slope`, and the derivatives of the mean of `g²` with
    /// respect to the control variate.
    fn estimate(&self, signal: Tensor<2>, slope: Tensor<4>) -> (Tensor<4>, ControlVariate) {
        #[cfg(feature = "flex")]
        if self.probability.is_none()
            && let Some(bits) = controlled_bits(&signal, &self.score, &self.weight, &slope)
        {
            let variance = ControlVariate {
                value: bits.by_value,
                gradient: bits.by_gradient,
            };
            return (bits.gradient, variance);
        }
        self.composed_estimate(signal, slope)
    }

    /// [`estimate`](Self::estimate) from tensor operations.
    fn composed_estimate(
        &self,
        signal: Tensor<2>,
        slope: Tensor<4>,
    ) -> (Tensor<4>, ControlVariate) {
        let score = self.score.clone();
        let gradient = signal.unsqueeze_dims::<4>(&[2, 3]) * score.clone() + self.difference(slope);
        let count = gradient.shape().num_elements() as f64;
        let twice = gradient.clone() * (2.0 / count);
        let variance = ControlVariate {
            value: -each_sum(twice.clone() * score),
            gradient: self.direction(twice),
        };
        (gradient, variance)
    }

    /// `z / temperature`, less a constant that a softmax does not see.
    fn logits(&self, temperature: Tensor<4>) -> Tensor<4> {
        let z = match self.family.is_one_hot() {
            true => shifted(self.z.clone()),
            false => self.z.clone(),
        };
        z / temperature
    }
}

/// A control variate at the relaxed samples.
#[derive(Clone, Debug)]
pub(crate) struct ControlVariate {
    /// `c(z)`, `[n, batch]`.
    pub value: Tensor<2>,
    /// `dc/dz`, `[n, batch, d, k]`.
    pub gradient: Tensor<4>,
}

impl ControlVariate {
    /// The products of all numbers with those of another one, summed: a scalar.
    pub fn dot(self, other: Self) -> Tensor<1> {
        (self.value * other.value).sum() + (self.gradient * other.gradient).sum()
    }
}

/// What an estimate with a control variate adds to the mean cost.
#[derive(Debug)]
pub(crate) struct Controlled {
    /// The gradient of the parameters, on their tape.
    pub model: Tensor<1>,
    /// The derivatives, constants, of the mean of the squared estimate over draws, batch and
    /// coordinates with respect to the control variate. What is learned is trained on their product
    /// with it.
    pub variance: ControlVariate,
}

/// The estimate for the costs `[n, batch]` of the hard samples, less a baseline `[batch]`. Of the
/// control variate and of the baseline only the values matter: nothing that is learned is on the
/// tape of the model.
pub(crate) fn controlled(
    law: &Law,
    relaxed: &Relaxed,
    values: Tensor<2>,
    control: ControlVariate,
    baseline: Option<Tensor<1>>,
) -> Controlled {
    let mut signal = values - control.value.inner();
    if let Some(baseline) = baseline {
        signal = signal - baseline.inner().unsqueeze_dim(0);
    }
    let (gradient, variance) = relaxed.estimate(signal, control.gradient.inner());
    Controlled {
        model: along(law, gradient),
        variance,
    }
}

/// The sums `[n, batch]` over the coordinates.
fn each_sum(x: Tensor<4>) -> Tensor<2> {
    let [n, batch, d, k] = x.dims();
    x.reshape([n, batch, d * k]).sum_dim(2).squeeze_dim(2)
}
