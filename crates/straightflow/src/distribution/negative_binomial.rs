//! Over-dispersed counts.

use burn::tensor::Tensor;
use burn::tensor::activation::{self, log_sigmoid};

use super::divergence::{Divergence, divergence_of_logits};
use super::formulas::Formulas;
use super::{CountLaw, Distribution, Family, Law, Numbers, wraps_law};
use crate::error::{Error, Result};
use crate::ops::fused::sigmoid;

/// Independent counts `0, 1, 2, ..` with mean `m` and variance `m + m^2 / r`, where `r` is the
/// dispersion.
///
/// In words: the number of *failures* before the `r`-th success in trials of success probability
/// `p = r / (r + m)`, so that
/// `P(z) = Gamma(z + r) / (Gamma(r) z!) p^r (1 - p)^z`. With `r = 1` it is
/// [`Geometric`](super::Geometric); as `r` grows it tends to a Poisson variable. The natural
/// parameter is the log-mean, which differs from the logit of `1 - p` by the constant `ln r`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let means = Tensor::<2>::from_floats([[4.0]], &Device::flex());
/// let geometric = NegativeBinomial::from_means(1.0, means)?;
/// assert!((geometric.variance().into_scalar::<f32>() - 20.0).abs() < 1e-4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NegativeBinomial<const R: usize = 2>(Law);

impl<const R: usize> NegativeBinomial<R>
where
    Tensor<R>: Numbers,
{
    /// From the logarithms of the means, `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If the dispersion is not positive and finite, or a dimension is 0.
    pub fn from_log_means(dispersion: f64, log_means: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::NegativeBinomial { dispersion }, log_means)
    }

    /// From positive means `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If the dispersion is not positive and finite, or a dimension is 0.
    pub fn from_means(dispersion: f64, means: Tensor<R>) -> Result<Self> {
        Self::of_means(Family::NegativeBinomial { dispersion }, means)
    }

    /// The logarithms of the means, `[batch, ..]`.
    pub fn log_means(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(NegativeBinomial, Numbers);

/// The formulas of over-dispersed counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    dispersion: f64,
}

pub(super) fn formulas(dispersion: f64) -> Fixed {
    Fixed { dispersion }
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    [(2.5, 1.2f64), (0.7, 0.08)]
        .map(|(dispersion, mean)| (Family::NegativeBinomial { dispersion }, vec![mean.ln()]))
        .to_vec()
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "log-mean"
    }

    fn check(&self, _shape: [usize; 3]) -> Result<()> {
        let dispersion = self.dispersion;
        match dispersion.is_finite() && dispersion > 0.0 {
            true => Ok(()),
            false => Err(Error::Dispersion { dispersion }),
        }
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        natural.exp()
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        let mean = natural.exp();
        mean.clone() * (mean * self.dispersion.recip() + 1.0)
    }

    fn chain_factor(&self, natural: Tensor<3>) -> Tensor<3> {
        self.mean(natural)
    }

    #[inline]
    fn count_law(&self, natural: f64) -> Option<CountLaw> {
        Some(CountLaw::NegativeBinomial {
            dispersion: self.dispersion,
            mean: natural.exp(),
        })
    }

    fn score(&self, natural: Tensor<4>, z: Tensor<4>) -> Tensor<4> {
        (z - natural.clone().exp()) * sigmoid(-natural + self.dispersion.ln())
    }

    fn entropy(&self, natural: Tensor<3>) -> Option<Tensor<3>> {
        // Of geometric variables: -E[z ln p + ln(1 - p)], p = m / (1 + m), whose logit is the
        // log-mean.
        (self.dispersion == 1.0).then(|| {
            -(natural.clone().exp() * log_sigmoid(natural.clone()) + log_sigmoid(-natural))
        })
    }

    #[inline]
    fn divergence_of(&self, p: f64, q: f64) -> Divergence {
        // m ln(p/q) + r ln((1 - p)/(1 - q)) is (m + r) times the divergence of two Bernoulli
        // variables with logits ln(m / r).
        let mean = p.exp();
        let one = divergence_of_logits(p - self.dispersion.ln(), q - self.dispersion.ln());
        let total = mean + self.dispersion;
        Divergence {
            value: total * one.value,
            first: mean * one.value + total * one.first,
            second: total * one.second,
        }
    }

    fn weight(&self, natural: Tensor<3>) -> Option<(Family, Tensor<3>)> {
        let dispersion = self.dispersion + 1.0;
        let natural = natural + self.dispersion.recip().ln_1p();
        Some((Family::NegativeBinomial { dispersion }, natural))
    }

    fn step_weights(&self, natural: Tensor<4>, z: Tensor<4>) -> [Tensor<4>; 2] {
        let up = (z.clone() + self.dispersion) * sigmoid(natural - self.dispersion.ln());
        [z, up]
    }

    fn weighs_draws(&self) -> bool {
        true
    }

    fn move_weight(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<4> {
        // The weight of a step up. In single precision the two sigmoids differ in their last bits,
        // and runs of debiased straight-through keep theirs.
        let natural = natural.unsqueeze::<4>();
        (z + self.dispersion) * activation::sigmoid(natural - self.dispersion.ln())
    }
}
