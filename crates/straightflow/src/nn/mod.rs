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
mod rules;
mod vector_quantizer;

pub use fsq::{Fsq, FsqConfig, FsqShift};
pub use learned_step::{LearnedStep, LearnedStepConfig};
pub use lfq::{Lfq, LfqConfig};
pub use quantized::{Quantized, perplexity};
pub use round_ste::{RoundSte, RoundSteConfig};
pub use vector_quantizer::{
    CodebookGradient, VectorQuantized, VectorQuantizer, VectorQuantizerConfig,
};

use crate::error::Error;

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
