//! The noise and the gradients of a method, compared with those of the CPU.

use burn::tensor::{DType, Tensor};
use straightflow::Key;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::Noise;
use straightflow_conformance::gradients::{Cost, error, gradient_from_noise, to_vec};
use straightflow_conformance::problem::problems;
use straightflow_conformance::product::Product;
use straightflow_conformance::stack::{FAMILIES, Stack};
use straightflow_conformance::subject::Subject;

use crate::places::{Place, WORSE, compare, same};

/// Batch elements, each with noise of its own.
const BATCH: usize = 16;

/// Three variables and two layers for every specification of a method, and one variable for the first.
pub fn agreement(subject: &Subject, kind: FamilyKind) -> Result<(), String> {
    let families = subject.families().map_err(|failure| failure.to_string())?;
    if !families.contains(&kind) {
        return Ok(());
    }
    let is_default = subject.spec == subject.entry().id;
    for problem in problems(kind).into_iter().filter(|_| is_default) {
        let cost = |z| problem.objective.cost(z);
        let law = problem.law_of(BATCH, DType::F32);
        of_law(subject, &law, &cost).map_err(|found| format!("{problem}: {found}"))?;
    }
    let product = Product::of(kind);
    let cost = |z| product.cost(z);
    let law = product.law(BATCH, DType::F32);
    let rounding = of_law(subject, &law, &cost).map_err(|found| format!("{product}: {found}"))?;
    let stack = FAMILIES.iter().find(|(family, ..)| *family == kind);
    stack.map_or(Ok(()), |(_, family, k)| {
        let kind = subject.entry().objective;
        of_layers(subject, rounding, |place| {
            Stack::on(&place.device, *family, *k, kind, BATCH, place.dtype)
        })
    })
}

/// The same noise from the same key, and the gradient from that noise. Gives the rounding of the CPU.
fn of_law(subject: &Subject, law: &Law, cost: Cost<'_>) -> Result<f64, String> {
    let spec = &subject.spec;
    let estimator = subject.estimator();
    let specs = estimator.noise(law, estimator.draws());
    let draw = |place: Place| -> Vec<Tensor<4>> {
        let noise = Noise::draw(Key::new(8), &place.law(law), &specs);
        (0..specs.len()).map(|i| noise.get(i)).collect()
    };
    let noise = draw(Place::cpu(DType::F32));
    for (index, (cpu, device)) in noise.iter().zip(draw(Place::device())).enumerate() {
        let what = format!("{spec}: noise {index}");
        same(what, &to_vec(cpu.clone()), &to_vec(device))?;
    }
    compare(format!("{spec}: gradient"), |place| {
        let noise = noise.iter().map(|noise| place.copy(noise.clone()));
        let estimator = subject.estimator();
        gradient_from_noise(estimator.as_ref(), noise.collect(), &place.law(law), cost)
            .map_err(|error| error.to_string())
    })
}

/// Two layers from one key. Noise of double precision would be other noise, so the device is compared with
/// the CPU's single precision, and both may be off. There are twice as many steps as in the problem of
/// three variables, whose rounding is given.
fn of_layers(
    subject: &Subject,
    rounding: f64,
    stack: impl Fn(&Place) -> Stack,
) -> Result<(), String> {
    use straightflow::Error;
    let gradients = |place: Place| -> straightflow::Result<Vec<f64>> {
        let stack = stack(&place);
        let estimate = stack.estimate(subject.estimator().as_ref(), Key::new(9))?;
        Ok(stack.gradients(&estimate).concat())
    };
    let spec = &subject.spec;
    match (
        gradients(Place::cpu(DType::F32)),
        gradients(Place::device()),
    ) {
        (Ok(cpu), Ok(device)) => {
            let (gap, most) = (error(&device, &cpu), 2.0 * (WORSE + 1.0) * rounding);
            match gap <= most {
                true => Ok(()),
                false => Err(format!(
                    "{spec}: gradients of two layers differ by {gap:.1e}, at most {most:.1e}"
                )),
            }
        }
        (Err(Error::UnsupportedLayers { .. }), Err(Error::UnsupportedLayers { .. })) => Ok(()),
        (cpu, device) => Err(format!(
            "{spec}: two layers: {:?}, on the CPU {:?}",
            device.err(),
            cpu.err()
        )),
    }
}
