//! Vector quantisation with a learned codebook.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorCreationOptions, assert_shape};
use rand_distr::Distribution as _;
use serde::{Deserialize, Serialize};

use super::rotation::rotated;
use super::{perplexity, refuse, straight_through};
use crate::Key;
use crate::error::Result;
use crate::gradient::with_gradient;

/// The name of the layer in errors.
const LAYER: &str = "VectorQuantizer";

/// How a gradient gets from the code to the input of a [`VectorQuantizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CodebookGradient {
    /// As it is.
    StraightThrough,
    /// Turned and scaled as the input would have to be to become the code: with `u = e/|e|`,
    /// `w = q/|q|` and `a = (u+w)/|u+w|`, it is `λ Rᵀ g` with `R = I - 2a aᵀ + 2w uᵀ` and
    /// `λ = |q|/|e|`. Where `u = -w`, or one of the two is zero, there is no such rotation, and the
    /// gradient passes as it is.
    Rotation,
}

/// Configuration of [`VectorQuantizer`].
#[derive(Config, Debug, PartialEq)]
pub struct VectorQuantizerConfig {
    /// The number of codes, at least 2.
    pub size: usize,
    /// The number of coordinates of a code.
    pub dim: usize,
    /// The gradient of the input. Default: straight-through
    #[config(default = "CodebookGradient::StraightThrough")]
    pub gradient: CodebookGradient,
    /// The weight of the commitment in [`VectorQuantized::loss`]. Default: 0.25
    #[config(default = 0.25)]
    pub commitment: f64,
}

impl VectorQuantizerConfig {
    /// The layer with a codebook uniform on (-1/size, 1/size). For floats of another type than the
    /// device's default, give both: `init(key, (&device, DType::F64))`.
    ///
    /// # Errors
    ///
    /// If there are fewer than 2 codes or more than 2^31 - 1, they have no coordinate, or the
    /// weight of the commitment is negative or not finite.
    pub fn init(
        &self,
        key: Key,
        options: impl Into<TensorCreationOptions>,
    ) -> Result<VectorQuantizer> {
        if !(2..=i32::MAX as usize).contains(&self.size) {
            return Err(refuse(LAYER, "size", self.size, "from 2 to 2^31 - 1"));
        }
        if self.dim == 0 {
            return Err(refuse(LAYER, "dim", self.dim, "at least 1"));
        }
        let commitment = self.commitment;
        if !(commitment.is_finite() && commitment >= 0.0) {
            let allowed = "finite and not negative";
            return Err(refuse(LAYER, "commitment", commitment, allowed));
        }
        // The empty codebook knows what the options mean: where it is and of which type.
        let place = Tensor::<2>::zeros([self.size, self.dim], options);
        let uniform = key.uniform([self.size, self.dim], &place.device(), place.dtype());
        let start = (uniform * 2.0 - 1.0) / self.size as f64;
        Ok(VectorQuantizer {
            codebook: Param::from_tensor(on_device_of(start, &place)),
            gradient: self.gradient,
            commitment,
        })
    }
}

/// A constant on the device of another tensor, which may be an autodiff device.
fn on_device_of(value: Tensor<2>, like: &Tensor<2>) -> Tensor<2> {
    Tensor::from_data(value.into_data(), (&like.device(), like.dtype()))
}

/// Replaces each vector by the nearest entry of a codebook that is learned.
///
/// ```text
/// index = argmin_k |x - c_k|^2                  the first one of several
/// code = c_index                                dx = dcode, or the rotation trick
/// codebook_loss = mean (sg(x) - code)^2         moves the codes to the inputs
/// commitment_loss = mean (x - sg(code))^2       moves the inputs to their codes
/// loss = codebook_loss + commitment * commitment_loss
/// ```
///
/// `sg` stops the gradient and the means are over all elements. No gradient of the codes that are
/// returned gets to the codebook: it learns from `loss`. Add that to the loss of the model.
///
/// Codes that are never the nearest never move. Begin with
/// [`with_codes_from`](VectorQuantizer::with_codes_from) a batch of inputs, and watch the
/// perplexity.
///
/// Reference: A. van den Oord, O. Vinyals, K. Kavukcuoglu, *Neural Discrete Representation
/// Learning*, arXiv 1711.00937, equations 1 to 3; the rotation trick: C. Fifty et al.,
/// *Restructuring Vector Quantization with the Rotation Trick*, arXiv 2410.06424.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::Key;
/// use straightflow::nn::{CodebookGradient, VectorQuantizerConfig};
///
/// let device = Device::flex().autodiff();
/// let config = VectorQuantizerConfig::new(16, 2).with_gradient(CodebookGradient::Rotation);
/// let quantizer = config.init(Key::new(1), &device)?;
/// let x = Tensor::<3>::from_floats([[[0.3, -0.1], [0.7, 0.2]]], &device).require_grad();
/// let z = quantizer.forward(x.clone());
/// assert_eq!((z.codes.dims(), z.indices.dims()), ([1, 2, 2], [1, 2, 1]));
/// let grads = (z.codes.clone().square().mean() + z.loss).backward();
/// assert!(x.grad(&grads).is_some() && quantizer.codebook.val().grad(&grads).is_some());
/// # Ok::<(), straightflow::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct VectorQuantizer {
    /// The codes, `[size, dim]`.
    pub codebook: Param<Tensor<2>>,
    #[module(skip)]
    gradient: CodebookGradient,
    #[module(skip)]
    commitment: f64,
}

/// What a [`VectorQuantizer`] returns.
#[derive(Clone, Debug)]
pub struct VectorQuantized<const D: usize> {
    /// The values `[..., dim]`, on the tape of the input.
    pub codes: Tensor<D>,
    /// The index of each code in the codebook, `[..., 1]`.
    pub indices: Tensor<D, Int>,
    /// The squared error on the tape of the codebook, `[1]`.
    pub codebook_loss: Tensor<1>,
    /// The squared error on the tape of the input, `[1]`.
    pub commitment_loss: Tensor<1>,
    /// The first plus the weighted second, `[1]`.
    pub loss: Tensor<1>,
}

impl<const D: usize> VectorQuantized<D> {
    /// See [`perplexity`].
    pub fn perplexity(&self) -> f64 {
        perplexity(self.indices.clone())
    }
}

impl VectorQuantizer {
    /// The nearest codes of an input, their indices, and the losses.
    ///
    /// # Shapes
    ///
    /// - input: `[..., dim]`
    /// - codes: `[..., dim]`, indices: `[..., 1]`, losses: `[1]`
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size, or the input another type of floats than the
    /// codebook.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> VectorQuantized<D> {
        let indices = self.indices(input.clone());
        let nearest = self.codes(indices.clone());
        let value = nearest.clone().inner();
        let codebook_loss = (nearest - input.clone().inner()).square().mean();
        let commitment_loss = (input.clone() - value.clone()).square().mean();
        let loss = codebook_loss.clone() + commitment_loss.clone() * self.commitment;
        let codes = match self.gradient {
            CodebookGradient::StraightThrough => straight_through(input, value),
            CodebookGradient::Rotation => with_gradient(input, value, rotated),
        };
        VectorQuantized {
            codes,
            indices,
            codebook_loss,
            commitment_loss,
            loss,
        }
    }

    /// The indices `[..., 1]` of the codes nearest to an input `[..., dim]`.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn indices<const D: usize>(&self, input: Tensor<D>) -> Tensor<D, Int> {
        let codebook = self.codebook.val().inner();
        let [_, dim] = codebook.dims();
        assert_shape!(input, [.., dim]);
        let mut shape = input.dims();
        let rows = shape.iter().product::<usize>() / dim;
        shape[D - 1] = 1;
        let x = input.inner().reshape([rows, dim]);
        // |x - c|^2 = |x|^2 - 2 x.c + |c|^2, and the first does not matter. Far from the origin the
        // other two would cancel, so the origin is moved to the middle of the codebook.
        let middle = codebook.clone().mean_dim(0);
        let (x, c) = (x - middle.clone(), codebook - middle);
        let squares = c.clone().square().sum_dim(1).transpose();
        let distances = squares - x.matmul(c.transpose()) * 2.0;
        distances.argmin(1).reshape(shape)
    }

    /// The codes `[..., dim]` of indices `[..., 1]`, on the tape of the codebook.
    ///
    /// # Panics
    ///
    /// If the last axis of the indices is not 1, or there is no such code.
    pub fn codes<const D: usize>(&self, indices: Tensor<D, Int>) -> Tensor<D> {
        assert_shape!(indices, [.., 1]);
        let mut shape = indices.dims();
        let rows = shape.iter().product::<usize>();
        let codebook = self.codebook.val();
        shape[D - 1] = codebook.dims()[1];
        codebook.select(0, indices.reshape([rows])).reshape(shape)
    }

    /// The layer with a codebook of inputs `[..., dim]`, drawn without replacement. If there are
    /// fewer inputs than codes, some are taken again.
    ///
    /// # Errors
    ///
    /// If there is no input.
    ///
    /// # Panics
    ///
    /// As [`forward`](Self::forward).
    pub fn with_codes_from<const D: usize>(mut self, key: Key, inputs: Tensor<D>) -> Result<Self> {
        let [size, dim] = self.codebook.val().dims();
        assert_shape!(inputs, [.., dim]);
        let rows = inputs.dims().iter().product::<usize>() / dim;
        if rows == 0 {
            return Err(refuse(LAYER, "inputs", rows, "at least one"));
        }
        let chosen = drawn_without_replacement(key, rows, size);
        let rows = inputs.inner().reshape([rows, dim]);
        let chosen = Tensor::<1, Int>::from_data(&chosen[..], &rows.device());
        let codes = rows.select(0, chosen);
        self.codebook = self.codebook.map(|old| {
            let tracked = old.is_require_grad();
            on_device_of(codes, &old).set_require_grad(tracked)
        });
        Ok(self)
    }
}

/// `count` of the numbers below `n`, all of them before any comes again.
fn drawn_without_replacement(key: Key, n: usize, count: usize) -> Vec<i64> {
    let mut order: Vec<i64> = (0..n as i64).collect();
    let mut generator = key.generator();
    for i in 0..n.min(count) {
        let rest = rand_distr::Uniform::new(i, n).expect("i is below n");
        order.swap(i, rest.sample(&mut generator));
    }
    order.truncate(count);
    (0..count).map(|i| order[i % order.len()]).collect()
}
