//! The estimators that are measured, and how many draws a budget buys.

use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Price, REGISTRY, Spec};
use straightflow::objective::ObjectiveKind;

/// Configurations besides the defaults that are worth a row of their own.
const VARIANTS: &[&str] = &[
    "pwgf:bandwidth=1sd",
    "pwgf:bandwidth=4sd",
    "second-order-st:baseline=loo,samples=2",
    "fini:order=3",
    "fini:order=4",
    "reinforce:baseline=moving-average",
    "reinforce:baseline=loo,samples=2",
    "reinforce:baseline=learned",
    "double-cv:alpha=-1,tune=off",
];

/// Every estimator of the registry that takes the expectation of a cost, and some of their
/// variants.
pub fn subjects() -> Vec<Spec> {
    let expectations = REGISTRY
        .iter()
        .filter(|entry| entry.objective == ObjectiveKind::Expectation);
    let specs = expectations.flat_map(|entry| {
        let variants = VARIANTS.iter().map(|text| text.parse::<Spec>());
        let variants = variants.map(|spec| spec.expect("a valid specification"));
        let variants = variants.filter(|spec| spec.id() == entry.id);
        std::iter::once(Spec::new(entry.id)).chain(variants)
    });
    specs.collect()
}

/// Whether an estimator, as it is configured, takes a law.
pub(super) fn takes(estimator: &dyn Estimator, law: &Law) -> bool {
    let kind: FamilyKind = law.family().kind();
    estimator.entry().families.contains(&kind) && estimator.check(law, estimator.draws()).is_ok()
}

/// What an estimate costs: evaluations of the cost and backward passes through it, alike.
pub(super) fn total(price: Price) -> usize {
    price.evaluations + price.gradients
}

/// The same estimator with another number of draws; `None` if it has no such number, or refuses it.
pub(super) fn with_samples(estimator: &dyn Estimator, n: usize) -> Option<Box<dyn Estimator>> {
    let mut config = estimator.config();
    *config.get_mut("samples")? = n.into();
    estimator.entry().build(config).ok()
}

/// The estimator with the least number of draws.
pub(super) fn smallest(estimator: &dyn Estimator) -> Option<Box<dyn Estimator>> {
    let least = estimator.least_samples();
    with_samples(estimator, least).or_else(|| estimator.entry().build(estimator.config()).ok())
}

/// The estimator with as many draws as a budget of evaluations and backward passes buys; `None` if
/// it does not buy the least number.
pub(super) fn affordable(
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
    let mut affordable = draws.filter(|n| total(estimator.price(law, *n)) <= budget);
    match affordable.next().and_then(|n| with_samples(estimator, n)) {
        Some(estimator) => Some(estimator),
        None => Some(smallest),
    }
}
