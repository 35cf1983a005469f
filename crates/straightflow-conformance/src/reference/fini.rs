//! Polynomial weights that make the estimate exact on polynomials up to a degree, the order.

use serde_json::Value;
use straightflow::distribution::Family;

use super::second_order_st;
use crate::problem::Problem;

/// Order 2 is the trapezoid rule in every family; orders 3 and 4 are for log-rates.
pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let order = config["order"].as_u64().unwrap_or(2);
    if order == 2 || problem.family != Family::Poisson {
        return second_order_st::expected(config, problem);
    }
    let rate = problem.natural[0].exp();
    let weight = |z: f64| match order {
        3 => 5.0 * rate / 12.0 + (8.0 * rate + 1.0) * z / (12.0 * rate) - z * z / (12.0 * rate),
        _ => {
            let square = rate * rate;
            3.0 * rate / 8.0 + (19.0 * square + 5.0 * rate + 2.0) * z / (24.0 * square)
                - (5.0 * rate + 3.0) * z * z / (24.0 * square)
                + z.powi(3) / (24.0 * square)
        }
    };
    let terms = problem.states().into_iter();
    let sum = terms.map(|(z, p)| p * weight(z[0]) * (problem.objective.slope)(z[0]));
    vec![sum.sum()]
}
