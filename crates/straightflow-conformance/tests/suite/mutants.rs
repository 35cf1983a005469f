//! Every mutant is rejected, by the check that the list names; every correct twin passes.

use straightflow_conformance::check::{CHECKS, first_rejection};
use straightflow_conformance::mutants::{Mutant, mutants};

fn each(test: impl Fn(&Mutant) -> Option<String> + Sync) {
    let mutants = mutants();
    let lines: Vec<String> = mutants.iter().filter_map(test).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

#[test]
fn mutants_are_rejected_by_the_check_that_is_listed() {
    each(|mutant| match first_rejection(&mutant.subject) {
        None => Some(format!("{} survives", mutant.name)),
        Some(failure) if failure.check != mutant.rejected_by => Some(format!(
            "{} is rejected by another check than `{}`: {failure}",
            mutant.name, mutant.rejected_by
        )),
        Some(_) => None,
    });
}

#[test]
fn correct_twins_pass() {
    let mut seen: Vec<String> = Vec::new();
    for mutant in mutants() {
        // Mutants of one estimator share their twin.
        if seen.contains(&mutant.twin.spec) {
            continue;
        }
        let failure = first_rejection(&mutant.twin);
        assert!(failure.is_none(), "{}", failure.expect("a failure"));
        seen.push(mutant.twin.spec.clone());
    }
    assert_eq!(
        seen.len(),
        16,
        "one correct estimator in each file: {seen:?}"
    );
}

/// A check that no mutant needs might as well accept everything.
#[test]
fn every_check_rejects_a_mutant() {
    let mutants = mutants();
    for check in CHECKS {
        let needed = mutants
            .iter()
            .any(|mutant| mutant.rejected_by == check.name);
        assert!(needed, "no mutant needs `{}`", check.name);
    }
}

#[test]
fn mutants_name_known_checks_and_are_told_apart() {
    let mutants = mutants();
    for (index, mutant) in mutants.iter().enumerate() {
        assert!(CHECKS.iter().any(|check| check.name == mutant.rejected_by));
        assert_ne!(mutant.subject.spec, mutant.twin.spec);
        let before = &mutants[..index];
        assert!(before.iter().all(|other| other.name != mutant.name));
    }
}
