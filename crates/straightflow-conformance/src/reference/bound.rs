//! The multi-sample bound `L = -E log (1/K) sum_i exp(-f(z_i))` and its exact gradient.
//!
//! The value of the bound does not depend on the order of the draws, so multisets are enumerated,
//! each with its multinomial coefficient: `C(m + K - 1, K)` of them instead of `m^K` tuples.

/// One value of a draw, of one variable or of several.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its probability.
    pub probability: f64,
    /// `f(z)`.
    pub cost: f64,
    /// `d log q(z) / d natural`, for all parameters.
    pub score: Vec<f64>,
}

/// The largest number of multisets.
const LIMIT: f64 = 2e6;
/// The largest probability that may be left out of an infinite support.
const OMITTED: f64 = 1e-9;

/// `d L / d natural = E [L(z) - E L] sum_i score(z_i)` for `draws` draws.
///
/// # Errors
///
/// If there are too many outcomes.
pub fn bound_gradient(mut states: Vec<Outcome>, draws: usize) -> Result<Vec<f64>, String> {
    states.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    states.retain(|state| state.probability > 1e-18);
    let mut omitted = 0.0;
    while multisets(states.len(), draws) > LIMIT {
        omitted += states.pop().expect("a state is left").probability * draws as f64;
        if omitted > OMITTED {
            return Err(format!(
                "the bound with {draws} draws has too many outcomes"
            ));
        }
    }
    let k = states.first().map_or(0, |state| state.score.len());
    let mut sums = Sums {
        bound: 0.0,
        bound_score: vec![0.0; k],
        score: vec![0.0; k],
    };
    let nothing = f64::NEG_INFINITY;
    visit(
        &states,
        draws,
        draws,
        1.0,
        nothing,
        &vec![0.0; k],
        &mut sums,
    );
    let mean = sums.bound;
    let pairs = sums.bound_score.iter().zip(&sums.score);
    Ok(pairs.map(|(with, score)| with - mean * score).collect())
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
    states: &[Outcome],
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
            log_add(log_sum, count.ln() - state.cost),
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
    use crate::product::Product;
    use straightflow::distribution::FamilyKind;

    /// With one draw the bound is the expectation; with two, it is the double sum.
    #[test]
    fn small_bounds_are_known() {
        for kind in FamilyKind::ALL {
            for problem in problems(*kind) {
                let one = bound_gradient(problem.outcomes(), 1).expect("few states");
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
                let two = bound_gradient(problem.outcomes(), 2).expect("few states");
                assert!(error(&two, &want) < 1e-11, "{problem}: {two:?} {want:?}");
            }
        }
    }

    /// The same for a product of three variables, by the probabilities of joint states.
    #[test]
    fn one_draw_of_three_variables_is_the_product_rule() {
        for kind in FamilyKind::ALL {
            let product = Product::with_few_states(*kind);
            let one = bound_gradient(product.outcomes(), 1).expect("few states");
            let gap = error(&one, &product.exact_gradient());
            assert!(gap < 1e-8, "{product}: {one:?}");
        }
    }
}
