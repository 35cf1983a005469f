//! What an estimator learns or remembers from one estimate to the next.
//!
//! Estimators themselves never change. Their [`State`] is a burn module that the user owns: an
//! optimiser of its own trains it on the same surrogate, and it is saved with the model's record.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::estimate::Estimate;
use crate::Key;
use crate::distribution::{Distribution, Law};
use crate::error::{Error, Result};

/// The sizes that the parts of a [`State`] depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateShape {
    /// The features of the conditioning input `[batch, features]`; 0 if there is none.
    pub features: usize,
    /// The coordinates of the variable.
    pub d: usize,
    /// The categories of each coordinate; 1 if it is ordered.
    pub k: usize,
    /// The type of the parameters' numbers.
    pub dtype: DType,
}

impl StateShape {
    /// The shape that fits a law and a conditioning input of so many features.
    pub fn of(law: &Law, features: usize) -> Self {
        let [_, d, k] = law.dims();
        Self {
            features,
            d,
            k,
            dtype: law.natural().dtype(),
        }
    }
}

/// The state of one estimator: the parts that it uses, and nothing else.
///
/// ```
/// use burn::optim::{AdamConfig, GradientsParams};
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let device = Device::flex().autodiff();
/// let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
/// let x = Tensor::<2>::ones([3, 4], &device); // what the encoder sees
///
/// let estimator = "reinforce:baseline=learned".parse::<Spec>()?.build()?;
/// let shape = StateShape { features: 4, d: 2, k: 1, dtype: x.dtype() };
/// let mut state = estimator.init_state(Key::new(1), shape, &device).expect("it learns");
/// let mut optimiser = AdamConfig::new().init();
/// for step in 0..3 {
///     let q = Bernoulli::from_logits(logits.clone())?;
///     let bound = estimator.bind(&state, Some(x.clone()))?;
///     let estimate = bound.estimate(Key::new(2).child(step), &q, |z, _q| {
///         (z - 0.3).square().sum_dim(2).squeeze_dim(2)
///     })?;
///     let mut grads = estimate.surrogate.backward();
///     // The model takes its gradients from the same `grads`.
///     let own = GradientsParams::from_module(&mut grads, &state);
///     state = optimiser.step(1e-3, state, own);
///     state.update(&estimate);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Module, Debug, Default)]
#[non_exhaustive]
pub struct State {
    /// The average of the costs so far.
    pub average: Option<MovingAverage>,
    /// The network that predicts the cost from the conditioning input.
    pub baseline: Option<Network>,
}

impl State {
    /// Takes note of an estimate: call it once for each, after the optimiser's step. It changes
    /// what is not trained by gradients, and does nothing if there is no such part.
    pub fn update<D: Distribution>(&mut self, estimate: &Estimate<D>) {
        if let Some(average) = &mut self.average {
            average.update(estimate.values.clone().mean());
        }
    }
}

/// An exponential moving average of the mean cost, corrected for its start at zero.
///
/// With the mean costs `c_1, .., c_t` it is `s / w`, where `s <- decay s + (1 - decay) c` and
/// `w <- decay w + (1 - decay)` from `s = w = 0`: a weighted mean from the first cost on.
#[derive(Module, Debug)]
pub struct MovingAverage {
    sum: Param<Tensor<1>>,
    weight: Param<Tensor<1>>,
    #[module(skip)]
    decay: f64,
}

impl MovingAverage {
    /// An average of nothing yet.
    pub fn new(decay: f64, device: &Device, dtype: DType) -> Self {
        // No optimiser's business.
        let zero = || Param::from_tensor(Tensor::zeros([1], (device, dtype)));
        let zero = || zero().set_require_grad(false);
        Self {
            sum: zero(),
            weight: zero(),
            decay,
        }
    }

    /// The average as a constant `[1]`; 0 before the first update.
    pub fn value(&self) -> Tensor<1> {
        // The weight is zero or at least 1 - decay, and the sum is zero when the weight is.
        let weight = self.weight.val().inner();
        self.sum.val().inner() / weight.clamp_min(f64::from(f32::MIN_POSITIVE))
    }

    /// The average for a law, after a look at its precision.
    pub(super) fn predict(&self, law: &Law) -> Result<Tensor<1>> {
        same_dtype(self.sum.val().dtype(), law)?;
        Ok(self.value())
    }

    fn update(&mut self, mean_cost: Tensor<1>) {
        let decay = self.decay;
        // Computed off the tape, also if someone asked all parameters to want gradients.
        let blend = |old: &Param<Tensor<1>>, new: Tensor<1>| {
            old.clone().map(|old| {
                let blended = old.clone().inner() * decay + new * (1.0 - decay);
                match old.is_autodiff() {
                    true => Tensor::from_inner(blended),
                    false => blended,
                }
            })
        };
        let one = mean_cost.ones_like();
        (self.sum, self.weight) = (blend(&self.sum, mean_cost), blend(&self.weight, one));
    }
}

/// A network with one hidden layer of tanh units, from the conditioning input `[batch, features]`
/// to one number for each batch element. Without an input it sees a constant, and so learns one.
#[derive(Module, Debug)]
pub struct Network {
    hidden: Linear,
    output: Linear,
    #[module(skip)]
    features: usize,
}

impl Network {
    /// A network whose weights come from a key (Glorot and Bengio 2010: uniform, with variance
    /// `2 / (inputs + outputs)`) and whose biases are zero.
    pub fn new(key: Key, features: usize, hidden: usize, device: &Device, dtype: DType) -> Self {
        let layer = |key: Key, inputs: usize, outputs: usize| {
            let limit = (6.0 / (inputs + outputs) as f64).sqrt();
            let mut weights = vec![0.0; inputs * outputs];
            key.fill_uniform_f64(&mut weights);
            for weight in &mut weights {
                *weight = (2.0 * *weight - 1.0) * limit;
            }
            let weights = TensorData::new(weights, [inputs, outputs]);
            Linear {
                weight: Param::from_tensor(Tensor::from_data(weights, (device, dtype))),
                bias: Some(Param::from_tensor(Tensor::zeros(
                    [outputs],
                    (device, dtype),
                ))),
            }
        };
        let [first, second] = key.split();
        Self {
            hidden: layer(first, features.max(1), hidden),
            output: layer(second, hidden, 1),
            features,
        }
    }

    /// The prediction `[batch]` for each element of the batch of a law, on the network's tape only.
    ///
    /// # Errors
    ///
    /// If the input has another shape than `[batch, features]`, or the law another precision.
    pub fn forward(&self, input: Option<&Tensor<2>>, law: &Law) -> Result<Tensor<1>> {
        let natural = law.natural();
        let batch = law.dims()[0];
        let (expected, got) = (
            [batch, self.features],
            input.map_or([batch, 0], |input| input.dims()),
        );
        if expected != got {
            return Err(Error::InputShape { expected, got });
        }
        same_dtype(self.hidden.weight.val().dtype(), law)?;
        let input = match input {
            Some(input) => input.clone().inner(),
            None => Tensor::ones([batch, 1], (&natural.device().inner(), natural.dtype())),
        };
        let hidden = self.hidden.forward(input).tanh();
        Ok(self.output.forward(hidden).squeeze_dim(1))
    }
}

fn same_dtype(state: DType, law: &Law) -> Result<()> {
    let parameters = law.natural().dtype();
    if state != parameters {
        return Err(Error::StateDType { state, parameters });
    }
    Ok(())
}
