//! Kullback-Leibler divergences of counts.

use burn::tensor::Tensor;

use super::count::{sigmoid, softplus};
use super::formulas::Formulas;
use super::loader::deviance;
use crate::gradient::with_gradient;
use crate::ops::map_host;

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
    let value = on_host(&p, &q, |p, q| formulas.divergence_of(p, q).value);
    with_slopes(p, q, value, move |p, q, side| {
        on_host(p, q, |p, q| {
            let divergence = formulas.divergence_of(p, q);
            match side {
                Side::First => divergence.first,
                Side::Second => divergence.second,
            }
        })
    })
}

/// One of the two laws of a divergence.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    First,
    Second,
}

/// A divergence of `p` and `q` on both tapes, with its slope with respect to each.
pub(super) fn with_slopes(
    p: Tensor<3>,
    q: Tensor<3>,
    value: Tensor<3>,
    slope: impl Fn(&Tensor<3>, &Tensor<3>, Side) -> Tensor<3> + Clone + Send + Sync + 'static,
) -> Tensor<3> {
    let (p_value, q_value) = (p.clone().inner(), q.clone().inner());
    let by = |side| {
        let (p, q, slope) = (p_value.clone(), q_value.clone(), slope.clone());
        move |_, _, grad: Tensor<3>| slope(&p, &q, side) * grad
    };
    let by_q = with_gradient(q, value.zeros_like(), by(Side::Second));
    with_gradient(p, value, by(Side::First)) + by_q
}

fn on_host(p: &Tensor<3>, q: &Tensor<3>, f: impl Fn(f64, f64) -> f64 + Sync) -> Tensor<3> {
    map_host(p.clone(), q.clone().unsqueeze::<4>(), f).squeeze_dim(0)
}
