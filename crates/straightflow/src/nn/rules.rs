//! What several layers share: the simplest backward rule, and rounding at random.

use burn::tensor::Tensor;

use crate::Key;
use crate::ops::Rule;

/// Hands the gradient on as it is.
#[derive(Debug)]
pub(super) struct PassThrough;

impl<const D: usize> Rule<D, D> for PassThrough {
    fn backward(&self, _input: Tensor<D>, _output: Tensor<D>, grad: Tensor<D>) -> Tensor<D> {
        grad
    }
}

/// One of the two integers around each number, such that the mean is the number. An integer stays.
pub(super) fn round_at_random<const D: usize>(key: Key, x: Tensor<D>) -> Tensor<D> {
    let below = x.clone().floor();
    let up = key
        .uniform(x.dims(), &x.device(), x.dtype())
        .lower(x.clone() - below.clone());
    below + up.float().cast(x.dtype())
}
