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

use burn::tensor::{DType, Tensor, activation::softmax};

use crate::antithetic::along;
use crate::distribution::{Family, Law};
use crate::error::Result;
use crate::estimate::facts::Entry;
use crate::estimate::layers::{Conditional, Pass, sum_of};
use crate::estimate::noise::NoiseSource;
use crate::estimate::objective::CountedObjective;
use crate::estimate::run::Estimator;
#[cfg(feature = "flex")]
use crate::ops::fused::control::{Origin, controlled_bits};
use crate::ops::fused::{RelaxedBits, relaxed_bits};
use crate::relaxation::{harden, jacobian, log_exponential, relax, shifted};

/// Directions shorter than this are as good as zero; it keeps the reciprocal finite.
const SHORTEST: f64 = 1e-20;
/// The logarithms of the temperatures that are used.
const LOG_TEMPERATURES: (f64, f64) = (-9.0, 9.0);

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

/// The cost of the softened samples `σ(z/τ)` or `softmax(z/τ)`: REBAR's control variate, up to its
/// scale. All of it is constant.
#[derive(Clone, Debug)]
pub(crate) struct RelaxedCost {
    /// `f(s)`, `[n, batch]`, and `df/dz`.
    pub control: ControlVariate,
    temperature: Tensor<4>,
    logits: Tensor<4>,
    softened: Tensor<4>,
    /// `df/ds`.
    slope: Tensor<4>,
}

impl RelaxedCost {
    /// One evaluation and one backward pass for each draw.
    pub fn new(
        law: &Law,
        relaxed: &Relaxed,
        log_temperature: Tensor<1>,
        objective: &CountedObjective,
    ) -> Result<Self> {
        let temperature = temperature(log_temperature.inner()).reshape([1, 1, 1, 1]);
        let logits = relaxed.logits(temperature.clone());
        let softened = relax(relaxed.family, logits.clone());
        let (value, slope) = objective.value_and_gradient(softened.clone(), law)?;
        let by_logits = jacobian(relaxed.family, logits.clone(), slope.clone());
        let gradient = by_logits / temperature.clone();
        Ok(Self {
            control: ControlVariate { value, gradient },
            temperature,
            logits,
            softened,
            slope,
        })
    }

    /// The control variate times a number.
    pub fn scaled(&self, scale: Tensor<1>) -> ControlVariate {
        let scale = scale.inner();
        ControlVariate {
            value: self.control.value.clone() * scale.clone().reshape([1, 1]),
            gradient: self.control.gradient.clone() * scale.reshape([1, 1, 1, 1]),
        }
    }

    /// A scalar with the gradient of the variance with respect to the temperature: one evaluation
    /// and one backward pass for each draw.
    ///
    /// The derivatives of the variance with respect to `c = η f(s)` and `∇c` are known. What `∇c`
    /// gets with respect to `t = log τ` has `w · ∇f(s)` in it, with a direction `w`, and with
    /// `s' = ds/dt` the derivative of that is `w' · ∇f(s) + s' · ∇²f(s) w`. The product with the
    /// Hessian is the difference of the gradients at `s + ε w` and at `s`, which is known. Its `ε`
    /// balances truncation and rounding: the coordinate that moves most moves by the root of the
    /// machine's precision, which may be out of the unit cube.
    pub fn tuning(
        &self,
        law: &Law,
        log_temperature: Tensor<1>,
        scale: Tensor<1>,
        variance: &ControlVariate,
        objective: &CountedObjective,
    ) -> Result<Tensor<1>> {
        let probe = self.probe(law.family(), scale.inner().reshape([1, 1, 1, 1]), variance);
        let (_, there) = objective.value_and_gradient(probe.end, law)?;
        let bent = ((there - self.slope.clone()) * probe.lever).sum();
        Ok((log_temperature * (bent + probe.rest)).sum())
    }

    fn probe(&self, family: Family, scale: Tensor<4>, variance: &ControlVariate) -> Probe {
        #[cfg(feature = "flex")]
        if !family.is_one_hot() {
            let origin = Origin {
                logits: &self.logits,
                slope: &self.slope,
                by_value: &variance.value,
                by_gradient: &variance.gradient,
                scale: &scale,
                temperature: &self.temperature,
                reach: reach(self.logits.dtype()),
                shortest: SHORTEST,
            };
            if let Some(([end, lever], rest)) = origin.probe() {
                return Probe { end, lever, rest };
            }
        }
        self.composed_probe(family, scale, variance)
    }

    /// [`probe`](Self::probe) from tensor operations.
    fn composed_probe(&self, family: Family, scale: Tensor<4>, variance: &ControlVariate) -> Probe {
        let arriving = variance.gradient.clone() * (scale.clone() / self.temperature.clone());
        let along = variance.value.clone().unsqueeze_dims::<4>(&[2, 3]) * scale;
        let path = Softening {
            family,
            logits: &self.logits,
            softened: &self.softened,
        };
        let centre = path.slope();
        let direction = jacobian(family, self.logits.clone(), arriving.clone());
        let turn = path.turned(&centre, arriving) - direction.clone();
        let length = direction.clone().abs().max_dim(3).max_dim(2);
        let step = length.clamp_min(SHORTEST).recip() * reach(self.logits.dtype());
        Probe {
            end: self.softened.clone() + direction * step.clone(),
            lever: centre.clone() / step,
            rest: (self.slope.clone() * (turn + along * centre)).sum(),
        }
    }
}

/// A difference of gradients along the direction in which the temperature acts, all constants.
#[derive(Debug)]
struct Probe {
    /// The point beside the softened sample.
    end: Tensor<4>,
    /// What the difference of the gradients at both points is multiplied with.
    lever: Tensor<4>,
    /// What the gradient at the sample itself contributes, a scalar.
    rest: Tensor<1>,
}

/// How far a difference of gradients reaches in the coordinate that moves most.
fn reach(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON.sqrt(),
        _ => f64::from(f32::EPSILON).sqrt(),
    }
}

/// Softened samples as a function of `t = log τ`, whose logits have the derivative `-logits`.
struct Softening<'a> {
    family: Family,
    logits: &'a Tensor<4>,
    softened: &'a Tensor<4>,
}

impl Softening<'_> {
    /// `s' = ds/dt`.
    fn slope(&self) -> Tensor<4> {
        -jacobian(self.family, self.logits.clone(), self.logits.clone())
    }

    /// `(dJ/dt) x` of the Jacobian `J` of the softened samples with respect to their logits, given
    /// their own derivative: `J` is `s (1 - s)` for bits and `diag(s) - s sᵀ` for categories.
    fn turned(&self, slope: &Tensor<4>, x: Tensor<4>) -> Tensor<4> {
        let (s, slope) = (self.softened.clone(), slope.clone());
        match self.family.is_one_hot() {
            true => {
                let along = (s.clone() * x.clone()).sum_dim(3);
                let turned = (slope.clone() * x.clone()).sum_dim(3);
                slope * (x - along) - s * turned
            }
            false => slope * (s * -2.0 + 1.0) * x,
        }
    }
}

/// The temperature within its range. The derivative goes on outside of it, so that a learned one
/// finds its way back.
fn temperature(log_temperature: Tensor<1>) -> Tensor<1> {
    let (lowest, highest) = LOG_TEMPERATURES;
    let value = log_temperature.clone().inner();
    let beyond = value.clone().clamp(lowest, highest) - value;
    (log_temperature + beyond).exp()
}

/// Checks a configured temperature.
pub(crate) fn check_temperature(entry: &Entry, temperature: f64) -> Result<()> {
    let (lowest, highest) = LOG_TEMPERATURES;
    if !(lowest.exp()..=highest.exp()).contains(&temperature) {
        let (lowest, highest) = (lowest.exp(), highest.exp());
        return Err(entry.invalid(format!(
            "`temperature` must be from {lowest:.1e} to {highest:.1e}, got {temperature}"
        )));
    }
    Ok(())
}

/// Which layer it is, and the draws that its law has a row for, besides batch elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub layer: usize,
    pub draws: usize,
}

/// A conditioning input `[batch, features]` for so many draws, draw by draw.
pub(crate) fn tiled(input: &Tensor<2>, draws: usize) -> Tensor<2> {
    match draws {
        1 => input.clone(),
        draws => input.clone().repeat_dim(0, draws),
    }
}

/// Hard samples of all layers, with the relaxed samples behind each layer.
pub(crate) struct RelaxedPass {
    pub pass: Pass,
    pub relaxed: Vec<Relaxed>,
    noise: Vec<Tensor<4>>,
}

impl RelaxedPass {
    pub fn new(
        estimator: &impl Estimator,
        noise: &NoiseSource,
        objective: &CountedObjective,
    ) -> Result<Self> {
        let (mut relaxed, mut numbers) = (Vec::new(), Vec::new());
        let pass = Pass::new(estimator, noise, objective, |law, noise| {
            let u = noise.get(0);
            let layer = Relaxed::new(law, u.clone());
            let hard = layer.hard.clone();
            relaxed.push(layer);
            numbers.push(u);
            hard
        })?;
        Ok(Self {
            pass,
            relaxed,
            noise: numbers,
        })
    }

    /// The rows of a layer: those of the lowest are batch elements, those of the others draws too.
    pub fn rows(&self, layer: usize) -> Rows {
        let draws = match layer {
            0 => 1,
            _ => self.pass.z[0].dims()[0],
        };
        Rows { layer, draws }
    }

    /// The sum over the layers of what `rule` makes of each: of its number, of the hard samples
    /// below it, of the costs in the shape of its law, and of the cost as a function of its relaxed
    /// sample, with those below hard and those above relaxed, at the temperatures of their layers.
    ///
    /// The layers above use the noise of the hard pass, which does not depend on that of the layer:
    /// that keeps the estimate unbiased, and `f(s)` close to `f(b)`.
    pub fn sum_layers(
        &self,
        objective: &CountedObjective,
        cost: &Tensor<2>,
        log_temperatures: &[Tensor<1>],
        rule: impl Fn(usize, &[Tensor<4>], Tensor<2>, &CountedObjective) -> Result<Tensor<1>>,
    ) -> Result<Tensor<1>> {
        let Pass { laws, z } = &self.pass;
        let soften = |layer: usize, law: &Law| {
            let rows = law.dims()[0];
            let u = self.noise[layer].clone();
            let [n, own, d, k] = u.dims();
            let u = u
                .reshape([1, n * own, d, k])
                .repeat_dim(1, rows / (n * own));
            let temperature = temperature(log_temperatures[layer].clone().inner());
            Ok(soften(law, u, temperature))
        };
        let term = |(layer, law): (usize, &Law)| {
            let below = &z[..layer];
            let conditional = Conditional::new(objective, law, below, &laws[0], &soften, false);
            let [n, rows, ..] = self.relaxed[layer].z.dims();
            let values = cost.clone().inner().reshape([n, rows]);
            debug_assert_eq!(rows, law.dims()[0]);
            rule(layer, below, values, &conditional.counted())
        };
        sum_of(laws.iter().enumerate().map(term))
    }
}

/// The softened sample of uniform numbers, on the tape of the law.
fn soften(law: &Law, u: Tensor<4>, temperature: Tensor<1>) -> Tensor<4> {
    let natural = law.natural().unsqueeze::<4>();
    let family = law.family();
    let z = match family.is_one_hot() {
        true => {
            let z = natural - log_exponential(u);
            let largest = z.clone().inner().max_dim(3);
            z - largest
        }
        false => natural + (u.clone().log() - (-u + 1.0).log()),
    };
    relax(family, z / temperature.reshape([1, 1, 1, 1]))
}

#[cfg(all(test, feature = "flex"))]
mod tests;
