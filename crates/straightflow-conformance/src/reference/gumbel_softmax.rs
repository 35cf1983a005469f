//! `E J(y) f'(y) / tau` and `E f(y)` over the noise of the relaxed sample `y`.

use serde_json::Value;
use straightflow::distribution::Family;

use super::quadrature::{gumbel_differences, softmax_jacobian, temperature};
use crate::problem::{Problem, softmax};

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let tau = temperature(config);
    let bit = problem.family == Family::Bernoulli;
    over_noise(config, problem, |y| {
        let slope = problem.objective.gradient_at(y);
        let gradient = match bit {
            true => vec![slope[0] * y[0] * (1.0 - y[0])],
            false => softmax_jacobian(y, &slope),
        };
        gradient.iter().map(|g| g / tau).collect()
    })
}

/// The expected cost of the relaxed sample.
pub fn expected_cost(config: &Value, problem: &Problem) -> f64 {
    over_noise(config, problem, |y| vec![problem.objective.value_at(y)])[0]
}

fn over_noise(
    config: &Value,
    problem: &Problem,
    of_sample: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<f64> {
    let tau = temperature(config);
    if problem.family == Family::Bernoulli {
        // The difference of two Gumbel variables is logistic.
        let phi = problem.natural[0];
        return gumbel_differences(2, |noise| {
            of_sample(&[1.0 / (1.0 + (-(phi + noise[0]) / tau).exp())])
        });
    }
    gumbel_differences(problem.natural.len(), |noise| {
        // A softmax sees differences only: the noise of the last category may be taken for zero.
        let perturbed = problem.natural.iter().zip(noise.iter().chain(&[0.0]));
        let logits: Vec<f64> = perturbed.map(|(t, g)| (t + g) / tau).collect();
        of_sample(&softmax(&logits))
    })
}
