//! `E f(y)` and its derivative with respect to the log-rate, without any arrival time.
//!
//! The relaxed count `y = sum_k r(t_k)` over the arrivals before a horizon `T` is a compound
//! Poisson variable: a Poisson number of rate `rate T` of jumps `r(t)` with `t` uniform on `(0,
//! T)`. Its law is found by Panjer's recursion on a fine grid, and the derivative with respect to
//! the rate of a Poisson process is that of one more arrival, `T E [f(y + r(t)) - f(y)]`. The
//! relaxation is differentiable in the rate, so this is also the expectation of the pathwise
//! derivative.

use serde_json::Value;

use super::quadrature::temperature;
use crate::problem::Problem;

/// Cells of the grid for a jump of 1. Jumps are split between two neighbours such that the mean is
/// kept, so the error is about `rate T f'' / (8 CELLS^2)`, some 1e-7.
const CELLS: usize = 1500;

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let Compound { rate, jump, law } = Compound::new(config, problem);
    let cost: Vec<f64> = (0..law.len() + jump.len())
        .map(|s| cost_of_cell(problem, s))
        .collect();
    let one_more = |s: usize| -> f64 {
        let terms = jump.iter().zip(&cost[s..]);
        terms.map(|(p, f)| p * (f - cost[s])).sum()
    };
    let total: f64 = law.iter().enumerate().map(|(s, g)| g * one_more(s)).sum();
    vec![rate * total]
}

/// The expected cost of the relaxed count.
pub fn expected_cost(config: &Value, problem: &Problem) -> f64 {
    let law = Compound::new(config, problem).law;
    let terms = law.iter().enumerate();
    terms.map(|(s, g)| g * cost_of_cell(problem, s)).sum()
}

fn cost_of_cell(problem: &Problem, s: usize) -> f64 {
    problem.objective.value_at(&[s as f64 / CELLS as f64])
}

/// A Poisson number of jumps, in cells of the grid.
struct Compound {
    /// The mean number of jumps, `rate T`.
    rate: f64,
    /// The law of a jump.
    jump: Vec<f64>,
    /// The law of their sum.
    law: Vec<f64>,
}

impl Compound {
    fn new(config: &Value, problem: &Problem) -> Self {
        let tau = temperature(config);
        let rate = problem.natural[0].exp();
        let cubic = config["relaxation"] == "cubic";
        let horizon = if cubic { 1.0 + tau } else { 1.0 + 40.0 * tau };
        let step = |t: f64| {
            let x = (1.0 - t) / tau;
            if cubic {
                let u = (0.5 * x + 0.5).clamp(0.0, 1.0);
                3.0 * u.powi(2) - 2.0 * u.powi(3)
            } else {
                1.0 / (1.0 + (-x).exp())
            }
        };

        let mut jump = vec![0.0; CELLS + 2];
        let points = 200_000;
        for i in 0..points {
            let t = (f64::from(i) + 0.5) * horizon / f64::from(points);
            let at = step(t) * CELLS as f64;
            let cell = at.floor() as usize;
            jump[cell] += (1.0 - at.fract()) / f64::from(points);
            jump[cell + 1] += at.fract() / f64::from(points);
        }

        // g_0 = exp(-m (1 - jump_0)), g_s = (m / s) sum_j j jump_j g_{s-j}; a count that is 12
        // standard deviations and 12 ones above its mean does not happen.
        let m = rate * horizon;
        let mean = rate * (1.0 + tau);
        let size = ((mean + 12.0 * mean.sqrt() + 12.0) * CELLS as f64) as usize;
        let weighted: Vec<f64> = jump.iter().enumerate().map(|(j, p)| j as f64 * p).collect();
        let mut law = vec![0.0; size];
        law[0] = (-m * (1.0 - jump[0])).exp();
        for s in 1..size {
            let last = s.min(CELLS + 1);
            let terms = weighted[1..=last].iter().zip(law[s - last..s].iter().rev());
            law[s] = m / s as f64 * terms.map(|(j, g)| j * g).sum::<f64>();
        }
        Self { rate: m, jump, law }
    }
}
