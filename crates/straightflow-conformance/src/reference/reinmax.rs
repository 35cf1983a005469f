//! `sum_z p(z) [2 J(pi_z) - J(p) / 2] f'(z)` with `pi_z = (softmax(theta / tau) + z) / 2`, as
//! published.

use serde_json::Value;
use straightflow::distribution::Family;

use super::quadrature::{softmax_jacobian, temperature};
use crate::problem::{Problem, softmax};

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let tau = temperature(config);
    let bit = problem.family == Family::Bernoulli;
    let mut sum = vec![0.0; problem.natural.len()];
    for (z, probability) in problem.states() {
        let slope = problem.objective.gradient_at(&z);
        let (logits, one_hot, slope) = match bit {
            true => (
                vec![problem.natural[0], 0.0],
                vec![z[0], 1.0 - z[0]],
                vec![slope[0], 0.0],
            ),
            false => (problem.natural.clone(), z, slope),
        };
        let soft = softmax(&logits.iter().map(|t| t / tau).collect::<Vec<_>>());
        let middle = soft.iter().zip(one_hot).map(|(s, z)| (s + z) / 2.0);
        let first = softmax_jacobian(&middle.collect::<Vec<_>>(), &slope);
        let second = softmax_jacobian(&softmax(&logits), &slope);
        for (sum, (a, b)) in sum.iter_mut().zip(first.iter().zip(second)) {
            *sum += probability * (2.0 * a - 0.5 * b);
        }
    }
    sum
}
