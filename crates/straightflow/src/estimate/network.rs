//! The networks that estimators learn.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{DType, Device, Tensor, TensorData};

use super::state::{StateShape, same_dtype};
use crate::Key;
use crate::distribution::Law;
use crate::error::{Error, Result};
#[cfg(feature = "flex")]
use crate::ops::fused::stein::stein_functions;
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

/// The layer, through the fused op, with a leaky rectifier if there is a slope.
fn forward(layer: &Linear, x: Tensor<2>, slope: Option<f64>) -> Tensor<2> {
    let bias = layer.bias.as_ref().expect("every layer has a bias");
    affine(x, layer.weight.val(), bias.val(), slope)
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
        let hidden = tanh(forward(&self.hidden, input, None));
        Ok(forward(&self.output, hidden, None).squeeze_dim(1))
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
        let hidden = tanh(forward(&self.hidden, Tensor::cat(columns, 1), None));
        let value = forward(&self.output, hidden.clone(), None).reshape([n, batch]);
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

    /// Both functions at points `[n, batch, points]` that have a cost `[n, batch, 1]` in common, each in the
    /// shape of the points, on the network's tape only.
    ///
    /// # Errors
    ///
    /// If the inputs have another precision than the weights.
    pub(crate) fn forward(
        &self,
        points: Tensor<3>,
        costs: Tensor<3>,
        law: &Law,
    ) -> Result<[Tensor<3>; 2]> {
        same_dtype(self.hidden.weight.val().dtype(), law)?;
        #[cfg(feature = "flex")]
        if let Some(both) = self.fused(&points, &costs) {
            return Ok(both);
        }
        Ok(self.composed(points, costs))
    }

    /// In one pass over the points, if there is a kernel.
    #[cfg(feature = "flex")]
    fn fused(&self, points: &Tensor<3>, costs: &Tensor<3>) -> Option<[Tensor<3>; 2]> {
        let shape @ [n, batch, each] = points.dims();
        let bias = |layer: &Linear| layer.bias.as_ref().expect("every layer has a bias").val();
        let weights = Tensor::cat(
            vec![
                self.hidden.weight.val().flatten(0, 1),
                bias(&self.hidden),
                self.output.weight.val().transpose().flatten(0, 1),
                bias(&self.output),
            ],
            0,
        );
        let points = points.clone().reshape([n * batch, each]);
        let costs = costs.clone().reshape([n * batch]);
        let both = stein_functions(&weights, &points, &costs, LEAK)?;
        Some([0, 1].map(|i| both.clone().narrow(0, i, 1).reshape(shape)))
    }

    /// From layers.
    fn composed(&self, points: Tensor<3>, costs: Tensor<3>) -> [Tensor<3>; 2] {
        let shape @ [n, batch, each] = points.dims();
        let rows = n * batch * each;
        let columns = vec![
            points.reshape([rows, 1]),
            costs.expand(shape).reshape([rows, 1]),
        ];
        let hidden = forward(&self.hidden, Tensor::cat(columns, 1), Some(LEAK));
        let both = forward(&self.output, hidden, None);
        [0, 1].map(|i| both.clone().narrow(1, i, 1).reshape(shape))
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::distribution::Family;
    use crate::ops::to_host;

    /// Rows of whole and of broken blocks; values and the gradients of all weights.
    #[test]
    fn the_loops_of_the_stein_network_agree_with_layers() {
        let device = Device::flex().autodiff();
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-5)] {
            for each in [1, 5, 16, 37] {
                let network = SteinNetwork::new(Key::new(1), 7, &device, dtype);
                let random = |seed, shape: [usize; 3]| {
                    let plain = Key::new(seed).uniform::<3>(shape, &Device::flex(), dtype);
                    plain * 2.0 - 1.0
                };
                let points = random(2, [2, 3, each]);
                let costs = random(3, [2, 3, 1]);
                let [first, second] = [4, 5].map(|seed| random(seed, [2, 3, each]));
                let natural = Tensor::zeros([3, each, 1], (&Device::flex(), dtype));
                let law = Law::new(Family::Bernoulli, natural).expect("valid");
                let same = network.forward(points.clone(), costs.clone(), &law);
                let fused = network.fused(&points, &costs).expect("a kernel");
                let same = same.expect("one precision").map(to_host);
                assert_eq!(same, fused.clone().map(to_host), "the kernel is used");

                let composed = network.composed(points, costs);
                let close = |what: &str, a: &[f64], b: &[f64]| {
                    assert_eq!(a.len(), b.len());
                    for (a, b) in a.iter().zip(b) {
                        assert!((a - b).abs() < tolerance, "{what}, {each} points: {a} {b}");
                    }
                };
                let values = [&fused, &composed].map(|both| both.clone().map(to_host).concat());
                close("values", &values[0], &values[1]);
                let weights = [&network.hidden, &network.output];
                let gradients = [fused, composed].map(|[h, g]| {
                    let scalar = (h * first.clone()).sum() + (g * second.clone()).sum();
                    let grads = scalar.backward();
                    let of = |layer: &Linear| {
                        let weight = layer.weight.val().grad(&grads).map(to_host);
                        let bias = layer.bias.as_ref().map(|bias| bias.val().grad(&grads));
                        let bias = bias.expect("a bias").map(to_host);
                        [weight, bias].map(|one| one.expect("on the tape")).concat()
                    };
                    weights.map(of).concat()
                });
                close("gradients", &gradients[0], &gradients[1]);
                assert!(
                    gradients[1].iter().all(|x| *x != 0.0),
                    "every weight matters"
                );
            }
        }
    }
}
