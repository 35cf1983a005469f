//! `E J(y) f'(y) / tau` over the noise of the relaxed sample.

use serde_json::Value;
use straightflow::distribution::Family;

use super::quadrature::{gumbel_differences, softmax_jacobian, temperature};
use crate::problem::{Problem, softmax};

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let tau = temperature(config);
    if problem.family == Family::Bernoulli {
        // The difference of two Gumbel variables is logistic.
        let phi = problem.natural[0];
        return gumbel_differences(2, |noise| {
            let y = 1.0 / (1.0 + (-(phi + noise[0]) / tau).exp());
            let slope = problem.objective.gradient_at(&[y])[0];
            vec![slope * y * (1.0 - y) / tau]
        });
    }
    let last = problem.natural.len() - 1;
    gumbel_differences(last + 1, |noise| {
        // A softmax sees differences only: the noise of the last category may be taken for zero.
        let perturbed = problem.natural.iter().zip(noise.iter().chain(&[0.0]));
        let y = softmax(&perturbed.map(|(t, g)| (t + g) / tau).collect::<Vec<_>>());
        let gradient = softmax_jacobian(&y, &problem.objective.gradient_at(&y));
        gradient.iter().map(|g| g / tau).collect()
    })
}
