//! How many draws a budget buys.

use crate::distribution::Law;
use crate::estimate::{Estimator, Price};

/// Whether an estimator, as it is configured, takes a law.
pub fn takes(estimator: &dyn Estimator, law: &Law) -> bool {
    let kind = law.family().kind();
    estimator.entry().families.contains(&kind) && estimator.check(law, estimator.draws()).is_ok()
}

/// What an estimate costs: evaluations of the cost and backward passes through it, alike.
fn total(price: Price) -> usize {
    price.evaluations + price.gradients
}

/// The same estimator with another number of draws; `None` if it has no such number, or refuses it.
fn with_samples(estimator: &dyn Estimator, n: usize) -> Option<Box<dyn Estimator>> {
    let mut config = estimator.config();
    *config.get_mut("samples")? = n.into();
    estimator.entry().build(config).ok()
}

/// The estimator with the least number of draws.
pub fn smallest(estimator: &dyn Estimator) -> Option<Box<dyn Estimator>> {
    let least = estimator.least_samples();
    with_samples(estimator, least).or_else(|| estimator.entry().build(estimator.config()).ok())
}

/// The estimator with as many draws as a budget of evaluations and backward passes buys, and as the
/// law has room for; `None` if it does not buy the least number.
pub fn affordable(
    estimator: &dyn Estimator,
    law: &Law,
    budget: usize,
) -> Option<Box<dyn Estimator>> {
    let smallest = smallest(estimator)?;
    if total(smallest.price(law, smallest.draws())) > budget {
        return None;
    }
    // Every draw costs at least one evaluation.
    let draws = (smallest.draws()..=budget.max(smallest.draws())).rev();
    let affordable = draws.filter(|n| total(estimator.price(law, *n)) <= budget);
    let mut built = affordable.filter_map(|n| with_samples(estimator, n));
    let found = built.find(|one| one.accepts(law).is_ok());
    Some(found.unwrap_or(smallest))
}
