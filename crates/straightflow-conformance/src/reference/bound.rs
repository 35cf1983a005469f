//! The multi-sample bound `L = -E log (1/K) sum_i exp(-f(z_i))` and its exact gradient.
//!
//! The value of the bound does not depend on the order of the draws, so multisets are enumerated,
//! each with its multinomial coefficient: `C(m + K - 1, K)` of them instead of `m^K` tuples.

use crate::problem::Problem;

/// The largest number of multisets.
const LIMIT: f64 = 2e6;
/// The largest probability that may be left out of an infinite support.
const OMITTED: f64 = 1e-9;

/// `d L / d natural = E [L(z) - E L] sum_i score(z_i)` for `draws` draws.
///
/// # Errors
///
/// If there are too many outcomes.
pub fn bound_gradient(problem: &Problem, draws: usize) -> Result<Vec<f64>, String> {
    let mut states = problem.states();
    states.sort_by(|a, b| b.1.total_cmp(&a.1));
    states.retain(|(_, p)| *p > 1e-18);
    let mut omitted = 0.0;
    while multisets(states.len(), draws) > LIMIT {
        omitted += states.pop().expect("a state is left").1 * draws as f64;
        if omitted > OMITTED {
            return Err(format!(
                "the bound with {draws} draws has too many outcomes"
            ));
        }
    }
    let table: Vec<State> = states
        .iter()
        .map(|(z, p)| State {
            probability: *p,
            log_weight: -problem.objective.value_at(z),
            score: problem.score(z),
        })
        .collect();
    let k = problem.natural.len();
    let mut sums = Sums {
        bound: 0.0,
        bound_score: vec![0.0; k],
        score: vec![0.0; k],
    };
    let nothing = f64::NEG_INFINITY;
    visit(&table, draws, draws, 1.0, nothing, &vec![0.0; k], &mut sums);
    let mean = sums.bound;
    let pairs = sums.bound_score.iter().zip(&sums.score);
    Ok(pairs.map(|(with, score)| with - mean * score).collect())
}

struct State {
    probability: f64,
    log_weight: f64,
    score: Vec<f64>,
}

struct Sums {
    bound: f64,
    bound_score: Vec<f64>,
    score: Vec<f64>,
}

fn multisets(states: usize, draws: usize) -> f64 {
    let factor = |i: usize| (states + i) as f64 / (i + 1) as f64;
    (0..draws).map(factor).product()
}

/// Walks through the multisets of the remaining draws over the remaining states.
fn visit(
    states: &[State],
    draws: usize,
    left: usize,
    probability: f64,
    log_sum: f64,
    score: &[f64],
    sums: &mut Sums,
) {
    if left == 0 {
        let bound = (draws as f64).ln() - log_sum;
        sums.bound += probability * bound;
        for (i, score) in score.iter().enumerate() {
            sums.bound_score[i] += probability * bound * score;
            sums.score[i] += probability * score;
        }
        return;
    }
    let [state, rest @ ..] = states else {
        return;
    };
    let mut ways = 1.0;
    for times in 0..=left {
        let count = times as f64;
        let score: Vec<f64> = score
            .iter()
            .zip(&state.score)
            .map(|(sum, own)| sum + count * own)
            .collect();
        visit(
            rest,
            draws,
            left - times,
            probability * ways * state.probability.powi(times as i32),
            log_add(log_sum, count.ln() + state.log_weight),
            &score,
            sums,
        );
        ways *= (left - times) as f64 / (count + 1.0);
    }
}

/// `log(exp(a) + exp(b))`, also where both underflow.
fn log_add(a: f64, b: f64) -> f64 {
    let (large, small) = (a.max(b), a.min(b));
    if large == f64::NEG_INFINITY {
        return large;
    }
    large + (small - large).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradients::error;
    use crate::problem::problems;
    use straightflow::distribution::FamilyKind;

    /// With one draw the bound is the expectation; with two, it is the double sum.
    #[test]
    fn small_bounds_are_known() {
        for kind in FamilyKind::ALL {
            for problem in problems(*kind) {
                let one = bound_gradient(&problem, 1).expect("few states");
                assert!(error(&one, &problem.exact_gradient()) < 1e-12, "{problem}");

                let states = problem.states();
                let mut want = vec![0.0; problem.natural.len()];
                for (a, p) in &states {
                    for (b, q) in &states {
                        let f = [a, b].map(|z| problem.objective.value_at(z));
                        let least = f[0].min(f[1]);
                        let sum = (least - f[0]).exp() + (least - f[1]).exp();
                        let bound = least - (0.5 * sum).ln();
                        let scores = problem.score(a).into_iter().zip(problem.score(b));
                        for (want, (s, t)) in want.iter_mut().zip(scores) {
                            *want += p * q * bound * (s + t);
                        }
                    }
                }
                let two = bound_gradient(&problem, 2).expect("few states");
                assert!(error(&two, &want) < 1e-11, "{problem}: {two:?} {want:?}");
            }
        }
    }
}
