//! Quantisation with a learned step size.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Bool, Tensor, TensorCreationOptions};

use super::refuse;
use crate::error::Result;
use crate::gradient::with_gradient;

/// The name of the layer in errors.
const LAYER: &str = "LearnedStep";
/// A step that training has driven below this, or below zero, counts as this.
const LEAST_STEP: f64 = 1e-8;

/// Configuration of [`LearnedStep`].
#[derive(Config, Debug, PartialEq)]
pub struct LearnedStepConfig {
    /// The number of bits, up to 16: at least 2 with a sign and 1 without.
    pub bits: u32,
    /// Whether there are negative values, as for weights; activations of a ReLU have none.
    /// Default: true
    #[config(default = true)]
    pub signed: bool,
    /// The step to begin with; [`calibrate`](LearnedStep::calibrate) takes one from data.
    /// Default: 1
    #[config(default = 1.0)]
    pub step: f64,
    /// `N` in the factor of the step's gradient. The paper takes the number of weights, or of the
    /// features of one example for activations. Default: all elements of the input
    pub elements: Option<usize>,
}

impl LearnedStepConfig {
    /// The layer, with its step on a device. For floats of another type than the device's default,
    /// give both: `init((&device, DType::F64))`.
    ///
    /// # Errors
    ///
    /// If the number of bits is out of range, the step is not positive and finite or below 1e-8, or
    /// `elements` is 0.
    pub fn init(&self, options: impl Into<TensorCreationOptions>) -> Result<LearnedStep> {
        let least = if self.signed { 2 } else { 1 };
        if !(least..=16).contains(&self.bits) {
            let allowed = "from 2 to 16 with a sign, from 1 to 16 without";
            return Err(refuse(LAYER, "bits", self.bits, allowed));
        }
        if !(self.step.is_finite() && self.step >= LEAST_STEP) {
            return Err(refuse(LAYER, "step", self.step, "finite and at least 1e-8"));
        }
        if self.elements == Some(0) {
            return Err(refuse(LAYER, "elements", 0, "at least 1"));
        }
        let range = match self.signed {
            true => Range {
                below: f64::from(1u32 << (self.bits - 1)),
                above: f64::from((1u32 << (self.bits - 1)) - 1),
            },
            false => Range {
                below: 0.0,
                above: f64::from((1u32 << self.bits) - 1),
            },
        };
        Ok(LearnedStep {
            step: Param::from_tensor(Tensor::full([1], self.step, options)),
            range,
            elements: self.elements,
        })
    }
}

/// Rounds to `bits` bits with a step size that is learned (LSQ).
///
/// With `Q_n = 2^(b-1)` and `Q_p = 2^(b-1) - 1` if the values have a sign, else 0 and `2^b - 1`:
///
/// ```text
/// out = s round(clamp(v / s, -Qn, Qp))                      a half goes to the even neighbour
/// dv = dout                       if -Qn < v / s < Qp, else 0
/// ds = g sum dout *               round(v / s) - v / s      if -Qn < v / s < Qp
///                                 -Qn                       if v / s <= -Qn
///                                 Qp                        if v / s >= Qp
/// g = 1 / sqrt(N Qp)
/// ```
///
/// One step serves the whole tensor. The factor `g` brings the relative size of its updates near
/// that of the weights. For activations set `elements` to the features of one example, so that the
/// rule does not depend on the batch.
///
/// Reference: S. K. Esser et al., *Learned Step Size Quantization*, arXiv 1902.08153, equations 1
/// to 3 and section 2.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::nn::LearnedStepConfig;
///
/// let device = Device::flex().autodiff();
/// let weights = Tensor::<2>::from_floats([[-1.9, -0.62, 0.13], [0.4, 2.2, 0.0]], &device);
/// let quantiser = LearnedStepConfig::new(4).init(&device)?.calibrate(weights.clone())?;
/// let rounded = quantiser.forward(weights);
/// let grads = rounded.square().mean().backward();
/// assert!(quantiser.step.val().grad(&grads).is_some());
/// # Ok::<(), straightflow::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct LearnedStep {
    /// The step, `[1]`.
    pub step: Param<Tensor<1>>,
    #[module(skip)]
    range: Range,
    #[module(skip)]
    elements: Option<usize>,
}

/// How many steps the values go below and above zero: `Qn` and `Qp`.
#[derive(Clone, Copy, Debug)]
struct Range {
    below: f64,
    above: f64,
}

impl LearnedStep {
    /// Rounds to the nearest value.
    ///
    /// # Shapes
    ///
    /// - input: `[..., any]`
    /// - output: `[..., any]`
    ///
    /// # Panics
    ///
    /// If the input has another type of floats than the step.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let step = self.step.val();
        let scaled = input.clone().inner() / usable(&step);
        let range = self.range;
        let value = range.round(scaled.clone()) * usable(&step);
        let elements = self.elements.unwrap_or(value.shape().num_elements());
        let factor = 1.0 / (elements as f64 * range.above).sqrt();
        // A value has one parent, so the two gradients are those of two summands.
        let by_step = with_gradient(step.clone(), value.zeros_like(), move |_, _, grad| {
            let outside = range.outside(&scaled);
            let slope = range.round(scaled.clone()) - scaled.clone().mask_fill(outside, 0.0);
            (grad * slope).sum() * factor
        });
        let step = step.inner();
        let by_input = with_gradient(input, value, move |input, _, grad| {
            grad.mask_fill(range.outside(&(input / usable(&step))), 0.0)
        });
        by_input + by_step
    }

    /// The layer with the step `2 mean|v| / sqrt(Qp)` of the paper for these values.
    ///
    /// # Errors
    ///
    /// If that is not finite or below 1e-8, because there are no values or they are almost all
    /// zero.
    pub fn calibrate<const D: usize>(mut self, values: Tensor<D>) -> Result<Self> {
        let mean = values.inner().abs().mean();
        let start = mean * (2.0 / self.range.above.sqrt());
        let step: f64 = start.into_scalar();
        if !(step.is_finite() && step >= LEAST_STEP) {
            let allowed = "such that the step is finite and at least 1e-8";
            return Err(refuse(
                LAYER,
                "values",
                format!("with step {step}"),
                allowed,
            ));
        }
        self.step = self.step.map(|old| {
            let tracked = old.is_require_grad();
            old.full_like(step).set_require_grad(tracked)
        });
        Ok(self)
    }
}

impl Range {
    fn round<const D: usize>(&self, scaled: Tensor<D>) -> Tensor<D> {
        scaled.clamp(-self.below, self.above).round()
    }

    /// Where the values in steps have no gradient: at the bounds and beyond.
    fn outside<const D: usize>(&self, scaled: &Tensor<D>) -> Tensor<D, Bool> {
        let low = scaled.clone().lower_equal_elem(-self.below);
        low.bool_or(scaled.clone().greater_equal_elem(self.above))
    }
}

/// The step as a constant, with the rank of the input.
fn usable<const D: usize>(step: &Tensor<1>) -> Tensor<D> {
    step.clone().inner().clamp_min(LEAST_STEP).reshape([1; D])
}
