//! `sum_c p_c E(J(y) | c) f'(e_c) / tau`, the expectation given the largest perturbed logit `c`.
//!
//! Given `c`, the largest perturbed logit is `-log(E_c / Z)` and the others are
//! `-log(E_l / exp(theta_l) + E_c / Z)` with exponential variables `E`. Their differences to the
//! largest are `-log(1 + E_l / (E_c p_l))`, where `log E_l - log E_c` is a difference of Gumbel
//! variables: a smooth function of it, unlike the hard sample.

use serde_json::Value;
use straightflow::distribution::Family;

use super::quadrature::{gumbel_differences, softmax_jacobian, temperature};
use crate::problem::{Problem, softmax};

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let tau = temperature(config);
    let bit = problem.family == Family::Bernoulli;
    // A bit is the first of two categories with logits (phi, 0).
    let logits = match bit {
        true => vec![problem.natural[0], 0.0],
        false => problem.natural.clone(),
    };
    let k = logits.len();
    let p = softmax(&logits);
    let mut sum = vec![0.0; k];
    for chosen in 0..k {
        let corner: Vec<f64> = (0..k).map(|i| f64::from(u8::from(i == chosen))).collect();
        let slope = match bit {
            true => vec![problem.objective.gradient_at(&corner[..1])[0], 0.0],
            false => problem.objective.gradient_at(&corner),
        };
        let given = gumbel_differences(k, |noise| {
            let mut noise = noise.iter();
            let gap = |l: usize, noise: f64| match l == chosen {
                true => 0.0,
                // ln(1 + e^x), x = log E_l - log E_c - log p_l.
                false => {
                    let x = -noise - p[l].ln();
                    x.max(0.0) + (-x.abs()).exp().ln_1p()
                }
            };
            let x: Vec<f64> = (0..k)
                .map(|l| {
                    let noise = if l == chosen {
                        0.0
                    } else {
                        *noise.next().expect("k - 1 numbers")
                    };
                    -gap(l, noise) / tau
                })
                .collect();
            softmax_jacobian(&softmax(&x), &slope)
        });
        for (sum, given) in sum.iter_mut().zip(given) {
            *sum += p[chosen] * given / tau;
        }
    }
    sum.truncate(problem.natural.len());
    sum
}
