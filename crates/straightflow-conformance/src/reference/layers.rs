//! The expectation of a pathwise estimator's gradient for stacked layers, by a scalar Monte Carlo:
//! each variable has a sample and a rule from the cost's slope to the gradient of its natural
//! parameters, and the slope of the lower layer includes what comes back through the parameters of
//! the upper one.

use serde_json::Value;
use straightflow::Key;

use super::quadrature::{softmax_jacobian, temperature};
use super::{Expected, pwgf};
use crate::problem::{OBJECTIVES, Problem, softmax};
use crate::stack::{FAMILIES, Scalar};

/// Draws of the stack.
const DRAWS: usize = 300_000;

/// The expectation and its standard error for a recorded configuration; `None` if there is no
/// reference for the id.
pub fn expected_layers(id: &str, config: &Value, stack: Scalar) -> Option<Expected> {
    let width = 2 * stack.k;
    let (mut sum, mut square) = (vec![0.0; 2 * width], vec![0.0; 2 * width]);
    // A variable takes at most one number for its sample and one for each category after it.
    let numbers = stack.k.max(2) + 1;
    let mut uniform = vec![0.0; 4 * numbers];
    for draw in 0..DRAWS {
        Key::new(41)
            .child(draw as u64)
            .fill_uniform_f64(&mut uniform);
        let mut own = uniform.chunks(numbers);
        let mut layer = |natural: &[f64]| -> Option<Vec<Variable>> {
            natural
                .chunks(stack.k)
                .map(|natural| Variable::new(id, config, stack, natural, own.next()?))
                .collect()
        };
        let values = |layer: &[Variable]| -> Vec<f64> {
            layer.iter().flat_map(|v| v.sample.clone()).collect()
        };
        let lower = layer(&stack.lower())?;
        let z = values(&lower);
        let upper = layer(&stack.upper(&z))?;
        let y = values(&upper);
        let [by_z, by_y] = stack.slopes([&z, &y]);
        let pull = |layer: &[Variable], slope: &[f64]| -> Option<Vec<f64>> {
            let parts = layer.iter().zip(slope.chunks(stack.k));
            let parts: Option<Vec<Vec<f64>>> = parts.map(|(v, s)| v.pullback(s)).collect();
            Some(parts?.concat())
        };
        let above = pull(&upper, &by_y)?;
        let through = stack.upper_pullback(&above);
        let total: Vec<f64> = by_z.iter().zip(through).map(|(a, b)| a + b).collect();
        let below = pull(&lower, &total)?;
        for (i, g) in below.into_iter().chain(above).enumerate() {
            sum[i] += g;
            square[i] += g * g;
        }
    }
    let n = DRAWS as f64;
    let mean: Vec<f64> = sum.iter().map(|sum| sum / n).collect();
    let error = square.iter().zip(&mean);
    let error = error.map(|(square, mean)| ((square / n - mean * mean).max(0.0) / n).sqrt());
    Some(Expected {
        error: error.collect(),
        mean,
    })
}

/// A sample and the rule of one variable.
struct Variable {
    sample: Vec<f64>,
    rule: Rule,
}

/// From the slope of the cost to the gradient of the natural parameters.
type Pullback = Box<dyn Fn(&[f64]) -> Vec<f64>>;

enum Rule {
    /// A matrix on two or more categories; of a bit only the first row and column count.
    Matrix(Pullback, bool),
    /// One that is not linear, of a single variable.
    Flow(Value, Problem, Vec<f64>),
}

impl Variable {
    fn new(id: &str, config: &Value, stack: Scalar, natural: &[f64], u: &[f64]) -> Option<Self> {
        let bit = stack.k == 1;
        // A bit is the first of two categories with logits (phi, 0).
        let logits = match bit {
            true => vec![natural[0], 0.0],
            false => natural.to_vec(),
        };
        let k = logits.len();
        let p = softmax(&logits);
        let mut rest = u[0];
        let chosen = (0..k).find(|i| {
            rest -= p[*i];
            rest < 0.0
        });
        let chosen = chosen.unwrap_or(k - 1);
        let corner: Vec<f64> = (0..k).map(|i| f64::from(u8::from(i == chosen))).collect();
        let own = |x: &[f64]| x[..stack.k].to_vec();
        let tau = || temperature(config);
        // The perturbed logits given the largest of them, less the largest, as in the reference of
        // straight-through Gumbel-softmax.
        let exponential = |u: f64| -u.ln();
        let top = exponential(u[1 + chosen]);
        let gap = |i: usize| match i == chosen {
            true => 0.0,
            false => -(exponential(u[1 + i]) / (top * p[i])).ln_1p(),
        };
        let relaxed = || -> Vec<f64> {
            let x: Vec<f64> = (0..k).map(|i| gap(i) / tau()).collect();
            softmax(&x)
        };
        let matrix = |rule: Pullback, sample: &[f64]| Self {
            sample: own(sample),
            rule: Rule::Matrix(rule, bit),
        };
        Some(match id {
            "straight-through" => matrix(Box::new(move |s| softmax_jacobian(&p, s)), &corner),
            "second-order-st" => {
                let hard = corner.clone();
                let rule = move |s: &[f64]| -> Vec<f64> {
                    let along: f64 = p.iter().zip(s).map(|(p, s)| p * s).sum();
                    let each = |i: usize| {
                        let at = hard[i] * (s[i] - along);
                        0.5 * (at + p[i] * (s[i] - s[chosen]))
                    };
                    (0..p.len()).map(each).collect()
                };
                matrix(Box::new(rule), &corner)
            }
            "fini" if config["order"] == 2 => {
                // The order 2 is the second-order rule.
                return Self::new("second-order-st", config, stack, natural, u);
            }
            "reinmax" => {
                let cold: Vec<f64> = logits.iter().map(|x| x / tau()).collect();
                let soft = softmax(&cold).into_iter().zip(&corner);
                let middle: Vec<f64> = soft.map(|(s, z)| (s + z) / 2.0).collect();
                let rule = move |s: &[f64]| -> Vec<f64> {
                    let first = softmax_jacobian(&middle, s);
                    let second = softmax_jacobian(&p, s);
                    first
                        .iter()
                        .zip(second)
                        .map(|(a, b)| 2.0 * a - 0.5 * b)
                        .collect()
                };
                matrix(Box::new(rule), &corner)
            }
            "gapped-straight-through" => {
                let width = config["gap"].as_f64()?;
                let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let moved = logits.iter().zip(&corner).map(|(x, z)| {
                    let raise = (largest - x) * z;
                    let push = (x + width - largest).max(0.0) * (1.0 - z);
                    (x + raise - push) / tau()
                });
                let y = softmax(&moved.collect::<Vec<_>>());
                let tau = tau();
                let rule = move |s: &[f64]| -> Vec<f64> {
                    softmax_jacobian(&y, s).iter().map(|g| g / tau).collect()
                };
                matrix(Box::new(rule), &corner)
            }
            "gumbel-softmax" | "straight-through-gumbel" | "gumbel-rao" => {
                let (y, tau) = (relaxed(), tau());
                let sample = if id == "gumbel-softmax" { &y } else { &corner };
                let sample = sample.clone();
                let rule = move |s: &[f64]| -> Vec<f64> {
                    softmax_jacobian(&y, s).iter().map(|g| g / tau).collect()
                };
                matrix(Box::new(rule), &sample)
            }
            "pwgf" => {
                let (_, family, _) = FAMILIES.iter().find(|(_, _, k)| *k == stack.k)?;
                let problem = Problem {
                    family: *family,
                    natural: natural.to_vec(),
                    objective: OBJECTIVES[0],
                };
                let sample = own(&corner);
                Self {
                    rule: Rule::Flow(config.clone(), problem, sample.clone()),
                    sample,
                }
            }
            _ => return None,
        })
    }

    fn pullback(&self, slope: &[f64]) -> Option<Vec<f64>> {
        match &self.rule {
            Rule::Matrix(rule, true) => Some(rule(&[slope[0], 0.0])[..1].to_vec()),
            Rule::Matrix(rule, false) => Some(rule(slope)),
            Rule::Flow(config, problem, z) => pwgf::term(config, problem, z, slope),
        }
    }
}
