//! Ordered variables as textbooks have them, sharing no formula with the library: all that the
//! references know about families.

use statrs::function::gamma::ln_gamma;
use straightflow::distribution::Family;

/// A law with its natural parameter.
#[derive(Clone, Copy, Debug)]
pub enum Textbook {
    Binomial { trials: f64, logit: f64 },
    Poisson { log_rate: f64 },
    NegativeBinomial { r: f64, log_mean: f64 },
}

impl Textbook {
    /// The law of a family; `None` for vectors, which have no order, and lattices.
    pub fn new(family: Family, natural: f64) -> Option<Self> {
        let binomial = |trials: f64| Self::Binomial {
            trials,
            logit: natural,
        };
        let negative_binomial = |r: f64| Self::NegativeBinomial {
            r,
            log_mean: natural,
        };
        match family {
            Family::Bernoulli => Some(binomial(1.0)),
            Family::Binomial { trials } => Some(binomial(f64::from(trials))),
            Family::Poisson => Some(Self::Poisson { log_rate: natural }),
            Family::NegativeBinomial { dispersion } => Some(negative_binomial(dispersion)),
            Family::Geometric => Some(negative_binomial(1.0)),
            Family::Categorical | Family::Subset { .. } | Family::Rounded { .. } => None,
        }
    }

    pub fn variance(self) -> f64 {
        match self {
            Self::Binomial { trials, logit } => trials * logit.exp() / (1.0 + logit.exp()).powi(2),
            Self::Poisson { log_rate } => log_rate.exp(),
            Self::NegativeBinomial { r, log_mean } => {
                let mean = log_mean.exp();
                mean + mean * mean / r
            }
        }
    }

    /// `d mean / d natural`.
    pub fn jacobian(self) -> f64 {
        match self {
            Self::Binomial { .. } | Self::Poisson { .. } => self.variance(),
            Self::NegativeBinomial { log_mean, .. } => log_mean.exp(),
        }
    }

    /// The law `w` with `dE g/dm = sum_x w(x) [g(x+1) - g(x)]`, at 0, 1, 2, ..
    pub fn weight(self) -> Vec<f64> {
        match self {
            Self::Binomial { trials, logit } => {
                let (n, p) = (trials - 1.0, probability(logit));
                by_ratio((1.0 - p).powf(n), |x| (n - x) / (x + 1.0) * p / (1.0 - p))
            }
            Self::Poisson { log_rate } => {
                let rate = log_rate.exp();
                by_ratio((-rate).exp(), |x| rate / (x + 1.0))
            }
            // P(x) = C(x + r, x) (1 - p)^x p^(r + 1), p = r / (r + m).
            Self::NegativeBinomial { r, log_mean } => {
                let failure = log_mean.exp() / (r + log_mean.exp());
                by_ratio((1.0 - failure).powf(r + 1.0), |x| {
                    (x + r + 1.0) / (x + 1.0) * failure
                })
            }
        }
    }

    /// The weight of the trapezoid rule on the two steps next to `z`:
    /// `d mean / d natural (w(z) + w(z - 1)) / (2 q(z))`.
    pub fn trapezoid(self, z: f64) -> f64 {
        0.5 * match self {
            Self::Binomial { trials, logit } => {
                let p = probability(logit);
                p * (trials - z) + (1.0 - p) * z
            }
            Self::Poisson { log_rate } => z + log_rate.exp(),
            Self::NegativeBinomial { r, log_mean } => {
                let mean = log_mean.exp();
                mean / (r + mean) * (z + r) + z
            }
        }
    }

    /// The logarithm of the probability of `k`.
    pub fn ln_pmf(self, k: f64) -> f64 {
        match self {
            Self::Binomial { trials: n, logit } => {
                let choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
                choose + k * logit - n * logit.exp().ln_1p()
            }
            Self::Poisson { log_rate } => k * log_rate - log_rate.exp() - ln_gamma(k + 1.0),
            Self::NegativeBinomial { r, log_mean } => {
                let choose = ln_gamma(k + r) - ln_gamma(r) - ln_gamma(k + 1.0);
                let m = log_mean.exp();
                choose + r * (r / (r + m)).ln() + k * (m / (r + m)).ln()
            }
        }
    }
}

fn probability(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// Probabilities by their ratios, until nothing is left.
fn by_ratio(first: f64, ratio: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut weights = vec![first];
    for x in 0..2_000 {
        let last = weights[x];
        let next = last * ratio(x as f64);
        if next == 0.0 || (next < last && next < 1e-25) {
            break;
        }
        weights.push(next);
    }
    weights
}
