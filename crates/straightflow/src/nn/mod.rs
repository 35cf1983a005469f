//! Quantising layers: what most straight-through gradients in the wild are used for.
//!
//! A quantiser is a projection to a finite or countable set. Its derivative is zero almost
//! everywhere, so each layer states a backward rule of its own.
//!
//! | layer | values | backward |
//! |---|---|---|
//! | [`RoundSte`] | a lattice, nearest or stochastic | identity inside of the bounds |
//! | [`Fsq`] | a few levels for each coordinate | that of the bounded input before rounding |
//! | [`Lfq`] | signs | identity |
//! | [`LearnedStep`] | integers times a learned step | identity inside; the step learns too |
//! | [`VectorQuantizer`] | a learned codebook | identity or the rotation trick |
//!
//! The layers are burn modules with a configuration, work on inputs of any rank, and have a record.
//! Those that are made of codes work on the last axis.

mod fsq;
mod learned_step;
mod lfq;
mod quantized;
mod rotation;
mod round_ste;
mod vector_quantizer;

pub use fsq::{Fsq, FsqConfig, FsqShift};
pub use learned_step::{LearnedStep, LearnedStepConfig};
pub use lfq::{Lfq, LfqConfig};
pub use quantized::{Quantized, perplexity};
pub use round_ste::{RoundSte, RoundSteConfig};
pub use vector_quantizer::{
    CodebookGradient, VectorQuantized, VectorQuantizer, VectorQuantizerConfig,
};

use burn::tensor::Tensor;

use crate::Key;
use crate::error::Error;
use crate::gradient::with_gradient;

/// The error of a configuration that cannot be built.
fn refuse(
    layer: &'static str,
    option: &'static str,
    value: impl std::fmt::Debug,
    allowed: &'static str,
) -> Error {
    Error::InvalidLayer {
        layer,
        option,
        value: format!("{value:?}"),
        allowed,
    }
}

/// A value on the tape of the input, whose gradient is handed on as it is.
fn straight_through<const D: usize>(input: Tensor<D>, value: Tensor<D>) -> Tensor<D> {
    with_gradient(input, value, |_, _, grad| grad)
}

/// One of the two integers around each number, such that the mean is the number. An integer stays.
fn round_at_random<const D: usize>(key: Key, x: Tensor<D>) -> Tensor<D> {
    let below = x.clone().floor();
    let uniform = key.uniform(x.dims(), &x.device(), x.dtype());
    let up = uniform.lower(x.clone() - below.clone());
    below + up.float().cast(x.dtype())
}
