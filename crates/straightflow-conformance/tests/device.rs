//! Every method and family on a device of WebGPU, in single precision: the checks of the suite that do not
//! need double precision, and a comparison with the CPU backend number by number.
//!
//! `STRAIGHTFLOW_DEVICE=flex` compares the CPU backend with itself, which has to pass as well.

use burn::tensor::{DType, Device, Tensor};
use libtest_mimic::{Arguments, Failed, Trial};
use straightflow::Key;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Entry, Estimator, Noise, REGISTRY};
use straightflow_conformance::check::CHECKS;
use straightflow_conformance::device::{choose, device, tensor_on};
use straightflow_conformance::gradients::{Cost, error, gradient_from_noise, to_vec};
use straightflow_conformance::problem::problems;
use straightflow_conformance::product::Product;
use straightflow_conformance::subject::{Subject, of_entry};

/// The checks that hold in single precision. The others enumerate noise in double precision; for them there
/// is the comparison.
const SINGLE: [&str; 7] = [
    "spec",
    "errors",
    "cost",
    "batch",
    "drop-in",
    "extremes",
    "determinism",
];

/// WebGPU allows `exp` an error of `3 + 2 |x|` units in the last place, and `log` one of three; the CPU's are
/// within one. Arguments of these problems are below 6 in size, so a device may be off by 16 times as much.
const WORSE: f64 = 16.0;
/// Batch elements, each with noise of its own.
const BATCH: usize = 16;

fn main() {
    let chosen = match std::env::var("STRAIGHTFLOW_DEVICE").as_deref() {
        Ok("flex") => Device::flex(),
        _ => Device::wgpu(burn::tensor::DeviceKind::DefaultDevice),
    };
    choose(chosen);
    let mut arguments = Arguments::from_args();
    // The device is one, and so are the kernels that it compiles.
    arguments.test_threads.get_or_insert(1);
    let trials = REGISTRY.iter().flat_map(|entry| of_method(entry)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}

fn of_method(entry: &'static Entry) -> Vec<Trial> {
    let mut trials = Vec::new();
    for check in CHECKS.iter().filter(|check| SINGLE.contains(&check.name)) {
        let families: Vec<Option<FamilyKind>> = match check.per_family {
            true => entry.families.iter().copied().map(Some).collect(),
            false => vec![None],
        };
        for family in families {
            let run = move |subject: &Subject| match (check.run)(subject) {
                Ok(()) => Ok(()),
                Err(failure) => Err(failure.to_string()),
            };
            trials.push(trial(entry, family, check.name, run));
        }
    }
    for kind in entry.families.iter().copied() {
        let run = move |subject: &Subject| agreement(subject, kind);
        trials.push(trial(entry, Some(kind), "agreement", run));
    }
    trials
}

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
        let failures: Vec<String> = subjects.filter_map(|subject| run(&subject).err()).collect();
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Failed::from(failures.join("\n"))),
        }
    })
}

/// The gradients of one variable and of three, from the noise of one key.
fn agreement(subject: &Subject, kind: FamilyKind) -> Result<(), String> {
    let families = subject.families().map_err(|failure| failure.to_string())?;
    if !families.contains(&kind) {
        return Ok(());
    }
    for problem in problems(kind) {
        let cost = |z| problem.objective.cost(z);
        let law = problem.law_of(BATCH, DType::F32);
        compare(subject, &law, &cost).map_err(|found| format!("{problem}: {found}"))?;
    }
    let product = Product::of(kind);
    let cost = |z| product.cost(z);
    let law = product.law(BATCH, DType::F32);
    compare(subject, &law, &cost).map_err(|found| format!("{product}: {found}"))
}

fn compare(subject: &Subject, law: &Law, cost: Cost<'_>) -> Result<(), String> {
    let estimator = subject.estimator();
    let specs = estimator.noise(law, estimator.draws());
    let draw = |law: &Law| -> Vec<Tensor<4>> {
        let noise = Noise::draw(Key::new(8), law, &specs);
        (0..specs.len()).map(|i| noise.get(i)).collect()
    };
    let here = (Device::flex(), DType::F32);
    let ours: Vec<(Vec<f64>, [usize; 4])> = draw(&moved(law, &here))
        .into_iter()
        .map(|noise| (to_vec(noise.clone()), noise.dims()))
        .collect();
    // The same key gives the same bits; functions of them are rounded.
    for (index, (noise, (expected, _))) in draw(law).into_iter().zip(&ours).enumerate() {
        let gap = error(&to_vec(noise), expected);
        if gap > WORSE * f64::from(f32::EPSILON) {
            let spec = &subject.spec;
            return Err(format!("{spec}: noise {index} differs by {gap:.1e}"));
        }
    }
    let gradient = |to: &(Device, DType)| -> Result<Vec<f64>, String> {
        let noise = ours
            .iter()
            .map(|(values, shape)| tensor_on(&to.0, values.clone(), *shape, to.1));
        let estimator: Box<dyn Estimator> = subject.estimator();
        gradient_from_noise(estimator.as_ref(), noise.collect(), &moved(law, to), cost)
            .map_err(|error| error.to_string())
    };
    let exact = gradient(&(Device::flex(), DType::F64))?;
    let rounding = error(&gradient(&here)?, &exact) + f64::from(f32::EPSILON);
    let gap = error(&gradient(&(device(), DType::F32))?, &exact);
    match gap <= WORSE * rounding {
        true => Ok(()),
        false => Err(format!(
            "{}: the gradient differs from double precision by {gap:.1e}, and the CPU's by {rounding:.1e}",
            subject.spec
        )),
    }
}

/// A law on another device, with numbers of another type.
fn moved(law: &Law, (device, dtype): &(Device, DType)) -> Law {
    let natural = law.natural();
    let dims = natural.dims();
    let natural = tensor_on(device, to_vec(natural), dims, *dtype);
    Law::new(law.family(), natural).expect("valid parameters")
}
