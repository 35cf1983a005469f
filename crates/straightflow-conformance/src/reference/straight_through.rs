//! `J^T E f'(z)`, with the Jacobian of the mean by hand.

use serde_json::Value;
use straightflow::distribution::Family;

use crate::problem::{Problem, softmax};

pub fn expected(_config: &Value, problem: &Problem) -> Vec<f64> {
    let k = problem.natural.len();
    let mut mean_slope = vec![0.0; k];
    for (z, p) in problem.states() {
        for (sum, slope) in mean_slope.iter_mut().zip(problem.objective.gradient_at(&z)) {
            *sum += p * slope;
        }
    }
    let x = problem.natural[0];
    let factor = match problem.family {
        Family::Bernoulli => x.exp() / (1.0 + x.exp()).powi(2),
        Family::Binomial { trials } => f64::from(trials) * x.exp() / (1.0 + x.exp()).powi(2),
        Family::Poisson | Family::NegativeBinomial { .. } => x.exp(),
        Family::Categorical => {
            let p = softmax(&problem.natural);
            let along: f64 = p.iter().zip(&mean_slope).map(|(p, s)| p * s).sum();
            return p
                .iter()
                .zip(&mean_slope)
                .map(|(p, s)| p * (s - along))
                .collect();
        }
    };
    vec![factor * mean_slope[0]]
}
