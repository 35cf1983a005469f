//! `E w(z) f'(z)` with the weights as powers of the sample, as they were published.

use serde_json::Value;
use straightflow::distribution::Family;

use crate::problem::Problem;

pub fn expected(config: &Value, problem: &Problem) -> Vec<f64> {
    let order = config["order"].as_u64().expect("a recorded order");
    let x = problem.natural[0];
    let p = 1.0 / (1.0 + (-x).exp());
    let m = x.exp();
    let weight = |z: f64| match (problem.family, order) {
        (Family::Bernoulli, _) => 0.5 * p + 0.5 * (1.0 - 2.0 * p) * z,
        (Family::Binomial { trials }, _) => 0.5 * f64::from(trials) * p + 0.5 * (1.0 - 2.0 * p) * z,
        (Family::NegativeBinomial { dispersion: r }, _) => {
            let share = m / (r + m);
            0.5 * r * share + 0.5 * (1.0 + share) * z
        }
        (_, 2) => 0.5 * (z + m),
        (_, 3) => (5.0 * m + (8.0 + 1.0 / m) * z - z * z / m) / 12.0,
        _ => {
            let linear = (19.0 * m * m + 5.0 * m + 2.0) * z;
            let square = (5.0 * m + 3.0) * z * z;
            3.0 * m / 8.0 + (linear - square + z.powi(3)) / (24.0 * m * m)
        }
    };
    let states = problem.states();
    let terms = states
        .iter()
        .map(|(z, p)| p * weight(z[0]) * problem.objective.gradient_at(z)[0]);
    vec![terms.sum()]
}
