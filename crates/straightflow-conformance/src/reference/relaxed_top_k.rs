//! The means of `d f(y) / d logit` and `f(y)` over many draws of a plain scalar sampler, because the noise
//! has as many dimensions as there are items. At fixed noise a relaxed sample is a smooth function of
//! the logits, so its derivative is a central difference.

use serde_json::Value;
use straightflow::distribution::Family;

use super::quadrature::temperature;
use super::truncated_gumbel::uniform;
use crate::problem::Problem;

const DRAWS: usize = 200_000;
/// Half of the step of a central difference, whose error is of the order of its square.
const STEP: f64 = 1e-4;

/// The expectation and its standard error.
pub fn expected(config: &Value, problem: &Problem) -> (Vec<f64>, Vec<f64>) {
    over_noise(problem, |noise| {
        let slope = |i: usize| {
            let at = |by: f64| {
                let mut keys = keys(problem, noise);
                keys[i] += by;
                problem.objective.value_at(&relaxed(config, problem, keys))
            };
            (at(STEP) - at(-STEP)) / (2.0 * STEP)
        };
        (0..noise.len()).map(slope).collect()
    })
}

/// The expected cost of a relaxed sample, and its standard error.
pub fn expected_cost(config: &Value, problem: &Problem) -> (f64, f64) {
    let (mean, error) = over_noise(problem, |noise| {
        let y = relaxed(config, problem, keys(problem, noise));
        vec![problem.objective.value_at(&y)]
    });
    (mean[0], error[0])
}

fn keys(problem: &Problem, noise: &[f64]) -> Vec<f64> {
    problem
        .natural
        .iter()
        .zip(noise)
        .map(|(logit, gumbel)| logit + gumbel)
        .collect()
}

/// Successive softmaxes, each of what the ones before left over.
fn relaxed(config: &Value, problem: &Problem, mut keys: Vec<f64>) -> Vec<f64> {
    let Family::Subset { size } = problem.family else {
        unreachable!("a method of subsets");
    };
    let tau = temperature(config);
    let mut taken = vec![0.0; keys.len()];
    for _ in 0..size {
        let largest = keys.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = keys
            .iter()
            .map(|key| ((key - largest) / tau).exp())
            .collect();
        let total: f64 = weights.iter().sum();
        for i in 0..keys.len() {
            taken[i] += weights[i] / total;
            // Summed, because `1 - weight / total` loses its digits.
            let others = weights.iter().enumerate().filter(|(j, _)| *j != i);
            let others: f64 = others.map(|(_, weight)| weight).sum();
            keys[i] += (others / total).ln();
        }
    }
    taken
}

/// Means and standard errors of numbers of Gumbel noise.
fn over_noise(problem: &Problem, numbers: impl Fn(&[f64]) -> Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let mut state = 0x70b_u64;
    let mut sums: Vec<[f64; 2]> = Vec::new();
    for _ in 0..DRAWS {
        let noise: Vec<f64> = problem
            .natural
            .iter()
            .map(|_| -(-uniform(&mut state).ln()).ln())
            .collect();
        let numbers = numbers(&noise);
        sums.resize(numbers.len(), [0.0; 2]);
        for (sum, x) in sums.iter_mut().zip(numbers) {
            sum[0] += x;
            sum[1] += x * x;
        }
    }
    let n = DRAWS as f64;
    let moments = |[sum, square]: [f64; 2]| {
        let mean = sum / n;
        (mean, ((square / n - mean * mean).max(0.0) / n).sqrt())
    };
    sums.into_iter().map(moments).unzip()
}
