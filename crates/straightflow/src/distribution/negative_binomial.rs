//! Over-dispersed counts.

use burn::tensor::Tensor;

use super::{Canonical, Distribution, Family, Law};
use crate::error::Result;

/// Independent counts `0, 1, 2, ..` with mean `m` and variance `m + m^2 / r`, where `r` is the
/// dispersion.
///
/// In words: the number of *failures* before the `r`-th success in trials of success probability
/// `p = r / (r + m)`, so that
/// `P(z) = Gamma(z + r) / (Gamma(r) z!) p^r (1 - p)^z`. With `r = 1` it is geometric on
/// `0, 1, 2, ..`; as `r` grows it tends to a Poisson variable. The natural parameter is the
/// log-mean, which differs from the logit of `1 - p` by the constant `ln r`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let means = Tensor::<2>::from_floats([[4.0]], &Device::flex());
/// let geometric = NegativeBinomial::from_means(1.0, means)?;
/// assert!((geometric.variance().into_scalar::<f32>() - 20.0).abs() < 1e-4);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct NegativeBinomial(Law);

impl NegativeBinomial {
    /// From the logarithms of the means, `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If the dispersion is not positive and finite, or a dimension is 0.
    pub fn from_log_means(dispersion: f64, log_means: Tensor<2>) -> Result<Self> {
        Law::new(
            Family::NegativeBinomial { dispersion },
            log_means.into_canonical(),
        )
        .map(Self)
    }

    /// From positive means `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If the dispersion is not positive and finite, or a dimension is 0.
    pub fn from_means(dispersion: f64, means: Tensor<2>) -> Result<Self> {
        Law::from_means(
            Family::NegativeBinomial { dispersion },
            means.into_canonical(),
        )
        .map(Self)
    }

    /// The logarithms of the means, `[batch, d]`.
    pub fn log_means(&self) -> Tensor<2> {
        self.natural()
    }

    /// The dispersion `r`.
    pub fn dispersion(&self) -> f64 {
        match self.0.family() {
            Family::NegativeBinomial { dispersion } => dispersion,
            family => unreachable!("a negative binomial distribution of family {family:?}"),
        }
    }
}

impl Distribution for NegativeBinomial {
    type Parameters = Tensor<2>;
    type Samples = Tensor<3>;

    fn law(&self) -> &Law {
        &self.0
    }

    fn from_law(law: Law) -> Self {
        Self(law)
    }
}
