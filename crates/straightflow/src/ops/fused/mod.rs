//! Hot loops in one pass over memory: the log-probability of binary variables.
//!
//! Composed of tensor operations, it would read and write whole tensors several times.
//! [`bernoulli_log_prob`] does the work in one pass, with the SIMD instructions that the CPU turns
//! out to have, for `f32` and `f64` tensors of the flex backend. For other types and backends it is
//! composed of tensor operations: the same values up to rounding.
//!
//! It uses one thread, so nothing depends on the number of threads. Sums run in sixteen lanes
//! whatever the width of a register, and products are rounded before they are added: results in
//! `f32` have the same bits on every CPU. In `f64` the logarithms and exponentials are those of the
//! platform's mathematical library.

mod bernoulli;
#[cfg(feature = "flex")]
mod flex;
#[cfg(feature = "flex")]
mod kernel;
#[cfg(feature = "flex")]
mod real;

pub use bernoulli::bernoulli_log_prob;
pub(crate) use bernoulli::{bernoulli_sample, sigmoid};
