//! What a cost may return.

use burn::tensor::Tensor;

use crate::error::{Error, Result};

/// What the closure of a cost may return: one number for each draw and batch element, `[n, batch]`,
/// with any number of dimensions of size 1 behind, or a [`Result`] of it.
///
/// So `z.sum_dim(2)`, of shape `[n, batch, 1]`, is a cost as it is.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let q = Bernoulli::from_logits(Tensor::<2>::zeros([3, 2], &Device::flex()))?;
/// let exact = Exact::default();
/// let flat = exact.gradient(&q, |z| z.square().sum_dim(2).squeeze_dim::<2>(2))?;
/// let long = exact.gradient(&q, |z| z.square().sum_dim(2))?;
/// let fallible = exact.gradient(&q, |z| Ok(z.square().sum_dim(2)))?;
/// assert!(flat.clone().equal(long).all().into_scalar::<bool>());
/// assert!(flat.equal(fallible).all().into_scalar::<bool>());
/// # Ok::<(), Error>(())
/// ```
pub trait IntoCost {
    /// The cost `[n, batch]`.
    ///
    /// # Errors
    ///
    /// [`CostShape`](Error::CostShape) if it is not of the expected shape `[n, batch]`, or the
    /// error of the cost itself.
    fn into_cost(self, expected: [usize; 2]) -> Result<Tensor<2>>;
}

impl<const R: usize> IntoCost for Tensor<R> {
    fn into_cost(self, expected: [usize; 2]) -> Result<Tensor<2>> {
        let got = self.dims();
        let (front, behind) = got.split_at(R.min(2));
        if front != expected || behind.iter().any(|size| *size != 1) {
            return Err(Error::CostShape {
                expected,
                got: got.to_vec(),
            });
        }
        Ok(self.reshape(expected))
    }
}

impl<const R: usize> IntoCost for Result<Tensor<R>> {
    fn into_cost(self, expected: [usize; 2]) -> Result<Tensor<2>> {
        self?.into_cost(expected)
    }
}
