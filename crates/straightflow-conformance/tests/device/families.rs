//! Every family: the same samples from the same key, and the functions of its law.

use burn::tensor::{DType, Tensor};
use libtest_mimic::Trial;
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::{Error, Key};
use straightflow_conformance::gradients::{error, to_vec};

use crate::passed;
use crate::places::{Place, compare, same};

/// Batch elements, and draws for each.
const BATCH: usize = 16;
const DRAWS: usize = 8;

/// Three tests for each family.
pub fn trials() -> Vec<Trial> {
    let trials = FamilyKind::ALL.iter().flat_map(|kind| {
        let test = |what: &str, run: fn(&Law) -> Result<(), String>| {
            Trial::test(format!("family::{kind}::{what}"), move || {
                let laws = kind.examples().into_iter().map(spread);
                passed(laws.filter_map(|law| run(&law).err()))
            })
        };
        let tests: [(&str, fn(&Law) -> Result<(), String>); 3] = [
            ("samples", samples),
            ("law", law),
            ("double-precision", double_precision),
        ];
        tests.map(|(what, run)| test(what, run))
    });
    trials.collect()
}

/// The law of a family with parameters around given ones, in single precision on the CPU.
fn spread((family, natural): (Family, Vec<f64>)) -> Law {
    let k = natural.len();
    let near = |i: usize| natural[i % k] + 0.3 * (1.9 * i as f64).sin();
    let natural = (0..BATCH * k).map(near).collect();
    let natural = Place::cpu(DType::F32).tensor(natural, [BATCH, 1, k]);
    Law::new(family, natural).expect("valid parameters")
}

fn samples(law: &Law) -> Result<(), String> {
    let key = Key::new(3);
    let draw = |law: &Law| to_vec(law.sample(key, DRAWS));
    let (cpu, device) = (draw(law), draw(&Place::device().law(law)));
    same(format!("samples of {:?}", law.family()), &cpu, &device)
}

/// In double precision a law is right, or refused with the error that says so.
fn double_precision(law: &Law) -> Result<(), String> {
    let device = Place {
        dtype: DType::F64,
        ..Place::device()
    };
    if !device.device.supports_dtype(DType::F64) {
        return Ok(());
    }
    let mean = |place: &Place| {
        let natural = place.copy(law.natural());
        Law::new(law.family(), natural).map(|law| to_vec(law.mean()))
    };
    let want = mean(&Place::cpu(DType::F64)).map_err(|error| error.to_string())?;
    match mean(&device) {
        Ok(got) if error(&got, &want) < 1e-12 => Ok(()),
        Err(Error::DoublePrecision) => Ok(()),
        other => Err(format!("means {other:?}, on the CPU {want:?}")),
    }
}

/// What is computed of a law and samples of it.
type Function = fn(&Law, Tensor<4>) -> straightflow::Result<Vec<f64>>;

const FUNCTIONS: &[(&str, Function)] = &[
    ("mean", |law, _| Ok(to_vec(law.mean()))),
    ("variance", |law, _| Ok(to_vec(law.variance()))),
    ("chain factor", |law, _| Ok(to_vec(law.chain_factor()))),
    ("log probability", |law, z| Ok(to_vec(law.log_prob(z)))),
    ("score", |law, z| Ok(to_vec(law.score(z)))),
    ("entropy", |law, _| law.entropy().map(to_vec)),
    ("divergence", |law, _| {
        let other = Law::new(law.family(), law.natural() * 0.9)?;
        law.kl(&other).map(to_vec)
    }),
];

fn law(law: &Law) -> Result<(), String> {
    let z = law.sample(Key::new(3), DRAWS);
    for (name, function) in FUNCTIONS {
        // A function that a family does not have is missing on every device.
        if let Err(cpu) = function(law, z.clone()) {
            let place = Place::device();
            match function(&place.law(law), place.copy(z.clone())) {
                Err(device) if device.to_string() == cpu.to_string() => continue,
                other => return Err(format!("{name}: {other:?}, on the CPU {cpu}")),
            }
        }
        compare(format!("{name} of {:?}", law.family()), |place| {
            function(&place.law(law), place.copy(z.clone())).map_err(|error| error.to_string())
        })?;
    }
    Ok(())
}
