//! A sum over the hard samples: given one, nothing else is random.

use serde_json::Value;
use straightflow::distribution::Family;

use super::quadrature::{softmax_jacobian, temperature};
use crate::problem::{Problem, softmax};

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let tau = temperature(config);
    let gap = config["gap"].as_f64().expect("a number");
    let bit = problem.family == Family::Bernoulli;
    let mut sum = vec![0.0; problem.natural.len()];
    for (z, p) in problem.states() {
        let slope = problem.objective.gradient_at(&z);
        let (logits, one_hot, slope) = match bit {
            true => (
                vec![problem.natural[0], 0.0],
                vec![z[0], 1.0 - z[0]],
                vec![slope[0], 0.0],
            ),
            false => (problem.natural.clone(), z, slope),
        };
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let moved = logits.iter().zip(one_hot).map(|(t, z)| {
            let raise = (largest - t) * z;
            let push = (t + gap - largest).max(0.0) * (1.0 - z);
            (t + raise - push) / tau
        });
        let y = softmax(&moved.collect::<Vec<_>>());
        for (sum, g) in sum.iter_mut().zip(softmax_jacobian(&y, &slope)) {
            *sum += p * g / tau;
        }
    }
    sum
}
