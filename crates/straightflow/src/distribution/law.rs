//! The canonical form of every distribution: a family and its natural parameters.

use std::sync::Arc;

use burn::tensor::{
    Tensor,
    activation::{log_sigmoid, log_softmax, softmax},
};

use super::{CountLaw, Family};
use crate::error::{Error, Result};
use crate::ops::fused::{bernoulli_log_prob, sigmoid};
use crate::ops::{Rule, custom_grad, first_non_finite, leaf_like, map_host, to_host};

/// Independent discrete variables of one family, in the shapes that estimators work with.
///
/// Natural parameters are `[batch, d, k]` and samples `[n, batch, d, k]`, where `k` is the number
/// of categories of a categorical variable and 1 for every other family. The typed distributions
/// ([`Bernoulli`](super::Bernoulli), ...) wrap a law and hide the last dimension where it is 1.
#[derive(Clone, Debug)]
pub struct Law {
    family: Family,
    natural: Tensor<3>,
    /// The means behind the natural parameters, if those were given, for [`Law::validate`].
    means: Option<Tensor<3>>,
}

impl Law {
    /// A law with natural parameters `[batch, d, k]`, on a tape or not.
    ///
    /// # Errors
    ///
    /// If a dimension is 0, a categorical variable has fewer than two categories, or a fixed number
    /// of the family is out of its range. Values are looked at by [`validate`](Self::validate).
    pub fn new(family: Family, natural: Tensor<3>) -> Result<Self> {
        let shape = natural.dims();
        if shape.contains(&0) {
            return Err(Error::EmptyShape {
                family: family.kind(),
                shape: Self::user_shape(family, shape),
            });
        }
        match family {
            Family::Categorical if shape[2] < 2 => {
                return Err(Error::TooFewCategories {
                    shape: shape.to_vec(),
                });
            }
            Family::Binomial { trials: 0 } => return Err(Error::NoTrials),
            Family::NegativeBinomial { dispersion }
                if !(dispersion.is_finite() && dispersion > 0.0) =>
            {
                return Err(Error::Dispersion { dispersion });
            }
            _ => {}
        }
        Ok(Self::unchecked(family, natural))
    }

    /// A law with means `[batch, d, k]`; the natural parameters are on their tape.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn from_means(family: Family, means: Tensor<3>) -> Result<Self> {
        let natural = match family {
            Family::Bernoulli => means.clone().log() - (-means.clone()).log1p(),
            Family::Binomial { trials } => {
                // burn differentiates a division by a number in single precision.
                let p = means.clone() * f64::from(trials.max(1)).recip();
                p.clone().log() - (-p).log1p()
            }
            Family::Categorical | Family::Poisson | Family::NegativeBinomial { .. } => {
                means.clone().log()
            }
        };
        let law = Self::new(family, natural)?;
        Ok(Self {
            means: Some(means.inner()),
            ..law
        })
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The natural parameters `[batch, d, k]`, on their tape.
    pub fn natural(&self) -> Tensor<3> {
        self.natural.clone()
    }

    /// `[batch, d, k]`.
    pub fn dims(&self) -> [usize; 3] {
        self.natural.dims()
    }

    /// The shape of `n` samples, `[n, batch, d, k]`.
    pub fn sample_dims(&self, n: usize) -> [usize; 4] {
        let [batch, d, k] = self.dims();
        [n, batch, d, k]
    }

    /// The same law as a constant.
    pub fn constant(&self) -> Self {
        self.with_natural(self.natural().inner())
    }

    /// The same law as a leaf of a new tape, and so apart from whatever network made its
    /// parameters.
    pub fn leaf(&self) -> Self {
        self.with_natural(leaf_like(self.natural(), &self.natural))
    }

    /// A law of the same family with other natural parameters of a valid shape.
    pub(crate) fn with_natural(&self, natural: Tensor<3>) -> Self {
        Self::unchecked(self.family, natural)
    }

    /// A law whose family and shape are known to be valid: those of another law.
    pub(crate) fn unchecked(family: Family, natural: Tensor<3>) -> Self {
        Self {
            family,
            natural,
            means: None,
        }
    }

    /// The means `[batch, d, k]`, on the tape of the parameters.
    pub fn mean(&self) -> Tensor<3> {
        let natural = self.natural();
        match self.family {
            Family::Bernoulli => sigmoid(natural),
            Family::Categorical => softmax(natural, 2),
            Family::Poisson | Family::NegativeBinomial { .. } => natural.exp(),
            Family::Binomial { trials } => sigmoid(natural) * f64::from(trials),
        }
    }

    /// The variance of each coordinate `[batch, d, k]`, on the tape of the parameters.
    pub fn variance(&self) -> Tensor<3> {
        let natural = self.natural();
        match self.family {
            Family::Bernoulli => sigmoid(natural.clone()) * sigmoid(-natural),
            Family::Categorical => {
                let p = softmax(natural, 2);
                p.clone() * (-p + 1.0)
            }
            Family::Poisson => natural.exp(),
            Family::Binomial { trials } => {
                sigmoid(natural.clone()) * sigmoid(-natural) * f64::from(trials)
            }
            Family::NegativeBinomial { dispersion } => {
                let mean = natural.exp();
                mean.clone() * (mean * dispersion.recip() + 1.0)
            }
        }
    }

    /// Turns a gradient with respect to the means into one with respect to the natural parameters:
    /// the transposed Jacobian `d mean / d natural` times `grad`.
    ///
    /// `grad` is `[batch, d, k]` or `[n, batch, d, k]` (`R` = 3 or 4). The product is arranged so
    /// that logits of any size give zero or a finite number: `p (1 - p)` is
    /// `sigmoid(x) sigmoid(-x)`.
    pub fn chain<const R: usize>(&self, grad: Tensor<R>) -> Tensor<R> {
        let natural = self.natural();
        match self.family {
            Family::Categorical => {
                let p = softmax(natural, 2).unsqueeze::<R>();
                let along = (p.clone() * grad.clone()).sum_dim(R - 1);
                p * (grad - along)
            }
            _ => grad * self.chain_factor().unsqueeze::<R>(),
        }
    }

    /// The chain factor `d mean / d natural` `[batch, d, 1]` of an ordered family; for a
    /// categorical variable, the diagonal `p (1 - p)` of its Jacobian.
    pub fn chain_factor(&self) -> Tensor<3> {
        match self.family {
            Family::NegativeBinomial { .. } => self.mean(),
            // The other ordered families are exponential families in their natural parameter.
            _ => self.variance(),
        }
    }

    /// The law `w` of `d/dm E g(Z) = sum_x w(x) [g(x + 1) - g(x)]`, which is again a law of an
    /// ordered family; `None` for a categorical variable.
    ///
    /// | family | `w` |
    /// |---|---|
    /// | Bernoulli(p) | the point mass at 0, as a binomial law without trials |
    /// | Binomial(n, p) | Binomial(n - 1, p) |
    /// | Poisson(m) | Poisson(m) |
    /// | NegativeBinomial(r, p) | NegativeBinomial(r + 1, p) |
    pub fn weight(&self) -> Option<Self> {
        let (family, natural) = match self.family {
            Family::Categorical => return None,
            Family::Poisson => (self.family, self.natural()),
            Family::Bernoulli => (Family::Binomial { trials: 0 }, self.natural()),
            Family::Binomial { trials } => (
                Family::Binomial {
                    trials: trials.saturating_sub(1),
                },
                self.natural(),
            ),
            Family::NegativeBinomial { dispersion } => (
                Family::NegativeBinomial {
                    dispersion: dispersion + 1.0,
                },
                self.natural() + dispersion.recip().ln_1p(),
            ),
        };
        Some(Self::unchecked(family, natural))
    }

    /// The logarithm of the probability of each coordinate, `[n, batch, d]`, on the tapes of the
    /// parameters and of the samples `[n, batch, d, k]`.
    ///
    /// Relaxed samples are welcome: probabilities are continued linearly (Bernoulli, Categorical)
    /// or by gamma functions (counts).
    ///
    /// # Panics
    ///
    /// If the shapes do not fit.
    pub fn log_prob_each(&self, z: Tensor<4>) -> Tensor<3> {
        let natural = self.natural();
        match self.family {
            Family::Bernoulli => {
                let natural = natural.unsqueeze::<4>();
                let one = z.clone() * log_sigmoid(natural.clone());
                let zero = (-z + 1.0) * log_sigmoid(-natural);
                (one + zero).squeeze_dim(3)
            }
            Family::Categorical => (z * log_softmax(natural, 2).unsqueeze::<4>())
                .sum_dim(3)
                .squeeze_dim(3),
            _ => self.log_prob_counts(z).squeeze_dim(3),
        }
    }

    /// `log q(z)` of each draw and batch element, `[n, batch]`: the sum of
    /// [`log_prob_each`](Self::log_prob_each) over the coordinates.
    pub fn log_prob(&self, z: Tensor<4>) -> Tensor<2> {
        let [batch, d, _] = self.dims();
        let [n, rows, columns, _] = z.dims();
        // One row of parameters for all, or one for each batch element of every draw.
        if self.family == Family::Bernoulli && columns == d && (batch == 1 || rows == batch) {
            let logits = self.natural().reshape([batch, d]);
            return bernoulli_log_prob(logits, z.reshape([n * rows, d])).reshape([n, rows]);
        }
        self.log_prob_each(z).sum_dim(2).squeeze_dim(2)
    }

    /// Single precision loses all digits of `z ln m - m - ln z!` at large rates, so the value comes
    /// from the host in double precision and the derivatives from rules.
    fn log_prob_counts(&self, z: Tensor<4>) -> Tensor<4> {
        let constant = self.constant();
        let values = z.clone().inner();
        let family = self.family;
        let log_prob = map_host(constant.natural(), values.clone(), |natural, z| {
            count_law(family, natural).ln_pmf(z)
        });
        let by_parameter = custom_grad(
            self.natural(),
            log_prob.clone(),
            Arc::new(ScoreRule {
                family,
                z: values.clone(),
            }),
        );
        if !z.is_tracked() {
            return by_parameter;
        }
        let slope = SlopeRule {
            family,
            natural: constant.natural(),
        };
        by_parameter + custom_grad(z, log_prob.zeros_like(), Arc::new(slope))
    }

    /// The score `d log q(z) / d natural` of each coordinate, `[n, batch, d, k]`, for hard samples.
    pub fn score(&self, z: Tensor<4>) -> Tensor<4> {
        let natural = self.natural().unsqueeze::<4>();
        let (p, q) = (natural.clone(), -natural.clone());
        match self.family {
            Family::Bernoulli => z.clone() * sigmoid(q) - (-z + 1.0) * sigmoid(p),
            Family::Binomial { trials } => {
                z.clone() * sigmoid(q) - (-z + f64::from(trials)) * sigmoid(p)
            }
            Family::Categorical => z - softmax(natural, 3),
            Family::Poisson => z - natural.exp(),
            Family::NegativeBinomial { dispersion } => {
                (z - natural.clone().exp()) * sigmoid(-natural + dispersion.ln())
            }
        }
    }

    /// The law of each coordinate in double precision, in row-major order of `[batch, d]`; `None`
    /// for a categorical variable.
    pub fn count_laws(&self) -> Option<Vec<CountLaw>> {
        let naturals = to_host(self.natural());
        naturals
            .into_iter()
            .map(|natural| self.family.count_law(natural))
            .collect()
    }

    /// The values `lo..=hi` of each coordinate, in row-major order of `[batch, d]`, outside of
    /// which each tail has probability at most `exp(-log_tail)`. A categorical variable has the
    /// values `0..=k - 1`.
    pub fn window(&self, log_tail: f64) -> Vec<(u64, u64)> {
        match self.count_laws() {
            Some(laws) => laws.iter().map(|law| law.window(log_tail)).collect(),
            None => {
                let [batch, d, k] = self.dims();
                vec![(0, k as u64 - 1); batch * d]
            }
        }
    }

    /// Looks for NaN, infinite and out-of-range parameters. It reads every value, so it waits for
    /// a device that computes asynchronously.
    ///
    /// # Errors
    ///
    /// The first bad value, with its index.
    pub fn validate(&self) -> Result<()> {
        if let Some(means) = &self.means {
            // Probabilities of categories need not be normalised.
            let largest = match self.family {
                Family::Categorical => f64::INFINITY,
                family => family.largest_mean(),
            };
            let values = to_host(means.clone());
            let valid = |x: f64| x > 0.0 && x < largest;
            if let Some(index) = values.iter().position(|x| !valid(*x)) {
                return Err(Error::Parameter {
                    family: self.family.kind(),
                    parameter: "mean",
                    index: self.user_index(index),
                    value: values[index],
                    allowed: match self.family {
                        Family::Bernoulli => "between 0 and 1",
                        Family::Binomial { .. } => "between 0 and the number of trials",
                        _ => "positive and finite",
                    },
                });
            }
        }
        match first_non_finite(&self.natural) {
            None => Ok(()),
            Some((index, value)) => Err(Error::Parameter {
                family: self.family.kind(),
                parameter: self.family.natural_name(),
                index: self.user_index(index),
                value,
                allowed: "finite",
            }),
        }
    }

    fn user_shape(family: Family, shape: [usize; 3]) -> Vec<usize> {
        match family {
            Family::Categorical => shape.to_vec(),
            _ => shape[..2].to_vec(),
        }
    }

    fn user_index(&self, flat: usize) -> Vec<usize> {
        let [_, d, k] = self.dims();
        Self::user_shape(self.family, [flat / (d * k), flat / k % d, flat % k])
    }
}

fn count_law(family: Family, natural: f64) -> CountLaw {
    family
        .count_law(natural)
        .expect("a law of an ordered family")
}

/// `d log q(z) / d natural` for counts.
#[derive(Debug)]
struct ScoreRule {
    family: Family,
    z: Tensor<4>,
}

impl Rule for ScoreRule {
    fn backward(&self, natural: Tensor<3>, _log_prob: Tensor<4>, grad: Tensor<4>) -> Tensor<3> {
        let law = Law::unchecked(self.family, natural);
        (law.score(self.z.clone()) * grad).sum_dim(0).squeeze_dim(0)
    }
}

/// `d log q(z) / d z` for relaxed counts.
#[derive(Debug)]
struct SlopeRule {
    family: Family,
    natural: Tensor<3>,
}

impl Rule<4, 4> for SlopeRule {
    fn backward(&self, z: Tensor<4>, _zeros: Tensor<4>, grad: Tensor<4>) -> Tensor<4> {
        let slope = map_host(self.natural.clone(), z, |natural, z| {
            count_law(self.family, natural).ln_pmf_slope(z)
        });
        slope * grad
    }
}
