//! Variances of one estimate in closed form, where an estimate is a mean of independent terms, one
//! for each draw, or a leave-one-out pair.

use serde_json::Value;

use super::{pwgf, second_order_st, straight_through};
use crate::problem::Problem;

/// The variance of each coordinate of a gradient with `draws` draws; `None` if it has no closed form
/// here.
pub fn variance(id: &str, config: &Value, problem: &Problem, draws: usize) -> Option<Vec<f64>> {
    if id == "reinforce" && config["baseline"] == "loo" && draws == 2 {
        return Some(leave_one_out_pair(problem));
    }
    let states = problem.states();
    let k = problem.natural.len();
    let (mut mean, mut square) = (vec![0.0; k], vec![0.0; k]);
    for (z, p) in &states {
        let term = term(id, config, problem, z)?;
        for (i, term) in term.into_iter().enumerate() {
            mean[i] += p * term;
            square[i] += p * term * term;
        }
    }
    let variance = |(mean, square): (&f64, &f64)| (square - mean * mean).max(0.0) / draws as f64;
    Some(mean.iter().zip(&square).map(variance).collect())
}

/// What one draw contributes.
fn term(id: &str, config: &Value, problem: &Problem, z: &[f64]) -> Option<Vec<f64>> {
    match id {
        "straight-through" => Some(straight_through::term(problem, z)),
        "second-order-st" if config["baseline"] == "none" => {
            Some(second_order_st::term(problem, z))
        }
        // A fixed step sees the draws one by one; nothing else of the flow couples them. Without the
        // control variate a draw contributes more than `pwgf::term`.
        "pwgf" if config["cv"] == true => {
            pwgf::term(config, problem, z, &problem.objective.gradient_at(z))
        }
        "reinforce" if config["baseline"] == "none" => {
            let f = problem.objective.value_at(z);
            Some(problem.score(z).into_iter().map(|s| f * s).collect())
        }
        _ => None,
    }
}

/// `(f_1 - f_2)(s_1 - s_2) / 2`, over all pairs.
fn leave_one_out_pair(problem: &Problem) -> Vec<f64> {
    let states = problem.states();
    let k = problem.natural.len();
    let (mut mean, mut square) = (vec![0.0; k], vec![0.0; k]);
    for (a, p) in &states {
        for (b, q) in &states {
            let rise = problem.objective.value_at(a) - problem.objective.value_at(b);
            let scores = problem.score(a).into_iter().zip(problem.score(b));
            for (i, (s, t)) in scores.enumerate() {
                let term = 0.5 * rise * (s - t);
                mean[i] += p * q * term;
                square[i] += p * q * term * term;
            }
        }
    }
    let variance = |(mean, square): (&f64, &f64)| square - mean * mean;
    mean.iter().zip(&square).map(variance).collect()
}
