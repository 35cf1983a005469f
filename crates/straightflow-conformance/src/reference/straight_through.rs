//! `J^T E f'(z)`, with the Jacobian of the mean by hand.

use serde_json::Value;
use straightflow::distribution::Family;

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

/// `J^T f'(z)`: what one draw contributes.
pub fn term(problem: &Problem, z: &[f64]) -> Vec<f64> {
    let slope = problem.objective.gradient_at(z);
    let x = problem.natural[0];
    let factor = match problem.family {
        Family::Bernoulli => x.exp() / (1.0 + x.exp()).powi(2),
        Family::Binomial { trials } => f64::from(trials) * x.exp() / (1.0 + x.exp()).powi(2),
        Family::Poisson | Family::NegativeBinomial { .. } => x.exp(),
        Family::Categorical => {
            let p = softmax(&problem.natural);
            let along: f64 = p.iter().zip(&slope).map(|(p, s)| p * s).sum();
            return p.iter().zip(&slope).map(|(p, s)| p * (s - along)).collect();
        }
    };
    vec![factor * slope[0]]
}
