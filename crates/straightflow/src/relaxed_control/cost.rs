//! The cost of softened samples as a control variate, and the tuning of their temperature.

use burn::tensor::{DType, Tensor};

use super::{ControlVariate, Relaxed};
use crate::distribution::{Family, Law};
use crate::error::Result;
use crate::estimate::facts::Entry;
use crate::estimate::objective::CountedObjective;
#[cfg(feature = "flex")]
use crate::ops::fused::control::Origin;
use crate::relaxation::{jacobian, relax};

/// Directions shorter than this are as good as zero; it keeps the reciprocal finite.
const SHORTEST: f64 = 1e-20;
/// The logarithms of the temperatures that are used.
const LOG_TEMPERATURES: (f64, f64) = (-9.0, 9.0);

/// The cost of the softened samples `σ(z/τ)` or `softmax(z/τ)`: REBAR's control variate, up to its
/// scale. All of it is constant.
#[derive(Clone, Debug)]
pub(crate) struct RelaxedCost {
    /// `f(s)`, `[n, batch]`, and `df/dz`.
    pub control: ControlVariate,
    pub(super) temperature: Tensor<4>,
    pub(super) logits: Tensor<4>,
    pub(super) softened: Tensor<4>,
    /// `df/ds`.
    pub(super) slope: Tensor<4>,
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

    pub(super) fn probe(
        &self,
        family: Family,
        scale: Tensor<4>,
        variance: &ControlVariate,
    ) -> Probe {
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
    pub(super) fn composed_probe(
        &self,
        family: Family,
        scale: Tensor<4>,
        variance: &ControlVariate,
    ) -> Probe {
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
pub(super) struct Probe {
    /// The point beside the softened sample.
    pub end: Tensor<4>,
    /// What the difference of the gradients at both points is multiplied with.
    pub lever: Tensor<4>,
    /// What the gradient at the sample itself contributes, a scalar.
    pub rest: Tensor<1>,
}

/// How far a difference of gradients reaches in the coordinate that moves most.
pub(super) fn reach(dtype: DType) -> f64 {
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
pub(super) fn temperature(log_temperature: Tensor<1>) -> Tensor<1> {
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
