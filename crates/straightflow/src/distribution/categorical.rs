//! One of `k` categories.

use burn::tensor::Tensor;

use super::{Distribution, Family, Law};
use crate::error::Result;

/// Independent variables that take one of `k` categories with probabilities `softmax(logits)`, as
/// one-hot vectors.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// // A batch of 2, 3 variables each, 4 categories.
/// let q = Categorical::from_logits(Tensor::zeros([2, 3, 4], &Device::flex()))?;
/// let z = q.sample(Key::new(1), 5);
/// assert_eq!(z.dims(), [5, 2, 3, 4]);
/// assert_eq!(z.sum().into_scalar::<f32>(), 30.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Categorical(Law);

impl Categorical {
    /// From logits `[batch, d, k]`; a constant added to the `k` logits of a variable changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If a dimension is 0 or `k` is 1.
    pub fn from_logits(logits: Tensor<3>) -> Result<Self> {
        Law::new(Family::Categorical, logits).map(Self)
    }

    /// From positive probabilities `[batch, d, k]`; they need not be normalised.
    ///
    /// # Errors
    ///
    /// If a dimension is 0 or `k` is 1.
    pub fn from_probabilities(probabilities: Tensor<3>) -> Result<Self> {
        Law::from_means(Family::Categorical, probabilities).map(Self)
    }

    /// The logits `[batch, d, k]`.
    pub fn logits(&self) -> Tensor<3> {
        self.natural()
    }
}

impl Distribution for Categorical {
    type Parameters = Tensor<3>;
    type Samples = Tensor<4>;

    fn law(&self) -> &Law {
        &self.0
    }

    fn from_law(law: Law) -> Self {
        Self(law)
    }
}
