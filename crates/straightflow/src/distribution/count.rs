//! One-dimensional integer laws in `f64`: the exact, readable core that tensors are checked
//! against.

use statrs::function::beta::beta_reg;
use statrs::function::gamma::{digamma, gamma_ur};

use super::loader::{ln_binomial, ln_poisson};

/// A law on the integers `0, 1, ..`, given by its mean and its shape.
///
/// A Bernoulli variable is [`CountLaw::Binomial`] with one trial, a geometric one (failures before
/// the first success) is [`CountLaw::NegativeBinomial`] with `dispersion = 1`.
///
/// ```
/// use straightflow::distribution::CountLaw;
///
/// let law = CountLaw::Poisson { rate: 5.0 };
/// assert!((law.ln_pmf(5.0).exp() - 0.175467).abs() < 1e-6);
/// assert_eq!(law.variance(), 5.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CountLaw {
    /// The number of successes in `trials` trials of probability `sigmoid(logit)`.
    Binomial {
        /// The number of trials; zero gives the point mass at 0.
        trials: u32,
        /// The log-odds of a success.
        logit: f64,
    },
    /// The Poisson law.
    Poisson {
        /// The mean.
        rate: f64,
    },
    /// The negative binomial law with variance `mean + mean^2 / dispersion`.
    NegativeBinomial {
        /// `r`, the number of successes to wait for; any positive number.
        dispersion: f64,
        /// The mean.
        mean: f64,
    },
}

impl CountLaw {
    /// The mean `m`.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Binomial { trials, logit } => f64::from(trials) * sigmoid(logit),
            Self::Poisson { rate } => rate,
            Self::NegativeBinomial { mean, .. } => mean,
        }
    }

    /// The variance `V(m)`.
    pub fn variance(&self) -> f64 {
        match *self {
            Self::Binomial { trials, logit } => {
                f64::from(trials) * sigmoid(logit) * sigmoid(-logit)
            }
            Self::Poisson { rate } => rate,
            Self::NegativeBinomial { dispersion, mean } => mean + mean * mean / dispersion,
        }
    }

    /// The chain factor `dm / d(natural parameter)`, for a logit, a log-rate or a log-mean.
    pub fn chain_factor(&self) -> f64 {
        match self {
            Self::Binomial { .. } => self.variance(),
            Self::Poisson { .. } | Self::NegativeBinomial { .. } => self.mean(),
        }
    }

    /// The largest value of the support, if there is one.
    pub fn maximum(&self) -> Option<u64> {
        match *self {
            Self::Binomial { trials, .. } => Some(u64::from(trials)),
            Self::Poisson { .. } | Self::NegativeBinomial { .. } => None,
        }
    }

    /// The weight `w` of `d/dm E g(Z) = sum_x w(x) [g(x + 1) - g(x)]`, which is a law of the same
    /// kind: `w(x)` is the derivative of the survival function `P(Z > x)` with respect to the mean.
    ///
    /// `None` for the point mass of a binomial law without trials, whose mean cannot move.
    pub fn weight(&self) -> Option<Self> {
        match *self {
            Self::Binomial { trials, logit } => Some(Self::Binomial {
                trials: trials.checked_sub(1)?,
                logit,
            }),
            Self::Poisson { rate } => Some(Self::Poisson { rate }),
            // NB(r + 1, p) with the same p = r / (r + m).
            Self::NegativeBinomial { dispersion, mean } => Some(Self::NegativeBinomial {
                dispersion: dispersion + 1.0,
                mean: mean * (dispersion + 1.0) / dispersion,
            }),
        }
    }

    /// The law of the same shape with another mean.
    pub fn with_mean(&self, mean: f64) -> Self {
        match *self {
            Self::Binomial { trials, .. } => {
                let n = f64::from(trials);
                Self::Binomial {
                    trials,
                    logit: mean.ln() - (n - mean).ln(),
                }
            }
            Self::Poisson { .. } => Self::Poisson { rate: mean },
            Self::NegativeBinomial { dispersion, .. } => {
                Self::NegativeBinomial { dispersion, mean }
            }
        }
    }

    /// `ln P(Z = x)`, continued to real `x` by gamma functions; minus infinity outside the support.
    pub fn ln_pmf(&self, x: f64) -> f64 {
        match *self {
            Self::Binomial { trials, logit } => {
                let n = f64::from(trials);
                if x < 0.0 || x > n {
                    return f64::NEG_INFINITY;
                }
                ln_binomial(x, n - x, logit)
            }
            Self::Poisson { rate } => {
                if x < 0.0 {
                    return f64::NEG_INFINITY;
                }
                ln_poisson(x, rate)
            }
            Self::NegativeBinomial { dispersion, mean } => {
                if x < 0.0 {
                    return f64::NEG_INFINITY;
                }
                // P(x) = r / (x + r) * Bin(r; x + r, p), p = r / (r + m).
                let logit = dispersion.ln() - mean.ln();
                ln_binomial(dispersion, x, logit) - (x / dispersion).ln_1p()
            }
        }
    }

    /// `P(Z <= x)` for an integer `x`.
    ///
    /// Laws with small parameters use the regularised incomplete gamma and beta functions. Those
    /// of statrs lose digits when all arguments are large (its continued fractions end too early);
    /// such a law is narrow, and a sum over it is short.
    pub fn cdf(&self, x: f64) -> f64 {
        const LARGE: f64 = 1e3;
        if x < 0.0 {
            return 0.0;
        }
        match *self {
            Self::Binomial { trials, logit } => {
                let n = f64::from(trials);
                match sigmoid(-logit) {
                    _ if x >= n => 1.0,
                    q if q <= 0.0 => 0.0,
                    q if q >= 1.0 => 1.0,
                    q if x.min(n - x) < LARGE => beta_reg(n - x, x + 1.0, q),
                    _ => self.cdf_by_sum(x),
                }
            }
            Self::Poisson { rate } if rate <= 0.0 => 1.0,
            Self::Poisson { rate } if rate < LARGE => gamma_ur(x + 1.0, rate),
            Self::NegativeBinomial { dispersion, mean } if dispersion.min(x) < LARGE => {
                beta_reg(dispersion, x + 1.0, dispersion / (dispersion + mean))
            }
            _ => self.cdf_by_sum(x),
        }
    }

    fn cdf_by_sum(&self, x: f64) -> f64 {
        let (lo, hi) = self.window(40.0);
        let sum = |from: u64, to: u64| -> f64 { (from..=to).map(|x| self.pmf(x as f64)).sum() };
        let last = (x as u64).min(hi);
        match last {
            _ if last < lo => 0.0,
            _ if (last as f64) < self.mean() => sum(lo, last),
            _ => 1.0 - sum(last + 1, hi),
        }
    }

    /// `P(Z = x)`.
    pub fn pmf(&self, x: f64) -> f64 {
        self.ln_pmf(x).exp()
    }

    /// The derivative of [`ln_pmf`](Self::ln_pmf) with respect to the natural parameter (logit,
    /// log-rate or log-mean).
    pub fn score(&self, x: f64) -> f64 {
        match *self {
            Self::Binomial { trials, logit } => {
                // x - n p without cancellation: x (1 - p) - (n - x) p.
                x * sigmoid(-logit) - (f64::from(trials) - x) * sigmoid(logit)
            }
            Self::Poisson { rate } => x - rate,
            Self::NegativeBinomial { dispersion, mean } => {
                (x - mean) * (dispersion / (dispersion + mean))
            }
        }
    }

    /// The derivative of [`ln_pmf`](Self::ln_pmf) with respect to `x`, for relaxed samples.
    pub fn ln_pmf_slope(&self, x: f64) -> f64 {
        match *self {
            Self::Binomial { trials, logit } => {
                logit - digamma(x + 1.0) + digamma(f64::from(trials) - x + 1.0)
            }
            Self::Poisson { rate } => rate.ln() - digamma(x + 1.0),
            Self::NegativeBinomial { dispersion, mean } => {
                -(dispersion / mean).ln_1p() + digamma(x + dispersion) - digamma(x + 1.0)
            }
        }
    }

    /// The integers `lo..=hi` outside of which each tail has probability at most
    /// `exp(-log_tail)`.
    ///
    /// The tails are bounded by geometric series: beyond the mean the ratio of neighbouring
    /// probabilities is below one and does not grow (or grows only to the limit `m / (r + m)`, for
    /// a negative binomial law with `r < 1`).
    pub fn window(&self, log_tail: f64) -> (u64, u64) {
        let last = self.maximum().unwrap_or(u64::MAX);
        let mode = (self.mean().floor() as u64).min(last);
        let above = |x: u64| self.ln_upper_tail(x) <= -log_tail;
        let mut reach = 1;
        let mut hi = mode;
        while hi < last && !above(hi) {
            hi = mode.saturating_add(reach).min(last);
            reach = reach.saturating_mul(2);
        }
        let hi = first_true(mode, hi, above);
        // No value lies below 0, so the search downwards ends there at the latest.
        let below = |back: u64| self.ln_lower_tail(mode - back) <= -log_tail;
        let lo = mode - first_true(0, mode, below);
        (lo, hi)
    }

    /// A bound on `ln P(Z > x)` for `x` at or above the mean.
    fn ln_upper_tail(&self, x: u64) -> f64 {
        let next = x as f64 + 1.0;
        let ratio = match *self {
            // At the end of the support the odds may be infinite, and nothing is left.
            Self::Binomial { trials, .. } if next >= f64::from(trials) => 0.0,
            Self::Binomial { trials, logit } => {
                (f64::from(trials) - next) / (next + 1.0) * logit.exp()
            }
            Self::Poisson { rate } => rate / (next + 1.0),
            Self::NegativeBinomial { dispersion, mean } => {
                let limit = mean / (dispersion + mean);
                limit.max(limit * (next + dispersion) / (next + 1.0))
            }
        };
        if ratio >= 1.0 {
            0.0
        } else {
            self.ln_pmf(next) - (-ratio).ln_1p()
        }
    }

    /// A bound on `ln P(Z < x)` for `x` at or below the mean.
    fn ln_lower_tail(&self, x: u64) -> f64 {
        if x == 0 {
            return f64::NEG_INFINITY;
        }
        let previous = x as f64 - 1.0;
        let ratio = match *self {
            _ if previous == 0.0 => 0.0,
            Self::Binomial { trials, logit } => {
                previous / (f64::from(trials) - previous + 1.0) * (-logit).exp()
            }
            Self::Poisson { rate } => previous / rate,
            Self::NegativeBinomial { dispersion, mean } => {
                previous / (previous - 1.0 + dispersion) * (dispersion + mean) / mean
            }
        };
        if (0.0..1.0).contains(&ratio) {
            self.ln_pmf(previous) - (-ratio).ln_1p()
        } else {
            0.0
        }
    }
}

/// The smallest `x` in `lo..=hi` that satisfies a monotone predicate; `hi` if none does.
fn first_true(mut lo: u64, mut hi: u64, holds: impl Fn(u64) -> bool) -> u64 {
    while lo < hi {
        let middle = lo + (hi - lo) / 2;
        if holds(middle) {
            hi = middle;
        } else {
            lo = middle + 1;
        }
    }
    lo
}

/// `1 / (1 + exp(-x))`, accurate in both tails.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// `ln(p / (1 - p))`.
pub(crate) fn logit(p: f64) -> f64 {
    p.ln() - (-p).ln_1p()
}

/// `ln(1 + exp(x))`.
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}
