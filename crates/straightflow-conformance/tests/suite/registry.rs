//! One test for each check, over all subjects of the registry.

use straightflow_conformance::check;
use straightflow_conformance::subject::{Subject, registry};

/// All subjects, or those of one id while an estimator is being written.
fn subjects() -> Vec<Subject> {
    let only = std::env::var("STRAIGHTFLOW_ONLY").ok();
    let selected = |subject: &Subject| match &only {
        Some(id) => subject.entry().id == id,
        None => true,
    };
    let subjects: Vec<Subject> = registry().into_iter().filter(selected).collect();
    assert!(!subjects.is_empty(), "no estimator {only:?}");
    subjects
}

fn all_pass(name: &str) {
    let failures = check::run_all(check::find(name), &subjects());
    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} rejected:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn spec() {
    all_pass("spec");
}

#[test]
fn errors() {
    all_pass("errors");
}

#[test]
fn cost() {
    all_pass("cost");
}

#[test]
fn batch() {
    all_pass("batch");
}

#[test]
fn drop_in() {
    all_pass("drop-in");
}

#[test]
fn expectation() {
    all_pass("expectation");
}

#[test]
fn statistical() {
    all_pass("statistical");
}

#[test]
fn variance() {
    all_pass("variance");
}

#[test]
fn state() {
    all_pass("state");
}

#[test]
fn chain() {
    all_pass("chain");
}

#[test]
fn extremes() {
    all_pass("extremes");
}

#[test]
fn determinism() {
    all_pass("determinism");
}

/// A check that is added to the list without a test above would run on nothing.
#[test]
fn every_check_has_a_test() {
    let here = include_str!("registry.rs");
    for check in check::CHECKS {
        let call = format!("all_pass(\"{}\")", check.name);
        assert!(here.contains(&call), "no test runs {}", check.name);
    }
}
