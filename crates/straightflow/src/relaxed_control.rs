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

use burn::tensor::{Tensor, activation::softmax};

use crate::antithetic::along;
use crate::distribution::{Family, Law};
use crate::error::Result;
use crate::estimate::facts::Entry;
use crate::estimate::layers::{Conditional, Pass, sum_of};
use crate::estimate::noise::NoiseSource;
use crate::estimate::objective::CountedObjective;
use crate::estimate::run::Estimator;
use crate::ops::fused::sigmoid;
use crate::relaxation::{harden, jacobian, log_exponential, relax, shifted};

/// How far the points of a directional difference are from their centre, in the coordinate that
/// moves most. In single precision a shorter reach loses more digits than it gains.
const REACH: f64 = 1e-2;
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
    /// Bernoulli: `1 - dz~/dlogit`. Categorical: `exp(z_i - z_max)`.
    weight: Tensor<4>,
    /// The probabilities of the categories, `[1, batch, d, k]`.
    probability: Tensor<4>,
}

impl Relaxed {
    /// From uniform numbers `[n, batch, d, k]`.
    ///
    /// * Bernoulli: `z = φ + log(u/(1-u))` is positive where `u > 1 - p`. Given `b`, the uniform
    ///   number is `ũ = 1 - p + p v` or `(1 - p) v`, and `dz̃ / dφ` is `1 - (1-p)/ũ` or
    ///   `1 - p/(1-ũ)`.
    /// * Categorical: `z_i = φ_i + G_i`. Given that `b` is the largest, `z̃_b` is a Gumbel variable
    ///   around `log Σ_j exp(φ_j)`, and `exp(-z̃_i) = E_i exp(-φ_i) + exp(-z̃_b)` with exponential
    ///   `E_i`; so `∂z̃_i / ∂φ_j = (1 - ρ_i) δ_ij + ρ_i p_j` with `ρ_i = exp(z̃_i - z̃_b)`.
    pub fn new(law: &Law, u: Tensor<4>) -> Self {
        let family = law.family();
        let natural = law.natural().inner().unsqueeze::<4>();
        if family.is_one_hot() {
            let z = natural.clone() - log_exponential(u);
            return Self {
                family,
                hard: harden(family, z.clone()),
                weight: shifted(z.clone()).exp(),
                probability: softmax(natural, 3),
                z,
            };
        }
        let (p, q) = (sigmoid(natural.clone()), sigmoid(-natural.clone()));
        let rest = -u.clone() + 1.0;
        let z = natural + u.clone().log() - rest.clone().log();
        let hard = harden(family, z.clone());
        let zero = -hard.clone() + 1.0;
        Self {
            family,
            weight: hard.clone() * (q / u) + zero * (p.clone() / rest),
            probability: p,
            z,
            hard,
        }
    }

    /// `(1 - ∂z̃/∂φ)ᵀ x`.
    fn difference(&self, x: Tensor<4>) -> Tensor<4> {
        let weighted = x * self.weight.clone();
        match self.family.is_one_hot() {
            true => weighted.clone() - self.probability.clone() * weighted.sum_dim(3),
            false => weighted,
        }
    }

    /// `(1 - ∂z̃/∂φ) a`, the transpose of [`difference`](Self::difference).
    fn direction(&self, a: Tensor<4>) -> Tensor<4> {
        let a = match self.family.is_one_hot() {
            true => {
                let along = (a.clone() * self.probability.clone()).sum_dim(3);
                a - along
            }
            false => a,
        };
        a * self.weight.clone()
    }

    /// `z / temperature`, less a constant that a softmax does not see, on the temperature's tape.
    fn logits(&self, temperature: Tensor<1>) -> Tensor<4> {
        let z = match self.family.is_one_hot() {
            true => shifted(self.z.clone()),
            false => self.z.clone(),
        };
        z / temperature.reshape([1, 1, 1, 1])
    }
}

/// A control variate at the relaxed samples, on the tape of what it learns.
#[derive(Clone, Debug)]
pub(crate) struct ControlVariate {
    /// `c(z)`, `[n, batch]`.
    pub value: Tensor<2>,
    /// `dc/dz`, `[n, batch, d, k]`.
    pub gradient: Tensor<4>,
}

/// What an estimate with a control variate adds to the mean cost.
#[derive(Debug)]
pub(crate) struct Controlled {
    /// The gradient of the parameters, on their tape.
    pub model: Tensor<1>,
    /// The mean of `g^2` over draws, batch and coordinates, on the tape of what is learned.
    pub variance: Tensor<1>,
    /// `g` itself, a constant `[n, batch, d, k]`.
    pub gradient: Tensor<4>,
}

/// The estimate for the costs `[n, batch]` of the hard samples. A baseline `[batch]` is part of
/// what is learned. Nothing of the model is on the tape of the variance, and nothing that is
/// learned on that of the model.
pub(crate) fn controlled(
    law: &Law,
    relaxed: &Relaxed,
    values: Tensor<2>,
    control: ControlVariate,
    baseline: Option<Tensor<1>>,
) -> Controlled {
    let mut signal = values - control.value;
    if let Some(baseline) = baseline {
        signal = signal - baseline.unsqueeze_dim(0);
    }
    let score = law.constant().score(relaxed.hard.clone());
    let correction = relaxed.difference(control.gradient);
    let gradient = signal.clone().unsqueeze_dims::<4>(&[2, 3]) * score + correction.clone();
    let log_prob = law.log_prob(relaxed.hard.clone());
    Controlled {
        model: (log_prob * signal.inner()).mean() + along(law, correction.inner()),
        gradient: gradient.clone().inner(),
        variance: gradient.square().mean(),
    }
}

/// The cost of the softened samples `σ(z/τ)` or `softmax(z/τ)`: REBAR's control variate, up to its
/// scale.
#[derive(Clone, Debug)]
pub(crate) struct RelaxedCost {
    /// `f(s)`, `[n, batch]`, and `df/dz`, both constants.
    pub control: ControlVariate,
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
        let temperature = temperature(log_temperature.inner());
        let logits = relaxed.logits(temperature.clone());
        let softened = relax(relaxed.family, logits.clone());
        let (value, slope) = objective.value_and_gradient(softened, law)?;
        let by_logits = jacobian(relaxed.family, logits, slope.clone());
        let gradient = by_logits / temperature.reshape([1, 1, 1, 1]);
        Ok(Self {
            control: ControlVariate { value, gradient },
            slope,
        })
    }

    /// The control variate times a number that is learned.
    pub fn scaled(&self, scale: Tensor<1>) -> ControlVariate {
        ControlVariate {
            value: self.control.value.clone() * scale.clone().reshape([1, 1]),
            gradient: self.control.gradient.clone() * scale.reshape([1, 1, 1, 1]),
        }
    }

    /// A scalar with the gradient of the variance with respect to the temperature, up to the square
    /// of the reach: two evaluations and two backward passes for each draw.
    ///
    /// With `a = 2 g / count` held constant, `mean(g²)` and `a · g` have the same gradient with
    /// respect to `τ`. In the latter `∇f(s)` occurs only along a direction `w`, and `w · ∇f(s) =
    /// (f(s + ε w) - f(s - ε w)) / (2ε) + O(ε²)`, whose gradient needs first derivatives of `f`
    /// only. The points may leave the unit cube by the reach.
    pub fn tuning(
        &self,
        law: &Law,
        relaxed: &Relaxed,
        log_temperature: Tensor<1>,
        scale: Tensor<1>,
        gradient: Tensor<4>,
        objective: &CountedObjective,
    ) -> Result<Tensor<1>> {
        let [n, batch, d, k] = gradient.dims();
        let count = (n * batch * d * k) as f64;
        let a = gradient * scale.inner().reshape([1, 1, 1, 1]) * (2.0 / count);
        let score = law.constant().score(relaxed.hard.clone());
        let along_score = (a.clone() * score).sum_dim(3).sum_dim(2);

        let temperature = temperature(log_temperature);
        let logits = relaxed.logits(temperature.clone());
        let softened = relax(relaxed.family, logits.clone());
        let direction = jacobian(relaxed.family, logits, relaxed.direction(a))
            / temperature.reshape([1, 1, 1, 1]);
        let length = direction.clone().inner().abs().max_dim(3).max_dim(2);
        let step = length.clamp_min(SHORTEST).recip() * REACH;
        let offset = direction * step.clone();
        let (up, down) = (softened.clone() + offset.clone(), softened.clone() - offset);
        let ends = Tensor::cat(vec![up.clone().inner(), down.clone().inner()], 0);
        let (_, slopes) = objective.value_and_gradient(ends, law)?;
        let ends = slopes.clone().narrow(0, 0, n) * up - slopes.narrow(0, n, n) * down;
        let free = ends * (step * 2.0).recip();
        // The score's part needs the gradient at the centre only, and that is known.
        let known = softened * self.slope.clone() * along_score;
        Ok((free - known).sum())
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
