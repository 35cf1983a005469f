//! The expectation of a biased estimator's gradient for three variables and a product of costs.

use serde_json::Value;

use super::{
    Expected, exponential_arrival, gumbel_softmax, pwgf, relaxed_top_k, target, truncated_gumbel,
};
use crate::problem::Problem;
use crate::product::{Product, product_rule};

/// Biased estimators whose samples are hard, whose gradient is linear in the cost, and whose weight
/// for a variable depends on the noise of that variable only. What one variable tells about them
/// holds for a product of costs (see [`crate::product`]).
const FACTORISES: &[&str] = &[
    "fini",
    "gapped-straight-through",
    "gumbel-rao",
    "reinmax",
    "second-order-st",
    "straight-through",
    "straight-through-gumbel",
];

/// The expected cost of a sample of one variable and its standard error.
type SampleCost = fn(&Value, &Problem) -> (f64, f64);

/// The same with samples that are not hard: the other factors are the costs of relaxed samples.
const RELAXED: &[(&str, SampleCost)] = &[
    ("exponential-arrival", |config, problem| {
        (exponential_arrival::expected_cost(config, problem), 0.0)
    }),
    ("gumbel-softmax", |config, problem| {
        (gumbel_softmax::expected_cost(config, problem), 0.0)
    }),
    ("relaxed-top-k", relaxed_top_k::expected_cost),
    ("truncated-gumbel", truncated_gumbel::expected_cost),
];

/// As [`target`], for a product of costs; `None` if there is no reference for the id.
pub fn expected_product(id: &str, config: &Value, product: &Product) -> Option<Expected> {
    // A step of finite size is not linear in the cost.
    if id == "pwgf" && config["step"] != "limit" {
        return pwgf::expected_product(config, product).map(Expected::exact);
    }
    let relaxed = RELAXED.iter().find(|(known, _)| *known == id);
    let sample_cost: SampleCost = match relaxed {
        Some((_, cost)) => *cost,
        None if id == "pwgf" || FACTORISES.contains(&id) => {
            |_, problem| (problem.expected_cost(), 0.0)
        }
        None => return None,
    };
    let factors = product.factors.iter();
    let of_factors: Vec<Expected> = factors
        .map(|factor| target(id, config, factor))
        .collect::<Option<_>>()?;
    let costs = product.factors.each_ref();
    let costs = costs.map(|factor| sample_cost(config, factor));
    Some(product_rule(&of_factors, &costs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use straightflow::distribution::FamilyKind;
    use straightflow::estimator::REGISTRY;

    use super::*;
    use crate::gradients::error;
    use crate::problem::problems;

    /// A relaxation is differentiable, so its expected gradient is the derivative of its expected
    /// cost; the scalar Monte Carlo has a fixed seed, so for it this holds of the two means.
    #[test]
    fn gradients_are_derivatives_of_the_cost_of_relaxed_samples() {
        use FamilyKind::{Bernoulli, Binomial, Categorical, NegativeBinomial, Poisson, Subset};
        let config = json!({
            "temperature": "0.6", "relaxation": "cubic", "hard": false, "tail": 1e-12
        });
        for (id, families) in [
            ("gumbel-softmax", vec![Bernoulli, Categorical]),
            ("exponential-arrival", vec![Poisson]),
            (
                "truncated-gumbel",
                vec![Poisson, Binomial, NegativeBinomial],
            ),
            ("relaxed-top-k", vec![Subset]),
        ] {
            let cost = RELAXED.iter().find(|(known, _)| *known == id);
            let cost = cost.expect("a relaxation").1;
            for problem in families.into_iter().map(|kind| problems(kind)[3].clone()) {
                let want = target(id, &config, &problem).expect("a reference").mean;
                let at = |i: usize, step: f64| {
                    let mut moved = problem.clone();
                    moved.natural[i] += step;
                    cost(&config, &moved).0
                };
                let h = 1e-4;
                let slope = |i: usize| (at(i, h) - at(i, -h)) / (2.0 * h);
                let got: Vec<f64> = (0..want.len()).map(slope).collect();
                let gap = error(&got, &want);
                assert!(gap < 1e-6, "{id}, {problem}: {got:?} {want:?}");
                let power = want.iter().any(|g| g.abs() > 1e-2);
                assert!(power, "{id}, {problem}: {want:?}");
            }
        }
    }

    /// A small step is the limit, which factorises.
    #[test]
    fn a_small_step_of_the_flow_is_its_limit() {
        let config = |step: &str| {
            json!({
                "kernel": "rbf", "projection": "mmd", "categorical": "one-hot",
                "bandwidth": "1sd", "gain": "linear", "step": step
            })
        };
        let pwgf = REGISTRY.iter().find(|entry| entry.id == "pwgf");
        for kind in pwgf.expect("a method").families {
            let product = Product::with_few_states(*kind);
            let of = |step: &str| {
                let expected = expected_product("pwgf", &config(step), &product);
                expected.expect("a reference").mean
            };
            let (small, limit) = (of("fixed(1e-5)"), of("limit"));
            let gap = error(&small, &limit);
            assert!(gap < 1e-3, "{product}: {small:?} {limit:?}");
        }
    }
}
