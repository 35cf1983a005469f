//! What the estimators of binary variables with dependent draws share.

use burn::tensor::{Bool, Tensor};

use crate::distribution::Law;
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Noise, Outcome};
use crate::ops::fused::sigmoid;
use crate::ops::gradient_only;

/// The probability `q = sigmoid(-|logit|)` of the less likely value, `[1, batch, d, 1]`. Unlike
/// `1 - p` it has all its digits.
pub(crate) fn rare_probability(law: &Law) -> Tensor<4> {
    sigmoid(-law.natural().inner().abs()).unsqueeze()
}

/// Bits `[n, batch, d, 1]` from whether the less likely value occurs.
pub(crate) fn bits(rare: Tensor<4, Bool>, law: &Law) -> Tensor<4> {
    rare.clone()
        .bool_xor(likely_one(law, rare.dims()))
        .float()
        .cast(law.natural().dtype())
}

fn likely_one(law: &Law, shape: [usize; 4]) -> Tensor<4, Bool> {
    let logits = law.natural().inner().unsqueeze::<4>();
    logits.greater_equal_elem(0.0).expand(shape)
}

/// A scalar whose gradient with respect to the natural parameters is the mean of `gradient` `[n,
/// batch, d, 1]` over draws, and over the batch as every surrogate.
pub(crate) fn along(law: &Law, gradient: Tensor<4>) -> Tensor<1> {
    let [n, batch, ..] = gradient.dims();
    // Divided before it meets the tape, where a division by a number is rounded to single
    // precision.
    let mean = gradient.sum_dim(0).squeeze_dim::<3>(0) / (n * batch) as f64;
    (law.natural() * mean).sum()
}

/// The bits `b1 = 1[u > sigmoid(-logit)]` and `b2 = 1[u < sigmoid(logit)]` of uniform numbers `u`
/// and `1 - u`, each a sample of the law.
#[derive(Clone)]
pub(crate) struct Pair {
    pub first: Tensor<4>,
    pub second: Tensor<4>,
}

impl Pair {
    pub fn new(u: Tensor<4>, law: &Law) -> Self {
        // b1 takes the less likely value 0 where u < q for positive logits, and the less likely
        // value 1 where 1 - u < q for negative ones; b2 has u and 1 - u exchanged.
        let positive = likely_one(law, u.dims());
        let v = (-u.clone() + 1.0).mask_where(positive, u);
        let q = rare_probability(law).expand(v.dims());
        Self {
            first: bits(v.clone().lower(q.clone()), law),
            second: bits((-v + 1.0).lower(q), law),
        }
    }
}

/// The outcome of `n` antithetic pairs, evaluated in one call of the cost: the gradient of a pair
/// is `f(b1) - f(b2)` times a weight for each coordinate. The first `trained` draws, of all `b1`
/// and then all `b2`, are those that the cost's own parameters are trained on.
pub(crate) fn pair_outcome(
    noise: &Noise,
    law: &Law,
    objective: &CountedObjective,
    trained: usize,
    weight: impl FnOnce(Pair) -> Tensor<4>,
) -> Result<Outcome> {
    let u = noise.get(0);
    let n = u.dims()[0];
    let pair = Pair::new(u, law);
    let z = Tensor::cat(vec![pair.first.clone(), pair.second.clone()], 0);
    let cost = objective.evaluate(z.clone(), law)?;
    let values = cost.clone().inner();
    let difference = values.clone().narrow(0, 0, n) - values.narrow(0, n, n);
    let gradient = difference.unsqueeze_dims::<4>(&[2, 3]) * weight(pair);
    let gradient = along(law, gradient);
    if trained == 2 * n {
        return Ok(Outcome::new(cost, gradient, z));
    }
    let trained = cost.clone().narrow(0, 0, trained).mean();
    let surrogate = cost.clone().inner().mean() + gradient_only(trained + gradient);
    Ok(Outcome::with_surrogate(cost, surrogate, vec![z]))
}
