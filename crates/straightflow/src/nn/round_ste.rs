//! Rounding to a lattice with a straight-through gradient.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::Tensor;

use super::{refuse, round_at_random, straight_through};
use crate::Key;
use crate::error::Result;
use crate::gradient::with_gradient;

/// The name of the layer in errors.
const LAYER: &str = "RoundSte";

/// Configuration of [`RoundSte`].
#[derive(Config, Debug, PartialEq)]
pub struct RoundSteConfig {
    /// The distance of two neighbours of the lattice. Default: 1
    #[config(default = 1.0)]
    pub step: f64,
    /// The least value, a multiple of the step. Default: none
    pub min: Option<f64>,
    /// The largest value, a multiple of the step. Default: none
    pub max: Option<f64>,
}

impl RoundSteConfig {
    /// The layer. It has no parameters, so it needs no device.
    ///
    /// # Errors
    ///
    /// If the step is not positive and finite, a bound is not a multiple of it, or the bounds leave
    /// fewer than two values.
    pub fn init(&self) -> Result<RoundSte> {
        let step = self.step;
        if !(step.is_finite() && step > 0.0) {
            return Err(refuse(LAYER, "step", step, "positive and finite"));
        }
        let level = |option, bound: Option<f64>| match bound {
            None => Ok(None),
            Some(bound) => {
                let level = (bound / step).round();
                // A bound such as 0.3 with step 0.1 is a multiple up to rounding only.
                let near = (bound / step - level).abs() <= 1e-9 * level.abs().max(1.0);
                match near && level.is_finite() {
                    true => Ok(Some(level)),
                    false => Err(refuse(LAYER, option, bound, "a multiple of the step")),
                }
            }
        };
        let (min, max) = (level("min", self.min)?, level("max", self.max)?);
        if let (Some(low), Some(high)) = (min, max)
            && low >= high
        {
            return Err(refuse(LAYER, "min", self.min, "less than `max`"));
        }
        Ok(RoundSte { step, min, max })
    }
}

/// Rounds to a lattice of a given step, with the identity as gradient.
///
/// ```text
/// nearest     s round(clamp(x / s, lo, hi))            a half goes to the even neighbour
/// stochastic  s (floor(y) + b),  y = clamp(x / s, lo, hi),  b ~ Bernoulli(y - floor(y))
/// backward    dx = dz where lo <= x / s <= hi, else 0
/// ```
///
/// `lo` and `hi` are the bounds in steps; without bounds nothing is clamped. The mean of stochastic
/// rounding is the clamped input, so its straight-through gradient is the derivative of the mean.
/// The expected cost is the linear interpolant of the cost on the lattice: with a quadratic cost of
/// second derivative `c`, the gradient's mean is off by `c s (r - 1/2)`, where `r` is the position
/// in the cell.
///
/// Reference: Y. Bengio, N. Leonard, A. Courville, *Estimating or Propagating Gradients Through
/// Stochastic Neurons*, arXiv 1308.3432; S. Gupta et al., *Deep Learning with Limited Numerical
/// Precision*, arXiv 1502.02551 (stochastic rounding).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::nn::RoundSteConfig;
///
/// let config = RoundSteConfig::new().with_step(0.5).with_min(Some(-1.0)).with_max(Some(1.0));
/// let round = config.init()?;
/// let device = Device::flex().autodiff();
/// let x = Tensor::<2>::from_floats([[0.2, 0.75, 7.0]], &device).require_grad();
/// let z = round.forward(x.clone());
/// assert_eq!(z.to_data().try_to_vec::<f32>().unwrap(), [0.0, 1.0, 1.0]);
/// let grads = z.sum().backward();
/// assert_eq!(x.grad(&grads).unwrap().to_data().try_to_vec::<f32>().unwrap(), [1.0, 1.0, 0.0]);
/// # Ok::<(), straightflow::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct RoundSte {
    #[module(skip)]
    step: f64,
    /// The bounds in steps.
    #[module(skip)]
    min: Option<f64>,
    #[module(skip)]
    max: Option<f64>,
}

impl RoundSte {
    /// Rounds to the nearest value of the lattice.
    ///
    /// # Shapes
    ///
    /// - input: `[..., any]`
    /// - output: `[..., any]`
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let value = self.clamp(input.clone().inner() / self.step).round() * self.step;
        self.attached(input, value)
    }

    /// Rounds to one of the two neighbours, such that the mean is the input.
    ///
    /// # Shapes
    ///
    /// - input: `[..., any]`
    /// - output: `[..., any]`
    pub fn forward_stochastic<const D: usize>(&self, key: Key, input: Tensor<D>) -> Tensor<D> {
        let levels = self.clamp(input.clone().inner() / self.step);
        let value = round_at_random(key, levels) * self.step;
        self.attached(input, value)
    }

    fn clamp<const D: usize>(&self, mut levels: Tensor<D>) -> Tensor<D> {
        if let Some(min) = self.min {
            levels = levels.clamp_min(min);
        }
        if let Some(max) = self.max {
            levels = levels.clamp_max(max);
        }
        levels
    }

    /// A value on the tape of the input, without a gradient where the input was clamped.
    fn attached<const D: usize>(&self, input: Tensor<D>, value: Tensor<D>) -> Tensor<D> {
        if (self.min, self.max) == (None, None) {
            return straight_through(input, value);
        }
        let layer = self.clone();
        with_gradient(input, value, move |input, _, grad| {
            let levels = input / layer.step;
            let clamped = layer.clamp(levels.clone()).not_equal(levels);
            grad.mask_fill(clamped, 0.0)
        })
    }
}
