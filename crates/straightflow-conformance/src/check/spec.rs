//! The specification and the record build the estimator again.

use straightflow::estimator::Spec;

use crate::subject::{Failure, Subject};

pub fn spec(subject: &Subject) -> Result<(), Failure> {
    let fail = |found: String| subject.failure("spec", "round trip", found);
    let estimator = subject.estimator();
    let entry = estimator.entry();
    let spec: Spec = estimator
        .spec()
        .to_string()
        .parse()
        .map_err(|error: straightflow::Error| fail(error.to_string()))?;
    let again = entry
        .build_spec(&spec)
        .map_err(|error| fail(error.to_string()))?;
    let recorded = entry
        .build(estimator.config())
        .map_err(|error| fail(error.to_string()))?;
    if again.config() != estimator.config() || recorded.config() != estimator.config() {
        return Err(fail(format!(
            "{} gives {}",
            estimator.config(),
            again.config()
        )));
    }
    // A record that leaves something out would still be equal to itself.
    if again.draws() != estimator.draws() {
        let (got, want) = (again.draws(), estimator.draws());
        return Err(fail(format!(
            "{spec} has {got} draws, the estimator {want}"
        )));
    }
    if again.spec() != estimator.spec() {
        return Err(fail(format!("{} gives {}", estimator.spec(), again.spec())));
    }
    // One row of the documentation for each option.
    let mut described: Vec<String> = entry.options.iter().map(|option| option.key()).collect();
    described.sort_unstable();
    let defaults = entry.defaults();
    let mut options: Vec<&str> = defaults.keys().map(String::as_str).collect();
    options.sort_unstable();
    if described != options {
        return Err(fail(format!(
            "options {options:?}, described {described:?}"
        )));
    }
    Ok(())
}
