//! Counts of rare events.

use burn::tensor::Tensor;

use super::{Canonical, Distribution, Family, Law};
use crate::error::Result;

/// Independent counts `0, 1, 2, ..` with mean and variance `rate = exp(log-rate)`.
///
/// In `f32`, counts above 2^24 are rounded. Above a rate of 1e15 a sample is its own mean.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let q = Poisson::from_rates(Tensor::<2>::from_floats([[0.5, 5.0]], &Device::flex()))?;
/// let z = q.draw(Key::new(1));
/// assert_eq!(z.dims(), [1, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Poisson(Law);

impl Poisson {
    /// From the logarithms of the rates, `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_log_rates(log_rates: Tensor<2>) -> Result<Self> {
        Law::new(Family::Poisson, log_rates.into_canonical()).map(Self)
    }

    /// From positive rates `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_rates(rates: Tensor<2>) -> Result<Self> {
        Law::from_means(Family::Poisson, rates.into_canonical()).map(Self)
    }

    /// The logarithms of the rates, `[batch, d]`.
    pub fn log_rates(&self) -> Tensor<2> {
        self.natural()
    }
}

impl Distribution for Poisson {
    type Parameters = Tensor<2>;
    type Samples = Tensor<3>;

    fn law(&self) -> &Law {
        &self.0
    }

    fn from_law(law: Law) -> Self {
        Self(law)
    }
}
