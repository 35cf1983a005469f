//! Hot loops in one pass over memory: the log-probability of binary variables, and the layers of
//! networks.
//!
//! Composed of tensor operations, they would read and write whole tensors several times.
//! [`bernoulli_log_prob`] does the work in one pass, with the SIMD instructions that the CPU turns
//! out to have, for `f32` and `f64` tensors of the flex backend; [`affine`] and [`bit_affine`] do for
//! `f32`. For other types and backends they are composed of tensor operations: the same values up to
//! rounding.
//!
//! The loops use one thread, so nothing depends on the number of threads. Sums run in sixteen lanes
//! whatever the width of a register, and products are rounded before they are added: results in
//! `f32` have the same bits on every CPU. In `f64` the logarithms and exponentials are those of the
//! platform's mathematical library. Matrix products are burn's.

mod affine;
mod bernoulli;
mod bits;
#[cfg(feature = "flex")]
pub(crate) mod control;
mod elementwise;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "flex")]
mod kernel;
#[cfg(feature = "flex")]
mod layer;
#[cfg(feature = "flex")]
mod product;
#[cfg(feature = "flex")]
mod real;
#[cfg(feature = "flex")]
pub(crate) mod stein;
#[cfg(feature = "flex")]
mod tape;

pub use affine::{affine, composed_layers};
pub use bernoulli::bernoulli_log_prob;
pub(crate) use bernoulli::bernoulli_sample;
pub use bits::{BitInput, BitRows, bit_affine};
pub(crate) use elementwise::{RelaxedBits, relaxed_bits, sigmoid, sigmoid_pullback, tanh};
