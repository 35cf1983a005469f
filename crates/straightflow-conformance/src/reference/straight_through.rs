//! `J^T E f'(z)`, with the Jacobian of the mean by hand.

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

/// `J^T f'(z)`: what one draw contributes.
pub fn term(problem: &Problem, z: &[f64]) -> Vec<f64> {
    let slope = problem.objective.gradient_at(z);
    match Textbook::new(problem.family, problem.natural[0]) {
        Some(law) => vec![law.jacobian() * slope[0]],
        // The mean of a rounded number is the number.
        None if problem.lattice().is_some() => slope,
        None if !problem.family.is_one_hot() => problem.covariance_times(&slope),
        None => {
            let p = softmax(&problem.natural);
            let along: f64 = p.iter().zip(&slope).map(|(p, s)| p * s).sum();
            p.iter().zip(&slope).map(|(p, s)| p * (s - along)).collect()
        }
    }
}
