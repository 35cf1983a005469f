//! What the relaxations share: perturbed parameters, and the Jacobian of a sigmoid or softmax.
//!
//! All of it works on constants. The derivative with respect to the natural parameters is a rule,
//! so that it is computed from the perturbed logits themselves: `y (1 - y)` would be zero above a
//! logit of 17 in single precision, `sigmoid(x) sigmoid(-x)` is not.

use burn::tensor::{Int, Tensor, activation::softmax};

use rayon::prelude::*;

use crate::distribution::{Family, Law};
use crate::estimate::noise::{Noise, NoiseSpec};
use crate::gradient::with_gradient;
use crate::ops::fused::{sigmoid, sigmoid_pullback};
use crate::ops::{from_host, to_host};

/// The random numbers in each noise tensor of [`blocks`].
const BLOCK: usize = 16;
/// The most random numbers that a relaxation of counts takes for each variable.
pub(crate) const NOISE_LIMIT: usize = 4096;

/// The natural parameters plus noise, divided by the temperature, `[n, batch, d, k]`: their sigmoid
/// or softmax is the relaxed sample. `u` are uniform numbers on the open interval, so that every
/// logarithm is finite.
///
/// * Bernoulli: `(φ + log(u/(1-u))) / τ`.
/// * Categorical: `(φ_i - log(-log u_i)) / τ`, minus the largest of them *before* the division, so
///   that a low temperature cannot make infinity minus infinity.
pub(crate) fn perturbed(law: &Law, u: Tensor<4>, temperature: f64) -> Tensor<4> {
    let natural = law.natural().inner().unsqueeze::<4>();
    match law.family().is_one_hot() {
        true => shifted(natural - log_exponential(u)) / temperature,
        false => (natural + u.clone().log() - (-u + 1.0).log()) / temperature,
    }
}

/// The logarithm of an exponential variable of rate 1, from a uniform number; its negative is a
/// Gumbel variable.
pub(crate) fn log_exponential(u: Tensor<4>) -> Tensor<4> {
    (-u.log()).log()
}

/// Logits minus the largest of them.
pub(crate) fn shifted(logits: Tensor<4>) -> Tensor<4> {
    let largest = logits.clone().max_dim(3);
    logits - largest
}

/// The relaxed sample of perturbed logits.
pub(crate) fn relax(family: Family, logits: Tensor<4>) -> Tensor<4> {
    match family.is_one_hot() {
        true => softmax(logits, 3),
        false => sigmoid(logits),
    }
}

/// The hard sample of perturbed logits: the side of zero, or the largest.
pub(crate) fn harden(family: Family, logits: Tensor<4>) -> Tensor<4> {
    let (dtype, shape) = (logits.dtype(), logits.dims());
    let hard = match family.is_one_hot() {
        true => {
            let k = shape[3] as i64;
            let categories = Tensor::<1, Int>::arange(0..k, &logits.device());
            let chosen = logits.argmax(3).expand(shape);
            let categories = categories.reshape([1, 1, 1, shape[3]]).expand(shape);
            categories.equal(chosen)
        }
        false => logits.greater_elem(0.0),
    };
    hard.float().cast(dtype)
}

/// The transposed Jacobian of [`relax`] times a gradient.
pub(crate) fn jacobian(family: Family, logits: Tensor<4>, grad: Tensor<4>) -> Tensor<4> {
    match family.is_one_hot() {
        true => {
            let y = softmax(logits, 3);
            let along = (y.clone() * grad.clone()).sum_dim(3);
            y * (grad - along)
        }
        false => sigmoid_pullback(logits, grad),
    }
}

/// Samples on the tape of the law with `d natural = sum_n J(x_n)^T dz_n / tau` at perturbed logits
/// `x = (natural + noise) / tau`: what the relaxed sample's derivative is, whatever the value is.
pub(crate) fn with_relaxed_gradient(
    law: &Law,
    value: Tensor<4>,
    logits: Tensor<4>,
    temperature: f64,
) -> Tensor<4> {
    let family = law.family();
    with_gradient(law.natural(), value, move |_, _, dz| {
        let each = jacobian(family, logits.clone(), dz) / temperature;
        each.sum_dim(0).squeeze_dim(0)
    })
}

/// `ln(1 + exp(x))`; the one of burn overflows.
pub(crate) fn softplus(x: Tensor<4>) -> Tensor<4> {
    x.clone().clamp_min(0.0) + (-x.abs()).exp().log1p()
}

/// At least `numbers` uniform numbers for each variable, as tensors `[n, batch, d, BLOCK]`.
///
/// Each tensor has a key of its own, so the number `k` of a variable does not depend on how many
/// there are: a batch element with a large rate does not change what its neighbours see.
pub(crate) fn blocks(name: &'static str, law: &Law, n: usize, numbers: usize) -> Vec<NoiseSpec> {
    let [batch, d, _] = law.dims();
    let block = NoiseSpec::uniform(name, [n, batch, d, BLOCK]);
    vec![block; numbers.div_ceil(BLOCK)]
}

/// A relaxed count and its derivative with respect to the natural parameter.
pub(crate) struct Counted {
    pub value: f64,
    pub weight: f64,
}

/// Relaxed counts `[n, batch, d, 1]` of the noise of [`blocks`], on the tape of the law.
/// `count` is called for each draw of each variable (its number in `[batch, d]`), with all of its
/// random numbers, on the host and in double precision.
pub(crate) fn count_each(
    noise: &Noise,
    law: &Law,
    count: impl Fn(usize, &mut dyn Iterator<Item = f64>) -> Counted + Sync,
) -> Tensor<4> {
    let n = noise.get(0).dims()[0];
    let variables = law.dims()[0] * law.dims()[1];
    let blocks: Vec<Vec<f64>> = (0..noise.len()).map(|i| to_host(noise.get(i))).collect();
    let counts: Vec<Counted> = (0..n * variables)
        .into_par_iter()
        .map(|element| {
            let own = element * BLOCK..(element + 1) * BLOCK;
            let mut numbers = blocks.iter().flat_map(|block| &block[own.clone()]).copied();
            count(element % variables, &mut numbers)
        })
        .collect();
    let tensor = |part: fn(&Counted) -> f64| {
        let values = counts.iter().map(part).collect();
        from_host(values, law.sample_dims(n), &law.natural())
    };
    let (value, weight) = (
        tensor(|counted| counted.value),
        tensor(|counted| counted.weight),
    );
    with_gradient(law.natural(), value, move |_, _, dz| {
        (dz * weight.clone()).sum_dim(0).squeeze_dim(0)
    })
}
