//! Failures before a success.

use burn::tensor::Tensor;

use super::formulas::Formulas;
use super::{Distribution, Family, Law, Numbers, negative_binomial, wraps_law};
use crate::error::Result;

/// Independent numbers of failures `0, 1, 2, ..` before the first success in trials of success
/// probability `p = 1 / (1 + m)`, where `m = exp(log-mean)` is the mean:
/// `P(z) = p (1 - p)^z`, with variance `m + m^2`.
///
/// It is the law of [`NegativeBinomial`](super::NegativeBinomial) with dispersion 1, to the bit,
/// and has an entropy in closed form.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// // A fair coin: no failure with probability 1/2, two bits of entropy.
/// let q = Geometric::from_means(Tensor::<2>::ones([1, 1], &Device::flex()))?;
/// let none = q.log_prob(Tensor::zeros([1, 1, 1], &Device::flex()));
/// assert!((none.exp().into_scalar::<f32>() - 0.5).abs() < 1e-6);
/// assert!((q.entropy()?.into_scalar::<f32>() - 4f32.ln()).abs() < 1e-6);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Geometric<const R: usize = 2>(Law);

impl<const R: usize> Geometric<R>
where
    Tensor<R>: Numbers,
{
    /// From the logarithms of the means, `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_log_means(log_means: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::Geometric, log_means)
    }

    /// From positive means `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_means(means: Tensor<R>) -> Result<Self> {
        Self::of_means(Family::Geometric, means)
    }

    /// The logarithms of the means, `[batch, ..]`.
    pub fn log_means(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(Geometric, Numbers);

pub(super) fn formulas() -> impl Formulas {
    negative_binomial::formulas(1.0)
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    // The tail is long: with larger means, three variables have too many states to be summed over.
    [0.4, 0.07]
        .map(|mean: f64| (Family::Geometric, vec![mean.ln()]))
        .to_vec()
}
