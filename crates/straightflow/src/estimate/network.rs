//! The networks that estimators learn.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::activation::leaky_relu;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::state::{StateShape, same_dtype};
use crate::Key;
use crate::distribution::Law;
use crate::error::{Error, Result};
use crate::ops::fused::{affine, tanh};

/// Weights from a key, uniform with variance `2 / (inputs + outputs)` (Glorot and Bengio 2010), and
/// biases of zero.
fn linear(key: Key, [inputs, outputs]: [usize; 2], device: &Device, dtype: DType) -> Linear {
    let limit = (6.0 / (inputs + outputs) as f64).sqrt();
    let mut weights = vec![0.0; inputs * outputs];
    key.fill_uniform_f64(&mut weights);
    for weight in &mut weights {
        *weight = (2.0 * *weight - 1.0) * limit;
    }
    let weights = TensorData::new(weights, [inputs, outputs]);
    let biases = Tensor::zeros([outputs], (device, dtype));
    Linear {
        weight: Param::from_tensor(Tensor::from_data(weights, (device, dtype))),
        bias: Some(Param::from_tensor(biases)),
    }
}

/// The layer, through the fused op.
fn forward(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    let bias = layer.bias.as_ref().expect("every layer has a bias");
    affine(x, layer.weight.val(), bias.val(), None)
}

/// From inputs over hidden units to outputs.
fn two_layers(
    key: Key,
    [inputs, hidden, outputs]: [usize; 3],
    device: &Device,
    dtype: DType,
) -> [Linear; 2] {
    let [first, second] = key.split();
    [(first, [inputs, hidden]), (second, [hidden, outputs])]
        .map(|(key, sizes)| linear(key, sizes, device, dtype))
}

fn check_input(input: Option<&Tensor<2>>, expected: [usize; 2]) -> Result<()> {
    let got = input.map_or([expected[0], 0], |input| input.dims());
    if expected != got {
        return Err(Error::InputShape { expected, got });
    }
    Ok(())
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
    /// A network whose weights come from a key, with biases of zero.
    pub fn new(key: Key, features: usize, hidden: usize, device: &Device, dtype: DType) -> Self {
        let [hidden, output] = two_layers(key, [features.max(1), hidden, 1], device, dtype);
        Self {
            hidden,
            output,
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
        check_input(input, [batch, self.features])?;
        same_dtype(self.hidden.weight.val().dtype(), law)?;
        let input = match input {
            Some(input) => input.clone().inner(),
            None => Tensor::ones([batch, 1], (&natural.device().inner(), natural.dtype())),
        };
        let hidden = tanh(forward(&self.hidden, input));
        Ok(forward(&self.output, hidden).squeeze_dim(1))
    }
}

/// A control variate `c(z) = v . tanh(W [x, y, z] + b) + a` of relaxed samples `z`, the
/// conditioning input `x` and the samples `y` of the layers below.
///
/// Its gradient with respect to `z` is a forward expression on the tape of the weights, because
/// burn has no second derivatives.
#[derive(Module, Debug)]
pub struct ControlNetwork {
    hidden: Linear,
    output: Linear,
    #[module(skip)]
    features: usize,
    #[module(skip)]
    below: usize,
}

impl ControlNetwork {
    /// A network whose weights come from a key, with biases of zero.
    pub fn new(key: Key, shape: StateShape, hidden: usize, device: &Device) -> Self {
        let (features, below) = (shape.features, shape.below);
        let inputs = features + below + shape.d * shape.k;
        let [hidden, output] = two_layers(key, [inputs, hidden, 1], device, shape.dtype);
        Self {
            hidden,
            output,
            features,
            below,
        }
    }

    /// `c(z)` `[n, batch]` and `dc/dz` `[n, batch, d, k]` for constant `z` `[n, batch, d, k]`, on
    /// the network's tape. The conditioning input is `[batch, features]`, the samples below are
    /// `[n, batch, ..]`.
    ///
    /// # Errors
    ///
    /// If an input has the wrong shape, or `z` another precision than the weights.
    pub fn value_and_gradient(
        &self,
        z: Tensor<4>,
        input: Option<&Tensor<2>>,
        below: &[Tensor<4>],
        law: &Law,
    ) -> Result<(Tensor<2>, Tensor<4>)> {
        let shape @ [n, batch, d, k] = z.dims();
        check_input(input, [batch, self.features])?;
        same_dtype(self.hidden.weight.val().dtype(), law)?;
        let width: usize = below.iter().map(|z| z.dims()[2] * z.dims()[3]).sum();
        let expected = self.hidden.weight.val().dims()[0];
        let got = self.features + width + d * k;
        if expected != got {
            return Err(Error::ControlWidth { expected, got });
        }
        let rows = n * batch;
        let flat = |z: Tensor<4>| {
            let [.., d, k] = z.dims();
            z.inner().reshape([rows, d * k])
        };
        let mut columns = Vec::new();
        if let Some(input) = input {
            columns.push(input.clone().inner().repeat_dim(0, n));
        }
        columns.extend(below.iter().cloned().map(flat));
        columns.push(flat(z));
        let hidden = tanh(forward(&self.hidden, Tensor::cat(columns, 1)));
        let value = forward(&self.output, hidden.clone()).reshape([n, batch]);
        // dc/dz = ((1 - tanh^2) * v) W_z^T, with the rows of W that z meets.
        let out = self.output.weight.val().transpose();
        let own = self.hidden.weight.val();
        let own = own.narrow(0, self.features + self.below, d * k);
        let gradient = ((-hidden.square() + 1.0) * out).matmul(own.transpose());
        Ok((value, gradient.reshape(shape)))
    }
}

/// Two functions of a linear prediction of the cost and of a cost, with one hidden layer of leaky
/// rectified units in common.
#[derive(Module, Debug)]
pub struct SteinNetwork {
    hidden: Linear,
    output: Linear,
}

/// The slope of a hidden unit that is below zero.
const LEAK: f64 = 0.3;

impl SteinNetwork {
    /// A network whose weights come from a key, with biases of zero.
    pub fn new(key: Key, hidden: usize, device: &Device, dtype: DType) -> Self {
        let [hidden, output] = two_layers(key, [2, hidden, 2], device, dtype);
        Self { hidden, output }
    }

    /// Both functions, each in the shape of the two inputs, on the network's tape only.
    ///
    /// # Errors
    ///
    /// If the inputs have another precision than the weights.
    pub(crate) fn forward(
        &self,
        predicted: Tensor<3>,
        cost: Tensor<3>,
        law: &Law,
    ) -> Result<[Tensor<3>; 2]> {
        same_dtype(self.hidden.weight.val().dtype(), law)?;
        let shape @ [n, batch, points] = predicted.dims();
        let rows = n * batch * points;
        let columns = vec![predicted.reshape([rows, 1]), cost.reshape([rows, 1])];
        let hidden = leaky_relu(self.hidden.forward(Tensor::cat(columns, 1)), LEAK);
        let both = self.output.forward(hidden);
        Ok([0, 1].map(|i| both.clone().narrow(1, i, 1).reshape(shape)))
    }
}
