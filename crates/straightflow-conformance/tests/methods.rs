//! Every method of the registry against every check: one test for each method, family and check, so
//! that `cargo test disarm` runs what concerns DisARM, and a failure names the family.

use libtest_mimic::{Arguments, Failed, Trial};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Entry, REGISTRY};
use straightflow_conformance::check::{CHECKS, Check};
use straightflow_conformance::subject::of_entry;

fn main() {
    let trials = REGISTRY.iter().flat_map(|entry| of_method(entry)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn of_method(entry: &'static Entry) -> Vec<Trial> {
    let mut trials = Vec::new();
    for check in CHECKS {
        if !check.per_family {
            let name = format!("{}::{}", entry.id, check.name);
            trials.push(Trial::test(name, move || passes(entry, *check, None)));
            continue;
        }
        for family in entry.families.iter().chain(entry.also) {
            let name = format!("{}::{family}::{}", entry.id, check.name);
            let test = move || passes(entry, *check, Some(*family));
            trials.push(Trial::test(name, test));
        }
    }
    trials
}

/// All specifications of a method.
fn passes(entry: &'static Entry, check: Check, family: Option<FamilyKind>) -> Result<(), Failed> {
    let failures = of_entry(entry).into_iter().filter_map(|subject| {
        let subject = match family {
            Some(family) => subject.of_family(family),
            None => subject,
        };
        (check.run)(&subject).err()
    });
    let lines: Vec<String> = failures.map(|failure| failure.to_string()).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => Err(lines.join("\n").into()),
    }
}
