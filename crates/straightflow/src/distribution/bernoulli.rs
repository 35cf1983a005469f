//! Binary variables.

use burn::tensor::Tensor;

use super::{Canonical, Distribution, Family, Law};
use crate::error::Result;

/// Independent variables that are 1 with probability `p = sigmoid(logit)` and 0 otherwise.
///
/// Probabilities below 2^-33 never yield their value in `f32`, those below 2^-53 in `f64`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let logits = Tensor::<2>::from_floats([[0.0, 2.0, -1e4]], &Device::flex());
/// let q = Bernoulli::from_logits(logits)?;
/// let z = q.sample(Key::new(1), 1000);
/// assert_eq!(z.dims(), [1000, 1, 3]);
/// assert!(q.log_prob(z).into_data().try_to_vec::<f32>().unwrap().iter().all(|x| *x <= 0.0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Bernoulli(Law);

impl Bernoulli {
    /// From logits `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_logits(logits: Tensor<2>) -> Result<Self> {
        Law::new(Family::Bernoulli, logits.into_canonical()).map(Self)
    }

    /// From the probabilities of a 1, `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_means(means: Tensor<2>) -> Result<Self> {
        Law::from_means(Family::Bernoulli, means.into_canonical()).map(Self)
    }

    /// The logits `[batch, d]`.
    pub fn logits(&self) -> Tensor<2> {
        self.natural()
    }
}

impl Distribution for Bernoulli {
    type Parameters = Tensor<2>;
    type Samples = Tensor<3>;

    fn law(&self) -> &Law {
        &self.0
    }

    fn from_law(law: Law) -> Self {
        Self(law)
    }
}
