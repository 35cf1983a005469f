//! Finite scalar quantisation.

use burn::config::Config;
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData, assert_shape};
use serde::{Deserialize, Serialize};

use super::{Quantized, refuse, round_at_random};
use crate::Key;
use crate::error::Result;
use crate::gradient::with_gradient;
use crate::ops::from_host;

/// The name of the layer in errors.
const LAYER: &str = "Fsq";

/// Where an even number of levels has its centre.
///
/// Even levels are not symmetric, and the input is shifted such that an input of zero comes near
/// the middle of a code's cell: `y(0)` in [`Fsq`] should be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FsqShift {
    /// `tan(1/2 / half)`, as in the authors' code. It misses zero a little: by 0.0004 with 4
    /// levels, by 0.043 with 2.
    Tan,
    /// `atanh(1/2 / half)`, which hits zero. It does not exist for 2 levels.
    Atanh,
}

/// Configuration of [`Fsq`].
#[derive(Config, Debug, PartialEq)]
pub struct FsqConfig {
    /// The number of levels of each coordinate, at least 2.
    pub levels: Vec<usize>,
    /// How far inside of the outer codes the bounded input stays, relative. Default: 1e-3
    #[config(default = 1e-3)]
    pub epsilon: f64,
    /// The shift of even levels. Default: that of the authors
    #[config(default = "FsqShift::Tan")]
    pub shift: FsqShift,
}

impl FsqConfig {
    /// The layer. It has no parameters, so it needs no device.
    ///
    /// # Errors
    ///
    /// If there is no coordinate, one has fewer than 2 levels, the codebook has more than 2^31 - 1
    /// entries, `epsilon` is negative, above 0.1 or so large that an outer code cannot be reached,
    /// or 2 levels are to be shifted by `atanh`.
    pub fn init(&self) -> Result<Fsq> {
        let levels = &self.levels;
        if levels.is_empty() || levels.iter().any(|&l| l < 2) {
            let allowed = "at least one number, each at least 2";
            return Err(refuse(LAYER, "levels", levels, allowed));
        }
        // Indices fit into the smallest type of integers that a backend of burn has by default.
        let size = levels
            .iter()
            .try_fold(1usize, |size, &l| size.checked_mul(l));
        if size.is_none_or(|size| size > i32::MAX as usize) {
            let allowed = "numbers whose product is less than 2^31";
            return Err(refuse(LAYER, "levels", levels, allowed));
        }
        let most = *levels.iter().max().expect("at least one") as f64;
        if !(0.0..=0.1).contains(&self.epsilon) || self.epsilon * (most - 1.0) >= 1.0 {
            let allowed = "from 0 to 0.1, and less than 1 / (levels - 1)";
            return Err(refuse(LAYER, "epsilon", self.epsilon, allowed));
        }
        if self.shift == FsqShift::Atanh && levels.contains(&2) {
            let allowed = "`Tan` if a coordinate has 2 levels";
            return Err(refuse(LAYER, "shift", self.shift, allowed));
        }
        Ok(Fsq {
            axes: levels.iter().map(|&l| self.axis(l)).collect(),
        })
    }

    fn axis(&self, levels: usize) -> Axis {
        let half = (levels - 1) as f64 * (1.0 - self.epsilon) / 2.0;
        let offset = if levels.is_multiple_of(2) { 0.5 } else { 0.0 };
        let shift = match self.shift {
            FsqShift::Tan => (offset / half).tan(),
            FsqShift::Atanh => (offset / half).atanh(),
        };
        Axis {
            levels,
            half,
            offset,
            shift,
        }
    }
}

/// Finite scalar quantisation: each coordinate is squashed and rounded to a few levels, and the
/// product of the levels is the codebook. There is nothing to learn and nothing to collapse.
///
/// For a coordinate with `L` levels, with `half = (L-1)(1-ε)/2`, and `off = ½` if `L` is even, else
/// 0:
///
/// ```text
/// y = half tanh(x + shift) - off           shift = tan(off / half), see `FsqShift`
/// code = round(y) / w                      w = floor(L / 2), a half goes to the even neighbour
/// index = sum_i (w_i code_i + w_i) b_i     b = 1, L_1, L_1 L_2, ..
/// dx = dcode half (1 - tanh(x + shift)^2) / w
/// ```
///
/// Codes of odd `L` are symmetric in [-1, 1], those of even `L` go from -1 to 1 - 2/L.
///
/// Reference: F. Mentzer et al., *Finite Scalar Quantization: VQ-VAE Made Simple*, arXiv
/// 2309.15505, and the authors' code.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::nn::FsqConfig;
///
/// let fsq = FsqConfig::new(vec![8, 5, 5, 5]).init()?;               // 1000 codes
/// let x = Tensor::<2>::from_floats([[0.25, 0.6, -7.0, -0.1]], &Device::flex());
/// let z = fsq.forward(x);
/// assert_eq!(z.indices.clone().into_scalar::<i64>(), 429);
/// for codes in [z.codes, fsq.codes(z.indices)] {
///     assert_eq!(codes.to_data().try_to_vec::<f32>().unwrap(), [0.25, 0.5, -1.0, 0.0]);
/// }
/// # Ok::<(), straightflow::Error>(())
/// ```
#[derive(Module, Debug)]
pub struct Fsq {
    #[module(skip)]
    axes: Vec<Axis>,
}

/// The constants of a coordinate, named as in the formula.
#[derive(Clone, Debug)]
struct Axis {
    levels: usize,
    half: f64,
    offset: f64,
    shift: f64,
}

impl Axis {
    fn width(&self) -> f64 {
        (self.levels / 2) as f64
    }
}

impl Fsq {
    /// The number of codes.
    pub fn size(&self) -> usize {
        self.axes.iter().map(|axis| axis.levels).product()
    }

    /// The codes of an input and their indices.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d]`, with one coordinate for each number of levels
    /// - codes: `[..., d]`, indices: `[..., 1]`
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn forward<const D: usize>(&self, input: Tensor<D>) -> Quantized<D> {
        let levels = self.squash(input.clone().inner()).round();
        self.quantized(input, levels)
    }

    /// As [`forward`](Self::forward), but each coordinate goes to one of its two neighbours at
    /// random, such that the mean is the bounded input.
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn forward_stochastic<const D: usize>(&self, key: Key, input: Tensor<D>) -> Quantized<D> {
        let levels = round_at_random(key, self.squash(input.clone().inner()));
        self.quantized(input, levels)
    }

    /// The bounded input `y` before it is rounded, with its own gradient.
    ///
    /// # Shapes
    ///
    /// - input: `[..., d]`
    /// - output: `[..., d]`
    ///
    /// # Panics
    ///
    /// If the last axis of the input has another size.
    pub fn bound<const D: usize>(&self, input: Tensor<D>) -> Tensor<D> {
        let value = self.squash(input.clone().inner());
        self.with_slope(input, value, |axis| axis.half)
    }

    /// The indices `[..., 1]` of codes `[..., d]`.
    ///
    /// # Panics
    ///
    /// If the last axis of the codes has another size.
    pub fn indices<const D: usize>(&self, codes: Tensor<D>) -> Tensor<D, Int> {
        let codes = codes.inner();
        self.check(&codes);
        let width = self.row(&codes, Axis::width);
        let digits = (codes * width.clone() + width).round().int();
        let [basis, _] = self.digits(&digits.device());
        (digits * basis).sum_dim(D - 1)
    }

    /// The codes `[..., d]` of indices `[..., 1]`, with the default floats of their device.
    ///
    /// # Panics
    ///
    /// If the last axis of the indices is not 1.
    pub fn codes<const D: usize>(&self, indices: Tensor<D, Int>) -> Tensor<D> {
        assert_shape!(indices, [.., 1]);
        let [basis, levels] = self.digits(&indices.device());
        let digits = (indices / basis).remainder(levels).float();
        let width = self.row(&digits, Axis::width);
        (digits - width.clone()) / width
    }

    fn squash<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        self.check(&x);
        let [half, offset, shift] = [
            self.row(&x, |axis| axis.half),
            self.row(&x, |axis| axis.offset),
            self.row(&x, |axis| axis.shift),
        ];
        half * (x + shift).tanh() - offset
    }

    fn quantized<const D: usize>(&self, input: Tensor<D>, levels: Tensor<D>) -> Quantized<D> {
        let value = levels.clone() / self.row(&levels, Axis::width);
        Quantized {
            indices: self.indices(value.clone()),
            codes: self.with_slope(input, value, |axis| axis.half / axis.width()),
        }
    }

    /// A value on the tape of the input, with the derivative of `factor tanh(x + shift)`.
    fn with_slope<const D: usize>(
        &self,
        input: Tensor<D>,
        value: Tensor<D>,
        factor: fn(&Axis) -> f64,
    ) -> Tensor<D> {
        let layer = self.clone();
        with_gradient(input, value, move |input, _, grad| {
            let shift = layer.row(&input, |axis| axis.shift);
            let factor = layer.row(&input, factor);
            // 1 - tanh^2 would have no digits left where tanh is near 1.
            let e = ((input + shift).abs() * -2.0).exp();
            let slope = e.clone() * 4.0 / (e + 1.0).square();
            grad * slope * factor
        })
    }

    fn check<const D: usize>(&self, x: &Tensor<D>) {
        let d = self.axes.len();
        assert_shape!(x, [.., d]);
    }

    /// A constant of each coordinate, `[1, ..., d]`.
    fn row<const D: usize>(&self, like: &Tensor<D>, constant: fn(&Axis) -> f64) -> Tensor<D> {
        let numbers: Vec<f64> = self.axes.iter().map(constant).collect();
        let shape = last_axis::<D>(numbers.len());
        from_host(numbers, shape, like)
    }

    /// What a digit counts for and how many values it has, `[1, ..., d]`.
    fn digits<const D: usize>(&self, device: &Device) -> [Tensor<D, Int>; 2] {
        let levels: Vec<i64> = self.axes.iter().map(|axis| axis.levels as i64).collect();
        let mut basis = vec![1; levels.len()];
        for i in 1..levels.len() {
            basis[i] = basis[i - 1] * levels[i - 1];
        }
        [basis, levels].map(|numbers| {
            let shape = last_axis::<D>(numbers.len());
            Tensor::from_data(TensorData::new(numbers, shape), device)
        })
    }
}

fn last_axis<const D: usize>(size: usize) -> [usize; D] {
    let mut shape = [1; D];
    shape[D - 1] = size;
    shape
}
