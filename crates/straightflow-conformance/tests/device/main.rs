//! Every method and family on a device of WebGPU, in single precision: the checks of the suite that do not
//! need double precision, and a comparison with the CPU backend number by number, from the same keys.
//!
//! `STRAIGHTFLOW_DEVICE=flex` compares the CPU backend with itself, which has to pass as well.

mod agreement;
mod families;
mod functions;
mod places;

use burn::tensor::{Device, DeviceKind};
use libtest_mimic::{Arguments, Failed, Trial};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Entry, REGISTRY};
use straightflow_conformance::check::CHECKS;
use straightflow_conformance::device::choose;
use straightflow_conformance::subject::{Subject, of_entry};

/// The checks that hold in single precision, made of a method as it comes. The others need double precision
/// or many draws; for them, and for options, there is the comparison with the CPU, which has passed them.
const SINGLE: [&str; 7] = [
    "spec",
    "errors",
    "cost",
    "batch",
    "drop-in",
    "extremes",
    "determinism",
];

fn main() {
    let chosen = match std::env::var("STRAIGHTFLOW_DEVICE").as_deref() {
        Ok("flex") => Device::flex(),
        _ => Device::wgpu(DeviceKind::DefaultDevice),
    };
    if let Some(found) = chosen.identity() {
        println!("device: {} ({})", found.name, found.fingerprint);
    }
    choose(chosen);
    let mut arguments = Arguments::from_args();
    // The device is one, and so are the kernels that it compiles.
    arguments.test_threads.get_or_insert(1);
    let mut trials = functions::trials();
    trials.extend(families::trials());
    trials.extend(REGISTRY.iter().flat_map(|entry| of_method(entry)));
    libtest_mimic::run(&arguments, trials).exit();
}

fn of_method(entry: &'static Entry) -> Vec<Trial> {
    let families = || entry.families.iter().chain(entry.also).copied();
    let mut trials = Vec::new();
    for check in CHECKS.iter().filter(|check| SINGLE.contains(&check.name)) {
        let trial = |family: Option<FamilyKind>| {
            test(entry, family, check.name, 1, |subject| {
                (check.run)(subject).map_err(|failure| failure.to_string())
            })
        };
        match check.per_family {
            true => trials.extend(families().map(Some).map(trial)),
            false => trials.push(trial(None)),
        }
    }
    let agreement = |kind: FamilyKind| {
        test(entry, Some(kind), "agreement", usize::MAX, move |subject| {
            agreement::agreement(subject, kind)
        })
    };
    trials.extend(families().map(agreement));
    trials
}

/// One test for the first specifications of a method.
fn test(
    entry: &'static Entry,
    family: Option<FamilyKind>,
    check: &str,
    specifications: usize,
    run: impl Fn(&Subject) -> Result<(), String> + Send + 'static,
) -> Trial {
    let name = match family {
        Some(family) => format!("{}::{family}::{check}", entry.id),
        None => format!("{}::{check}", entry.id),
    };
    Trial::test(name, move || {
        let subjects = of_entry(entry).into_iter().take(specifications);
        let subjects = subjects.map(|subject| match family {
            Some(family) => subject.of_family(family),
            None => subject,
        });
        passed(subjects.filter_map(|subject| run(&subject).err()))
    })
}

/// All failures, one in a line.
fn passed(failures: impl Iterator<Item = String>) -> Result<(), Failed> {
    let failures: Vec<String> = failures.collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failed::from(failures.join("\n"))),
    }
}
