//! Values whose gradient is a closure.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;

use crate::ops::{Rule, custom_grad};

/// `value` on the tape of `parent`: [`custom_grad`] with a closure of parent, value and the
/// gradient of the value as its rule.
pub(crate) fn with_gradient<const P: usize, const Z: usize>(
    parent: Tensor<P>,
    value: Tensor<Z>,
    rule: impl Fn(Tensor<P>, Tensor<Z>, Tensor<Z>) -> Tensor<P> + Send + Sync + 'static,
) -> Tensor<Z> {
    custom_grad(parent, value, Arc::new(Closure(rule)))
}

struct Closure<F>(F);

impl<F> fmt::Debug for Closure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closure")
    }
}

impl<const P: usize, const Z: usize, F> Rule<P, Z> for Closure<F>
where
    F: Fn(Tensor<P>, Tensor<Z>, Tensor<Z>) -> Tensor<P> + Send + Sync,
{
    fn backward(&self, parent: Tensor<P>, output: Tensor<Z>, grad: Tensor<Z>) -> Tensor<P> {
        (self.0)(parent, output, grad)
    }
}
