//! Kullback-Leibler divergences of counts.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::count::{sigmoid, softplus};
use super::formulas::Formulas;
use super::loader::deviance;
use crate::ops::{Rule, custom_grad, map_host};

/// A divergence and its derivatives with respect to the two natural parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Divergence {
    pub value: f64,
    pub first: f64,
    pub second: f64,
}

/// The divergence of two Bernoulli variables with logits `p` and `q`.
#[inline]
pub(super) fn divergence_of_logits(p: f64, q: f64) -> Divergence {
    let side = |sign: f64| {
        let (a, b) = (sigmoid(sign * p), sigmoid(sign * q));
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
        first: sigmoid(p) * sigmoid(-p) * (p - q),
        second: sigmoid(q) - sigmoid(p),
    }
}

/// Single precision cannot hold the difference of two rates of a million, so the values come from
/// the host and the derivatives from rules.
pub(super) fn divergence_of_counts<F: Formulas>(
    formulas: F,
    p: Tensor<3>,
    q: Tensor<3>,
) -> Tensor<3> {
    let rule = |side| {
        Arc::new(DivergenceRule {
            formulas,
            side,
            p: p.clone().inner(),
            q: q.clone().inner(),
        })
    };
    let value = on_host(&p, &q, |p, q| formulas.divergence_of(p, q).value);
    let by_q = custom_grad(q.clone(), value.zeros_like(), rule(Side::Second));
    custom_grad(p.clone(), value, rule(Side::First)) + by_q
}

fn on_host(p: &Tensor<3>, q: &Tensor<3>, f: impl Fn(f64, f64) -> f64 + Sync) -> Tensor<3> {
    map_host(p.clone(), q.clone().unsqueeze::<4>(), f).squeeze_dim(0)
}

#[derive(Clone, Copy, Debug)]
enum Side {
    First,
    Second,
}

#[derive(Debug)]
struct DivergenceRule<F> {
    formulas: F,
    side: Side,
    p: Tensor<3>,
    q: Tensor<3>,
}

impl<F: Formulas> Rule<3, 3> for DivergenceRule<F> {
    fn backward(&self, _parent: Tensor<3>, _value: Tensor<3>, grad: Tensor<3>) -> Tensor<3> {
        let slope = on_host(&self.p, &self.q, |p, q| {
            let divergence = self.formulas.divergence_of(p, q);
            match self.side {
                Side::First => divergence.first,
                Side::Second => divergence.second,
            }
        });
        slope * grad
    }
}
