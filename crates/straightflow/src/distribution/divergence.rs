//! Entropies and Kullback-Leibler divergences in closed form.

use std::sync::Arc;

use burn::tensor::{
    Tensor,
    activation::{log_sigmoid, log_softmax, sigmoid, softmax},
};

use super::count::{deviance, sigmoid as scalar_sigmoid, softplus};
use super::{Family, Law};
use crate::error::{Error, Result};
use crate::ops::{Rule, custom_grad, map_host};

impl Law {
    /// See [`Distribution::entropy`](super::Distribution::entropy).
    ///
    /// # Errors
    ///
    /// If there is no closed form.
    pub fn entropy(&self) -> Result<Tensor<1>> {
        let natural = self.natural();
        let each = match self.family() {
            Family::Bernoulli => {
                let (one, zero) = (natural.clone(), -natural);
                -(sigmoid(one.clone()) * log_sigmoid(one)
                    + sigmoid(zero.clone()) * log_sigmoid(zero))
            }
            Family::Categorical => -(softmax(natural.clone(), 2) * log_softmax(natural, 2)),
            // -E[z ln p + ln(1 - p)], p = m / (1 + m), whose logit is the log-mean.
            Family::NegativeBinomial { dispersion: 1.0 } => {
                -(natural.clone().exp() * log_sigmoid(natural.clone()) + log_sigmoid(-natural))
            }
            family => {
                return Err(Error::NoClosedForm {
                    quantity: "entropy",
                    family: family.kind(),
                });
            }
        };
        Ok(sum_of_element(each))
    }

    /// See [`Distribution::kl`](super::Distribution::kl).
    ///
    /// # Errors
    ///
    /// If the families, their fixed numbers or the shapes differ.
    pub fn kl(&self, other: &Self) -> Result<Tensor<1>> {
        let ([batch, d, k], [other_batch, other_d, other_k]) = (self.dims(), other.dims());
        let fits = (other_batch == batch || other_batch == 1) && (d, k) == (other_d, other_k);
        if self.family() != other.family() || !fits {
            return Err(Error::Mismatch {
                left: self.describe(),
                right: other.describe(),
            });
        }
        let (p, q) = (self.natural(), other.natural().expand([batch, d, k]));
        let each = match self.family() {
            Family::Bernoulli => {
                let one = sigmoid(p.clone()) * (log_sigmoid(p.clone()) - log_sigmoid(q.clone()));
                let zero = sigmoid(-p.clone()) * (log_sigmoid(-p) - log_sigmoid(-q));
                one + zero
            }
            Family::Categorical => softmax(p.clone(), 2) * (log_softmax(p, 2) - log_softmax(q, 2)),
            family => count_divergence(family, p, q),
        };
        Ok(sum_of_element(each))
    }

    fn describe(&self) -> String {
        format!("{:?} with parameters {:?}", self.family(), self.dims())
    }
}

/// `[batch, d, k]` to `[batch]`.
fn sum_of_element(each: Tensor<3>) -> Tensor<1> {
    each.sum_dim(2).sum_dim(1).squeeze_dims(&[1, 2])
}

/// Single precision cannot hold the difference of two rates of a million, so the values come from
/// the host and the derivatives from rules.
fn count_divergence(family: Family, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
    let rule = |side| {
        Arc::new(DivergenceRule {
            family,
            side,
            p: p.clone().inner(),
            q: q.clone().inner(),
        })
    };
    let value = on_host(&p, &q, |p, q| divergence(family, p, q).value);
    let by_q = custom_grad(q.clone(), value.zeros_like(), rule(Side::Second));
    custom_grad(p.clone(), value, rule(Side::First)) + by_q
}

fn on_host(p: &Tensor<3>, q: &Tensor<3>, f: impl Fn(f64, f64) -> f64 + Sync) -> Tensor<3> {
    map_host(p.clone(), q.clone().unsqueeze::<4>(), f).squeeze_dim(0)
}

/// A divergence and its derivatives by the two natural parameters.
struct Divergence {
    value: f64,
    first: f64,
    second: f64,
}

fn divergence(family: Family, p: f64, q: f64) -> Divergence {
    match family {
        Family::Poisson => {
            let (a, b) = (p.exp(), q.exp());
            Divergence {
                value: if a == 0.0 { b } else { deviance(a, b) },
                first: a * (p - q),
                second: b - a,
            }
        }
        Family::Binomial { trials } => {
            let n = f64::from(trials);
            let one = bernoulli(p, q);
            Divergence {
                value: n * one.value,
                first: n * one.first,
                second: n * one.second,
            }
        }
        // m ln(p/q) + r ln((1 - p)/(1 - q)) is (m + r) times the divergence of two Bernoulli
        // variables with logits ln(m / r).
        Family::NegativeBinomial { dispersion } => {
            let mean = p.exp();
            let one = bernoulli(p - dispersion.ln(), q - dispersion.ln());
            let total = mean + dispersion;
            Divergence {
                value: total * one.value,
                first: mean * one.value + total * one.first,
                second: total * one.second,
            }
        }
        Family::Bernoulli | Family::Categorical => bernoulli(p, q),
    }
}

fn bernoulli(p: f64, q: f64) -> Divergence {
    let side = |sign: f64| {
        let (a, b) = (scalar_sigmoid(sign * p), scalar_sigmoid(sign * q));
        if b < f64::MIN_POSITIVE {
            // The deviance would divide by zero; the logarithms are still finite.
            a * (softplus(-sign * q) - softplus(-sign * p)) + b - a
        } else if a == 0.0 {
            b
        } else {
            deviance(a, b)
        }
    };
    Divergence {
        value: side(1.0) + side(-1.0),
        first: scalar_sigmoid(p) * scalar_sigmoid(-p) * (p - q),
        second: scalar_sigmoid(q) - scalar_sigmoid(p),
    }
}

#[derive(Clone, Copy, Debug)]
enum Side {
    First,
    Second,
}

#[derive(Debug)]
struct DivergenceRule {
    family: Family,
    side: Side,
    p: Tensor<3>,
    q: Tensor<3>,
}

impl Rule<3, 3> for DivergenceRule {
    fn backward(&self, _parent: Tensor<3>, _value: Tensor<3>, grad: Tensor<3>) -> Tensor<3> {
        let slope = on_host(&self.p, &self.q, |p, q| {
            let divergence = divergence(self.family, p, q);
            match self.side {
                Side::First => divergence.first,
                Side::Second => divergence.second,
            }
        });
        slope * grad
    }
}
