//! The published target of every biased estimator, by a second, scalar implementation that shares
//! no code with the estimator: the expectation of its gradient for a problem of one variable.

use serde_json::Value;

use crate::problem::Problem;

mod exponential_arrival;
mod fini;
mod gapped_straight_through;
mod gumbel_rao;
mod gumbel_softmax;
mod quadrature;
mod reinmax;
mod straight_through;
mod straight_through_gumbel;
mod truncated_gumbel;

/// The expectation of a biased estimator's gradient by the natural parameters, for a recorded
/// configuration; `None` if there is no reference for the id.
///
/// Relaxations with a temperature need a constant one, and a categorical variable of 2 or 3
/// categories where the noise is integrated by quadrature.
pub fn expected(id: &str, config: &Value, problem: &Problem) -> Option<Vec<f64>> {
    let reference = match id {
        "fini" => fini::expected,
        "straight-through" => straight_through::expected,
        "gumbel-softmax" => gumbel_softmax::expected,
        "straight-through-gumbel" => straight_through_gumbel::expected,
        "gumbel-rao" => gumbel_rao::expected,
        "gapped-straight-through" => gapped_straight_through::expected,
        "reinmax" => reinmax::expected,
        "exponential-arrival" => exponential_arrival::expected,
        _ => return None,
    };
    Some(reference(config, problem))
}

/// As [`expected`], where only a scalar Monte Carlo with a fixed seed can tell: the expectation and
/// its standard error.
pub fn sampled(id: &str, config: &Value, problem: &Problem) -> Option<(Vec<f64>, Vec<f64>)> {
    match id {
        "truncated-gumbel" => Some(truncated_gumbel::expected(config, problem)),
        _ => None,
    }
}
