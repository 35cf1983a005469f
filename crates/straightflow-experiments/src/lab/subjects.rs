//! The estimators that are measured.

use straightflow::estimator::{REGISTRY, Spec};
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
