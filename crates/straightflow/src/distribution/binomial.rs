//! Counts of successes.

use burn::tensor::Tensor;

use super::{Canonical, Distribution, Family, Law};
use crate::error::Result;

/// Independent numbers of successes in a fixed number of trials, each of probability
/// `p = sigmoid(logit)`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let q = Binomial::from_logits(7, Tensor::zeros([1, 2], &Device::flex()))?;
/// assert_eq!(q.mean().into_data().try_to_vec::<f32>().unwrap(), [3.5, 3.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Binomial(Law);

impl Binomial {
    /// From the logits of a success, `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If there are no trials, or a dimension is 0.
    pub fn from_logits(trials: u32, logits: Tensor<2>) -> Result<Self> {
        Law::new(Family::Binomial { trials }, logits.into_canonical()).map(Self)
    }

    /// From means `trials * p`, `[batch, d]`.
    ///
    /// # Errors
    ///
    /// If there are no trials, or a dimension is 0.
    pub fn from_means(trials: u32, means: Tensor<2>) -> Result<Self> {
        Law::from_means(Family::Binomial { trials }, means.into_canonical()).map(Self)
    }

    /// The logits of a success, `[batch, d]`.
    pub fn logits(&self) -> Tensor<2> {
        self.natural()
    }

    /// The number of trials.
    pub fn trials(&self) -> u32 {
        match self.0.family() {
            Family::Binomial { trials } => trials,
            family => unreachable!("a binomial distribution of family {family:?}"),
        }
    }
}

impl Distribution for Binomial {
    type Parameters = Tensor<2>;
    type Samples = Tensor<3>;

    fn law(&self) -> &Law {
        &self.0
    }

    fn from_law(law: Law) -> Self {
        Self(law)
    }
}
