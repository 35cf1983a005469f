//! The trapezoid weights times the slope of the cost, summed over the states. A leave-one-out
//! baseline multiplies a factor of mean zero, so it does not change the expectation.

use serde_json::Value;

use super::textbook::Textbook;
use crate::problem::{Problem, softmax};

pub fn expected(_config: &Value, problem: &Problem) -> Vec<f64> {
    let mut sum = vec![0.0; problem.natural.len()];
    for (z, p) in problem.states() {
        for (sum, term) in sum.iter_mut().zip(term(problem, &z)) {
            *sum += p * term;
        }
    }
    sum
}

/// `v(z) f'(z)` by the natural parameter. In the mean parametrisation the weight is
/// `(w(z) + w(z - 1)) / (2 q(z))`, the trapezoid rule on the two steps next to `z`.
pub fn term(problem: &Problem, z: &[f64]) -> Vec<f64> {
    let slope = problem.objective.gradient_at(z);
    match Textbook::new(problem.family, problem.natural[0]) {
        Some(law) => vec![law.trapezoid(z[0]) * slope[0]],
        // Half of the covariance matrix, half of what it is the mean of.
        None if !problem.family.is_one_hot() => {
            let score = problem.score(z);
            let along: f64 = score.iter().zip(&slope).map(|(score, s)| score * s).sum();
            let mean = problem.covariance_times(&slope).into_iter();
            mean.zip(score)
                .map(|(mean, score)| 0.5 * (score * along + mean))
                .collect()
        }
        None => {
            // Half of the step from the mean to the drawn corner, half of those from it to the
            // other corners.
            let p = softmax(&problem.natural);
            let drawn = z.iter().position(|x| *x == 1.0).expect("a one-hot vector");
            let mean: f64 = p.iter().zip(&slope).map(|(p, s)| p * s).sum();
            let term = |i: usize| {
                let chosen = if i == drawn { slope[i] - mean } else { 0.0 };
                0.5 * (chosen + p[i] * (slope[i] - slope[drawn]))
            };
            (0..z.len()).map(term).collect()
        }
    }
}
