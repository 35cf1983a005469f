//! The operations that burn lacks: a value with a backward rule of its own, element-wise functions
//! computed on the host in double precision, and hot loops in one pass.

mod custom_grad;
pub mod fused;
mod host;
mod precision;
mod side;

pub use custom_grad::{Rule, custom_grad};
pub(crate) use host::{first_non_finite, from_host, map_host, to_host};
pub(crate) use precision::check_precision;
pub(crate) use side::{guarded, on_the_side};

use burn::tensor::Tensor;

/// Zero, with the gradient of `x`: added to a mean cost, it keeps the value and adds a gradient.
pub(crate) fn gradient_only(x: Tensor<1>) -> Tensor<1> {
    x.clone() - x.inner()
}

/// A leaf of a new tape with the checkpointing strategy of `like`, because burn panics when the
/// strategies of two operands differ.
pub(crate) fn leaf_like<const A: usize, const B: usize>(
    value: Tensor<A>,
    like: &Tensor<B>,
) -> Tensor<A> {
    let leaf = value.inner().autodiff();
    match like.gradient_checkpointing_strategy() {
        Some(strategy) => leaf.with_gradient_checkpointing_strategy(strategy),
        None => leaf,
    }
    .require_grad()
}
