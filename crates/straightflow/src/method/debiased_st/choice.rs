//! Which moves are evaluated, and how probable that was.

/// The part of the learned choice that does not follow what was learned, so that `weight /
/// probability` is at most ten times the sum of the weights.
const SAFE: f64 = 0.1;

/// What the probability of a move is proportional to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Preference<'a> {
    /// Its weight.
    Weight,
    /// Nothing: all moves with a positive weight are equal.
    Equal,
    /// Its weight times a positive number.
    WeightTimes(&'a [f64]),
}

/// A chosen move of a draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    /// Its number among the moves of the draw.
    pub index: usize,
    /// Its weight over the probability that it is chosen.
    pub factor: f64,
}

/// Chooses `count` different moves of a draw by systematic sampling, with one uniform number. There
/// are fewer if fewer have a positive weight, and then it is all of those.
///
/// The probability of a move is `min(1, scale * q)`, where `q` sums to 1 and the scale is such that
/// the probabilities sum to `count`. The factor is `max(weight, (weight / q) / scale)`, and `weight
/// / q` has a closed form without small denominators.
pub(super) fn choose(
    weights: &[f64],
    preference: Preference,
    uniform: f64,
    count: usize,
) -> Vec<Pick> {
    let picks = weights.iter().enumerate().filter(|(_, w)| **w > 0.0);
    if count >= weights.len() {
        // Nothing is left to chance.
        return picks.map(|(index, w)| Pick { index, factor: *w }).collect();
    }
    let odds = Odds::new(weights, preference);
    let (scale, certain) = match count {
        1 => (1.0, f64::INFINITY),
        _ => scale_to(picks.clone().map(|(i, w)| w / odds.ratio(i, *w)), count),
    };
    let mut chosen = Vec::with_capacity(count);
    let mut end = 0.0;
    for (index, weight) in picks {
        let ratio = odds.ratio(index, *weight);
        let q = weight / ratio;
        let (probability, factor) = match q >= certain {
            true => (1.0, *weight),
            false => (scale * q, ratio / scale),
        };
        end += probability;
        if uniform + (chosen.len() as f64) < end {
            chosen.push(Pick { index, factor });
        }
        if chosen.len() == count {
            break;
        }
    }
    chosen
}

/// The sums that the probabilities of one draw depend on.
struct Odds<'a> {
    preference: Preference<'a>,
    total: f64,
    /// The number of positive weights, or the sum of the weights times what they prefer.
    norm: f64,
}

impl<'a> Odds<'a> {
    fn new(weights: &[f64], preference: Preference<'a>) -> Self {
        let norm = match preference {
            Preference::Weight => 1.0,
            Preference::Equal => weights.iter().filter(|w| **w > 0.0).count() as f64,
            Preference::WeightTimes(learned) => {
                weights.iter().zip(learned).map(|(w, l)| w * l).sum()
            }
        };
        Self {
            preference,
            total: weights.iter().sum(),
            norm,
        }
    }

    /// `weight / q` of a move.
    fn ratio(&self, index: usize, weight: f64) -> f64 {
        match self.preference {
            Preference::Weight => self.total,
            Preference::Equal => weight * self.norm,
            Preference::WeightTimes(learned) => {
                ((1.0 - SAFE) * learned[index] / self.norm + SAFE / self.total).recip()
            }
        }
    }
}

/// The scale by which probabilities sum to `count`, and the least that is capped at 1.
fn scale_to(q: impl Iterator<Item = f64>, count: usize) -> (f64, f64) {
    let mut q: Vec<f64> = q.collect();
    q.sort_by(|a, b| b.total_cmp(a));
    let mut rest: f64 = q.iter().sum();
    let mut certain = f64::INFINITY;
    for (capped, q) in q.iter().enumerate().take(count) {
        let scale = (count - capped) as f64 / rest;
        if scale * q < 1.0 {
            return (scale, certain);
        }
        certain = *q;
        rest -= q;
    }
    // What is left of the others is lost to rounding.
    (f64::MIN_POSITIVE, certain)
}
