//! The published target of every biased estimator, by a second, scalar implementation that shares
//! no code with the estimator: the expectation of its gradient for a problem of one variable.

use serde_json::Value;

use crate::problem::Problem;

mod fini;
mod straight_through;

/// The expectation of a biased estimator's gradient by the natural parameters, for a recorded
/// configuration; `None` if there is no reference for the id.
pub fn expected(id: &str, config: &Value, problem: &Problem) -> Option<Vec<f64>> {
    let reference = match id {
        "fini" => fini::expected,
        "straight-through" => straight_through::expected,
        _ => return None,
    };
    Some(reference(config, problem))
}
