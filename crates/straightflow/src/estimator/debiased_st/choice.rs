//! Which moves are evaluated, and how probable that was.

use burn::tensor::Tensor;

/// The least denominator: what it divides is zero then.
const TINY: f64 = 1e-30;
/// The part of the learned choice that does not follow what was learned, so that `weight /
/// probability` is at most ten times the sum of the weights.
const SAFE: f64 = 0.1;

/// What the probability of a move is proportional to.
pub(super) enum Preference {
    /// Its weight.
    Weight,
    /// Nothing: all moves with a positive weight are equal.
    Equal,
    /// Its weight times a number `[n, batch, d, k]`.
    WeightTimes(Box<Tensor<4>>),
}

/// Chosen moves: repetition `m` of the draws has the `m`-th move of each.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// 1 at the chosen move, `[m n, batch, d, k]`. A draw whose weights are all zero has none.
    pub marks: Tensor<4>,
    /// The weight of the chosen move over the probability that it is chosen, zero elsewhere.
    pub factor: Tensor<4>,
}

/// Chooses `count` different moves of each draw by systematic sampling, from weights `[n, batch, d,
/// k]` and one uniform number for each draw, `[n, batch, 1, 1]`.
///
/// The probability of a move is `min(1, scale * q)`, where `q` sums to 1 and the scale is such that
/// the probabilities sum to `count`. No division has a small denominator, because the factor is
/// computed as `max(weight, (weight / q) / scale)`, and `weight / q` has a closed form.
pub(super) fn choose(
    weight: Tensor<4>,
    preference: Preference,
    uniform: Tensor<4>,
    count: usize,
) -> Choice {
    let [n, batch, d, k] = weight.dims();
    let moves = d * k;
    if count >= moves {
        return all(weight);
    }
    let flat = |x: Tensor<4>| x.reshape([n, batch, moves]);
    let weight = flat(weight);
    let total = weight.clone().sum_dim(2);
    // q and weight / q.
    let (q, ratio) = match preference {
        Preference::Weight => {
            let q = weight.clone() / total.clone().clamp_min(TINY);
            (q, total.expand(weight.dims()))
        }
        Preference::Equal => {
            let positive = weight
                .clone()
                .greater_elem(0.0)
                .float()
                .cast(weight.dtype());
            let number = positive.clone().sum_dim(2);
            let q = positive / number.clone().clamp_min(1.0);
            (q, weight.clone() * number)
        }
        Preference::WeightTimes(learned) => {
            let learned = flat(*learned);
            let sum = (weight.clone() * learned.clone()).sum_dim(2);
            let density = learned * (sum.clamp_min(TINY).recip() * (1.0 - SAFE))
                + total.clamp_min(TINY).recip() * SAFE;
            (weight.clone() * density.clone(), density.recip())
        }
    };
    let (probability, factor) = match count {
        1 => (q, ratio),
        _ => capped(q, ratio, weight, count),
    };
    let end = probability.cumsum(2);
    let zero = end.clone().narrow(2, 0, 1).zeros_like();
    let start = Tensor::cat(vec![zero, end.clone().narrow(2, 0, moves - 1)], 2);
    let uniform = uniform.reshape([n, batch, 1]);
    let marks: Vec<Tensor<4>> = (0..count)
        .map(|m| {
            let point = (uniform.clone() + m as f64).expand([n, batch, moves]);
            let before = start.clone().lower_equal(point.clone());
            let mark = before.bool_and(point.lower(end.clone()));
            mark.float().cast(end.dtype()).reshape([n, batch, d, k])
        })
        .collect();
    let marks = Tensor::cat(marks, 0);
    let factor = factor.reshape([n, batch, d, k]).repeat_dim(0, count);
    // Elsewhere it may be anything.
    let factor = factor.mask_fill(marks.clone().lower_elem(0.5), 0.0);
    Choice { marks, factor }
}

/// All moves, one after the other: nothing is left to chance.
fn all(weight: Tensor<4>) -> Choice {
    let [n, batch, d, k] = weight.dims();
    let moves = d * k;
    let each = Tensor::<2>::eye(moves, &weight.device()).cast(weight.dtype());
    let each = each.reshape([moves, 1, 1, d, k]);
    let marks = each.expand([moves, n, batch, d, k]);
    let marks = marks.reshape([moves * n, batch, d, k]);
    let factor = weight.repeat_dim(0, moves) * marks.clone();
    let exists = factor.clone().greater_elem(0.0).float().cast(marks.dtype());
    Choice {
        marks: exists,
        factor,
    }
}

/// Probabilities that sum to `count` and are at most 1, and the factors that go with them.
fn capped(
    q: Tensor<3>,
    ratio: Tensor<3>,
    weight: Tensor<3>,
    count: usize,
) -> (Tensor<3>, Tensor<3>) {
    let mut scale = q.clone().sum_dim(2).ones_like() * count as f64;
    let mut certain = (q.clone() * scale.clone()).greater_equal_elem(1.0);
    // Each round caps at least one more, and at most `count` can be.
    for _ in 0..count {
        let number = certain.clone().float().cast(q.dtype()).sum_dim(2);
        let rest = q.clone().mask_fill(certain.clone(), 0.0).sum_dim(2);
        scale = (-number + count as f64).clamp_min(0.0) / rest.clamp_min(TINY);
        let now = (q.clone() * scale.clone()).greater_equal_elem(1.0);
        certain = certain.bool_or(now);
    }
    let probability = (q * scale.clone()).mask_fill(certain.clone(), 1.0);
    let factor = (ratio / scale.clamp_min(TINY)).mask_where(certain, weight);
    (probability, factor)
}
