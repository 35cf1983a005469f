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

/// The checks that hold in single precision. The others need double precision or many draws; for them there
/// is the comparison with the CPU, which has passed them.
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
        let run = move |subject: &Subject| (check.run)(subject).map_err(|found| found.to_string());
        match check.per_family {
            true => trials.extend(families().map(|kind| trial(entry, Some(kind), check.name, run))),
            false => trials.push(trial(entry, None, check.name, run)),
        }
    }
    trials.extend(families().map(|kind| {
        let run = move |subject: &Subject| agreement::agreement(subject, kind);
        trial(entry, Some(kind), "agreement", run)
    }));
    trials
}

/// One test for all specifications of a method.
fn trial(
    entry: &'static Entry,
    family: Option<FamilyKind>,
    check: &str,
    run: impl Fn(&Subject) -> Result<(), String> + Send + 'static,
) -> Trial {
    let name = match family {
        Some(family) => format!("{}::{family}::{check}", entry.id),
        None => format!("{}::{check}", entry.id),
    };
    Trial::test(name, move || {
        let subjects = of_entry(entry).into_iter().map(|subject| match family {
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
