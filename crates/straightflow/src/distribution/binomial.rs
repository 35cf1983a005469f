//! Counts of successes.

use burn::tensor::Tensor;

use super::count::logit;
use super::divergence::{Divergence, divergence_of_logits};
use super::formulas::{EDGE, Formulas};
use super::{CountLaw, Distribution, Family, Law, Numbers, wraps_law};
use crate::error::{Error, Result};
use crate::ops::fused::sigmoid;

/// Independent numbers of successes in a fixed number of trials, each of probability
/// `p = sigmoid(logit)`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let q = Binomial::from_logits(7, Tensor::<2>::zeros([1, 2], &Device::flex()))?;
/// assert_eq!(q.mean().into_data().try_to_vec::<f32>().unwrap(), [3.5, 3.5]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Binomial<const R: usize = 2>(Law);

impl<const R: usize> Binomial<R>
where
    Tensor<R>: Numbers,
{
    /// From the logits of a success, `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If there are no trials, or a dimension is 0.
    pub fn from_logits(trials: u32, logits: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::Binomial { trials }, logits)
    }

    /// From means `trials * p`, `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If there are no trials, or a dimension is 0.
    pub fn from_means(trials: u32, means: Tensor<R>) -> Result<Self> {
        Self::of_means(Family::Binomial { trials }, means)
    }

    /// The logits of a success, `[batch, ..]`.
    pub fn logits(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(Binomial, Numbers);

/// The formulas of counts of successes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    trials: u32,
}

pub(super) fn formulas(trials: u32) -> Fixed {
    Fixed { trials }
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    vec![
        (Family::Binomial { trials: 4 }, vec![0.4]),
        (Family::Binomial { trials: 3 }, vec![-3.2]),
    ]
}

impl Fixed {
    fn trials(&self) -> f64 {
        f64::from(self.trials)
    }
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "logit"
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn check(&self, _shape: [usize; 3]) -> Result<()> {
        match self.trials {
            0 => Err(Error::NoTrials),
            _ => Ok(()),
        }
    }

    fn allowed_means(&self) -> (f64, &'static str) {
        (self.trials(), "between 0 and the number of trials")
    }

    fn natural_of_means(&self, means: Tensor<3>) -> Tensor<3> {
        // burn differentiates a division by a number in single precision.
        let p = means * f64::from(self.trials.max(1)).recip();
        p.clone().log() - (-p).log1p()
    }

    fn natural_of_mean(&self, mean: f64) -> f64 {
        logit((mean / self.trials()).clamp(EDGE, 1.0 - EDGE))
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        sigmoid(natural) * self.trials()
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        sigmoid(natural.clone()) * sigmoid(-natural) * self.trials()
    }

    #[inline]
    fn count_law(&self, natural: f64) -> Option<CountLaw> {
        Some(CountLaw::Binomial {
            trials: self.trials,
            logit: natural,
        })
    }

    #[inline]
    fn divergence_of(&self, p: f64, q: f64) -> Divergence {
        let one = divergence_of_logits(p, q);
        Divergence {
            value: self.trials() * one.value,
            first: self.trials() * one.first,
            second: self.trials() * one.second,
        }
    }

    fn weight(&self, natural: Tensor<3>) -> Option<(Family, Tensor<3>)> {
        let trials = self.trials.saturating_sub(1);
        Some((Family::Binomial { trials }, natural))
    }

    fn step_weights(&self, natural: Tensor<4>, z: Tensor<4>) -> [Tensor<4>; 2] {
        let (p, q) = (sigmoid(natural.clone()), sigmoid(-natural));
        [z.clone() * q, (-z + self.trials()) * p]
    }

    fn trials_of_step(&self) -> Option<f64> {
        Some(self.trials())
    }

    fn step(&self, z: f64, side: f64) -> f64 {
        // One trial, taken at random, was a success with probability z / N.
        if side < z / self.trials() { -1.0 } else { 1.0 }
    }

    fn moved(&self, _natural: Tensor<3>, z: Tensor<4>, side: Option<Tensor<4>>) -> Tensor<4> {
        let side = side.expect("uniform numbers for the sides of the steps");
        let up = side.lower(z.clone() / self.trials()).bool_not();
        let up = up.float().cast(z.dtype());
        z + up * 2.0 - 1.0
    }
}
