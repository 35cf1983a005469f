//! Which discrete variable: the family and what it needs besides its natural parameter.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::CountLaw;

/// A family of discrete distributions with all that is fixed, so that the natural parameter is
/// the only thing left to learn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Family {
    /// 0 or 1, by the logit of 1.
    Bernoulli,
    /// One of `k` categories as a one-hot vector, by `k` logits.
    Categorical,
    /// 0, 1, 2, .., by the logarithm of the rate.
    Poisson,
    /// 0, .., `trials`, by the logit of a success.
    Binomial {
        /// The number of trials.
        trials: u32,
    },
    /// 0, 1, 2, .., by the logarithm of the mean.
    NegativeBinomial {
        /// `r`; the variance is `mean + mean^2 / r`.
        dispersion: f64,
    },
}

/// A family without its fixed numbers: what an estimator supports or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FamilyKind {
    /// See [`Family::Bernoulli`].
    Bernoulli,
    /// See [`Family::Categorical`].
    Categorical,
    /// See [`Family::Poisson`].
    Poisson,
    /// See [`Family::Binomial`].
    Binomial,
    /// See [`Family::NegativeBinomial`].
    NegativeBinomial,
}

impl FamilyKind {
    /// Every family.
    pub const ALL: &'static [Self] = &[
        Self::Bernoulli,
        Self::Categorical,
        Self::Poisson,
        Self::Binomial,
        Self::NegativeBinomial,
    ];
}

impl fmt::Display for FamilyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bernoulli => "bernoulli",
            Self::Categorical => "categorical",
            Self::Poisson => "poisson",
            Self::Binomial => "binomial",
            Self::NegativeBinomial => "negative-binomial",
        })
    }
}

impl Family {
    /// The family without its fixed numbers.
    pub fn kind(&self) -> FamilyKind {
        match self {
            Self::Bernoulli => FamilyKind::Bernoulli,
            Self::Categorical => FamilyKind::Categorical,
            Self::Poisson => FamilyKind::Poisson,
            Self::Binomial { .. } => FamilyKind::Binomial,
            Self::NegativeBinomial { .. } => FamilyKind::NegativeBinomial,
        }
    }

    /// The law of one coordinate with a natural parameter, or `None` for a categorical variable,
    /// which is not ordered.
    pub fn count_law(&self, natural: f64) -> Option<CountLaw> {
        match *self {
            Self::Bernoulli => Some(CountLaw::Binomial {
                trials: 1,
                logit: natural,
            }),
            Self::Categorical => None,
            Self::Poisson => Some(CountLaw::Poisson {
                rate: natural.exp(),
            }),
            Self::Binomial { trials } => Some(CountLaw::Binomial {
                trials,
                logit: natural,
            }),
            Self::NegativeBinomial { dispersion } => Some(CountLaw::NegativeBinomial {
                dispersion,
                mean: natural.exp(),
            }),
        }
    }

    /// The natural parameter's name in messages.
    pub(crate) fn natural_name(&self) -> &'static str {
        match self {
            Self::Bernoulli | Self::Categorical | Self::Binomial { .. } => "logit",
            Self::Poisson => "log-rate",
            Self::NegativeBinomial { .. } => "log-mean",
        }
    }

    /// The largest mean of a coordinate.
    pub(crate) fn largest_mean(&self) -> f64 {
        match *self {
            Self::Bernoulli | Self::Categorical => 1.0,
            Self::Binomial { trials } => f64::from(trials),
            Self::Poisson | Self::NegativeBinomial { .. } => f64::INFINITY,
        }
    }
}
