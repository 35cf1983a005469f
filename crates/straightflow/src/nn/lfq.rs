//! Lookup-free quantisation.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::activation::sigmoid;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData, assert_shape};

use super::{Quantized, refuse, straight_through};
use crate::error::{Error, Result};

/// The name of the layer in errors.
const LAYER: &str = "Lfq";
/// The most codes that [`Lfq::entropy_of_mean`] enumerates.
const LIMIT: usize = 1 << 14;
/// A logit beyond which the other probability is zero in every type of float.
const CERTAIN: f64 = 1e4;

/// Configuration of [`Lfq`].
#[derive(Config, Debug, PartialEq)]
pub struct LfqConfig {
    /// The number of coordinates, from 1 to 30.
    pub dim: usize,
    /// How sharp the soft assignment in the entropies is, `β`. Default: 100
    #[config(default = 100.0)]
    pub sharpness: f64,
}

impl LfqConfig {
    /// The layer. It has no parameters, so it needs no device.
    ///
    /// # Errors
    ///
    /// If there is no coordinate or more than 30, or the sharpness is not positive and finite.
    pub fn init(&self) -> Result<Lfq> {
        // 2^30 codes: indices fit into 32 bits.
        if !(1..=30).contains(&self.dim) {
            return Err(refuse(LAYER, "dim", self.dim, "from 1 to 30"));
        }
        let sharpness = self.sharpness;
        if !(sharpness.is_finite() && sharpness > 0.0) {
            return Err(refuse(LAYER, "sharpness", sharpness, "positive and finite"));
        }
        let dim = self.dim;
        Ok(Lfq { dim, sharpness })
    }
}

/// Lookup-free quantisation: the code is the sign of each coordinate, the index its bits.
///
/// ```text
/// code_i = 1 if x_i > 0, else -1                  dx = dcode
/// index = sum_i [x_i > 0] 2^(d - 1 - i)           the first coordinate is the most significant bit
/// penalty = E H(q) - gamma H(E q),  q = softmax over all codes c of 2 beta x.c
/// ```
///
/// `q` assigns an input softly to all `2^d` codes; the expectation is over the inputs of a batch.
/// The first entropy wants assignments that are certain, the second one codes that are all used.
/// `q` factorises into bits with probability `sigmoid(4 β x_i)`, so the first is a sum over
/// coordinates. The second is not, and is enumerated for few coordinates. Entropies are in nats.
///
/// Reference: L. Yu et al., *Language Model Beats Diffusion: Tokenizer is Key to Visual
/// Generation*, arXiv 2310.05737.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::nn::LfqConfig;
///
/// let lfq = LfqConfig::new(3).init()?;
/// let device = Device::flex().autodiff();
/// let x = Tensor::<2>::from_floats([[0.012, -0.003, 0.02]], &device).require_grad();
/// let z = lfq.forward(x.clone());
/// assert_eq!(z.codes.to_data().try_to_vec::<f32>().unwrap(), [1.0, -1.0, 1.0]);
/// assert_eq!(z.indices.into_scalar::<i64>(), 5);
/// let loss = z.codes.square().mean() + lfq.entropy_penalty(x.clone(), 1.0)?;
/// assert!(x.grad(&loss.backward()).is_some());
/// # Ok::<(), straightflow::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct Lfq {
    #[module(skip)]
    dim: usize,
    #[module(skip)]
    sharpness: f64,
}

impl Lfq {
    /// The number of codes.
    pub fn size(&self) -> usize {
        1 << self.dim
    }

    /// The codes of an input and their indices.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d]`
    /// - codes: `[..., d]`, indices: `[..., 1]`
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Quantized<D> {
        let bits = self.bits(&input).float().cast(input.dtype());
        let value = bits * 2.0 - 1.0;
        Quantized {
            indices: self.indices(value.clone()),
            codes: straight_through(input, value),
        }
    }

    /// The indices `[..., 1]` of codes, or of any numbers with their signs, `[..., d]`.
    ///
    /// # Panics
    ///
    /// If the last axis of the codes has another size.
    pub fn indices<const D: usize>(&self, codes: Tensor<D>) -> Tensor<D, Int> {
        let bits = self.bits(&codes).int();
        let places = self.places(&bits.device());
        (bits * places).sum_dim(D - 1)
    }

    /// The codes `[..., d]` of indices `[..., 1]`, with the default floats of their device.
    ///
    /// # Panics
    ///
    /// If the last axis of the indices is not 1.
    pub fn codes<const D: usize>(&self, indices: Tensor<D, Int>) -> Tensor<D> {
        assert_shape!(indices, [.., 1]);
        let places = self.places(&indices.device());
        let bits = (indices / places).remainder_scalar(2);
        bits.float() * 2.0 - 1.0
    }

    /// `E H(q)`: how uncertain the soft assignment of an input `[..., d]` is, on the tape.
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn mean_entropy<const D: usize>(&self, input: Tensor<D>) -> Tensor<1> {
        // With a = |logit|: h = ln(1 + e^-a) + a e^-a / (1 + e^-a). Nothing overflows or cancels.
        let a = self.logits(input).abs();
        let e = a.clone().neg().exp();
        let h = e.clone().log1p() + a * e.clone() / (e + 1.0);
        h.sum_dim(1).mean()
    }

    /// `H(E q)`: how evenly a batch `[..., d]` uses the codes, on the tape.
    ///
    /// It takes the memory of `2^d` numbers for each input.
    ///
    /// # Errors
    ///
    /// If there are more than 2^14 codes.
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn entropy_of_mean<const D: usize>(&self, input: Tensor<D>) -> Result<Tensor<1>> {
        if self.size() > LIMIT {
            return Err(Error::TooManyStates {
                states: self.size() as f64,
                limit: LIMIT,
            });
        }
        let logits = self.logits(input);
        let (up, down) = (sigmoid(logits.clone()), sigmoid(-logits));
        // The product over the coordinates, one after the other: [rows, 1], [rows, 2], [rows, 4] ..
        let mut q = up.ones_like().narrow(1, 0, 1);
        for i in 0..self.dim {
            let [down, up] = [&down, &up].map(|p| p.clone().narrow(1, i, 1));
            q = Tensor::cat(vec![q.clone() * down, q * up], 1);
        }
        let mean = q.mean_dim(0);
        // The floor keeps the gradient finite where no input has any probability of a code.
        let logarithm = mean.clone().clamp_min(f64::from(f32::MIN_POSITIVE)).log();
        Ok((mean * logarithm).sum().neg())
    }

    /// The penalty `E H(q) - gamma H(E q)`, to be added to a loss with some weight.
    ///
    /// # Errors
    ///
    /// If there are more than 2^14 codes. [`mean_entropy`](Self::mean_entropy) has no limit.
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn entropy_penalty<const D: usize>(
        &self,
        input: Tensor<D>,
        gamma: f64,
    ) -> Result<Tensor<1>> {
        let diversity = self.entropy_of_mean(input.clone())?;
        Ok(self.mean_entropy(input) - diversity * gamma)
    }

    fn bits<const D: usize>(&self, x: &Tensor<D>) -> Tensor<D, Bool> {
        let dim = self.dim;
        assert_shape!(x, [.., dim]);
        x.clone().inner().greater_elem(0.0)
    }

    /// The logits of the bits, `[rows, d]`.
    fn logits<const D: usize>(&self, input: Tensor<D>) -> Tensor<2> {
        let dim = self.dim;
        assert_shape!(input, [.., dim]);
        let rows = input.dims().iter().product::<usize>() / dim;
        let logits = input.reshape([rows, dim]) * (4.0 * self.sharpness);
        logits.clamp(-CERTAIN, CERTAIN)
    }

    /// What each bit counts for, `[1, ..., d]`.
    fn places<const D: usize>(&self, device: &Device) -> Tensor<D, Int> {
        let places: Vec<i64> = (0..self.dim).rev().map(|i| 1 << i).collect();
        let mut shape = [1; D];
        shape[D - 1] = self.dim;
        Tensor::from_data(TensorData::new(places, shape), device)
    }
}
