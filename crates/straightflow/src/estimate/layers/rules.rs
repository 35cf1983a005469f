//! The rules for layers that several estimators share.

use burn::tensor::Tensor;

use super::{Conditional, Pass};
use crate::distribution::Law;
use crate::error::{Error, Result};
use crate::estimate::noise::NoiseSource;
use crate::estimate::objective::CountedObjective;
use crate::estimate::pathwise::{Pathwise, Reduction};
use crate::estimate::run::{Estimator, Outcome};
use crate::ops::gradient_only;

/// A single layer: the estimator's rule for one variable.
pub(crate) fn single<E: Estimator + ?Sized>(
    estimator: &E,
    noise: &NoiseSource,
    objective: &CountedObjective,
) -> Result<Outcome> {
    let law = objective.layer(&[])?;
    let n = noise.draws(estimator);
    estimator.check(&law, n)?;
    let noise = noise.next(&law, &estimator.noise(&law, n))?;
    estimator.outcome(&noise, &law, objective)
}

/// Pathwise: each layer's samples are on the tape of its law, whose parameters are on the tape of
/// the samples below.
pub(crate) fn on_tape(
    estimator: &dyn Pathwise,
    noise: &NoiseSource,
    objective: &CountedObjective,
) -> Result<Outcome> {
    if estimator.least_samples() > 1 {
        // Every draw has laws of its own above the lowest layer.
        return Err(Error::UnsupportedLayers {
            estimator: estimator.entry().id,
            because: ", because it needs several draws of one law",
        });
    }
    let pass = Pass::new(estimator, noise, objective, |law, noise| {
        estimator.attach(&noise, law, Reduction::Mean)
    })?;
    let cost = objective.evaluate_attached(&pass.z, &pass.laws)?;
    Ok(pass.with_surrogate(cost.clone(), cost.mean()))
}

/// One layer after the other: the estimator sees the cost as a function of one layer, given one
/// draw of the layers below, with independent draws of those above for each evaluation. Every layer
/// has an unbiased estimate if the estimator is unbiased, because it then is so for a noisy cost
/// too.
///
/// The evaluations of the lowest layer are on the model's tape.
pub(crate) fn layerwise<E: Estimator + ?Sized>(
    estimator: &E,
    noise: &NoiseSource,
    objective: &CountedObjective,
) -> Result<Outcome> {
    let redraw = |_: usize, law: &Law| noise.hard(&law.constant());
    let n = noise.draws(estimator);
    let mut below: Vec<Tensor<4>> = Vec::new();
    let mut first: Option<Law> = None;
    let mut total: Option<Outcome> = None;
    for layer in 0..objective.layers() {
        let law = objective.layer(&below)?;
        estimator.check(&law, n)?;
        let first = first.get_or_insert_with(|| law.clone());
        let draws = noise.next(&law, &estimator.noise(&law, n))?;
        let conditional = Conditional::new(objective, &law, &below, first, &redraw, layer == 0);
        let of_layer = conditional.counted();
        let outcome = match estimator.at_layer(layer) {
            Some(own) => own.outcome(&draws, &law, &of_layer)?,
            None => estimator.outcome(&draws, &law, &of_layer)?,
        };
        total = Some(match total {
            None => Outcome {
                samples: conditional.seen(),
                ..outcome
            },
            Some(total) => Outcome {
                surrogate: total.surrogate + gradient_only(outcome.surrogate),
                lessons: [total.lessons, outcome.lessons].concat(),
                ..total
            },
        });
        if layer + 1 < objective.layers() {
            let z = noise.hard(&law.constant())?;
            below.push(z);
        }
    }
    total.ok_or(Error::EmptyChain)
}
