//! The published target of every biased estimator, by a second, scalar implementation that shares
//! no code with the estimator: the expectation of its gradient for a problem of one variable.

use serde_json::Value;

use crate::problem::Problem;

mod bound;
mod exponential_arrival;
mod fini;
mod gapped_straight_through;
mod gumbel_rao;
mod gumbel_softmax;
mod layers;
mod product;
mod pwgf;
mod quadrature;
mod reinmax;
mod relaxed_top_k;
mod second_order_st;
mod straight_through;
mod straight_through_gumbel;
mod textbook;
mod truncated_gumbel;
mod variance;

pub use bound::{Outcome, bound_gradient};
pub use layers::expected_layers;
pub use product::expected_product;
pub use variance::variance;

/// The expectation of a biased estimator's gradient with respect to the natural parameters, for a
/// recorded configuration; `None` if there is no reference for the id.
///
/// Relaxations with a temperature need a constant one, and a categorical variable of 2 or 3
/// categories where the noise is integrated by quadrature.
pub fn expected(id: &str, config: &Value, problem: &Problem) -> Option<Vec<f64>> {
    let reference = match id {
        "fini" => fini::expected,
        "pwgf" => return pwgf::expected(config, problem),
        "second-order-st" => second_order_st::expected,
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

/// An expectation and its standard error.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The expectation of each coordinate.
    pub mean: Vec<f64>,
    /// Its standard error; zero unless the reference itself is a Monte Carlo.
    pub error: Vec<f64>,
}

impl Expected {
    /// An expectation that is known.
    pub fn exact(mean: Vec<f64>) -> Self {
        let error = vec![0.0; mean.len()];
        Self { mean, error }
    }
}

/// A scalar Monte Carlo with a fixed seed: expectation and standard error.
type Sampled = fn(&Value, &Problem) -> (Vec<f64>, Vec<f64>);

/// References for which no quadrature is in reach, because the noise has too many dimensions.
const SAMPLED: &[(&str, Sampled)] = &[
    ("relaxed-top-k", relaxed_top_k::expected),
    ("truncated-gumbel", truncated_gumbel::expected),
];

/// As [`expected`], where only a scalar Monte Carlo can tell.
pub fn sampled(id: &str, config: &Value, problem: &Problem) -> Option<Expected> {
    let (_, reference) = SAMPLED.iter().find(|(known, _)| *known == id)?;
    let (mean, error) = reference(config, problem);
    Some(Expected { mean, error })
}

/// [`expected`] or [`sampled`], whichever there is.
pub fn target(id: &str, config: &Value, problem: &Problem) -> Option<Expected> {
    let known = expected(id, config, problem).map(Expected::exact);
    known.or_else(|| sampled(id, config, problem))
}
