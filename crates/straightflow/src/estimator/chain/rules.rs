//! The rules for chains that several estimators share.

use burn::tensor::Tensor;

use super::{ChainNoise, ChainOutcome, Conditional, CountedChain, Pass};
use crate::distribution::Law;
use crate::error::{Error, Result};
use crate::estimator::estimate::Estimator;
use crate::estimator::pathwise::{Pathwise, Reduction};
use crate::ops::gradient_only;

/// Pathwise: each layer's samples are on the tape of its law, whose parameters are on the tape of the
/// samples below.
pub(in crate::estimator) fn on_tape(
    estimator: &dyn Pathwise,
    noise: &ChainNoise,
    chain: &CountedChain,
) -> Result<ChainOutcome> {
    if estimator.least_samples() > 1 {
        // Every draw has laws of its own above the lowest layer.
        return Err(Error::UnsupportedChain {
            estimator: estimator.entry().id,
            because: ", because it needs several draws of one law",
        });
    }
    let pass = Pass::new(estimator, estimator.samples(), chain, |law, n| {
        let noise = noise.next(law, &estimator.noise(law, n))?;
        Ok(estimator.attach(&noise, law, Reduction::Mean))
    })?;
    let cost = chain.evaluate(&pass.z, &pass.laws)?;
    Ok(ChainOutcome {
        values: cost.clone().inner(),
        surrogate: cost.mean(),
        samples: pass.z.into_iter().map(Tensor::inner).collect(),
        lessons: Vec::new(),
    })
}

/// One layer after the other: the estimator sees the cost as a function of one layer, given one draw of
/// the layers below, with independent draws of those above for each evaluation. Every layer has an
/// unbiased estimate if the estimator is unbiased, because it then is so for a noisy cost too.
///
/// The evaluations of the lowest layer are on the model's tape.
pub(in crate::estimator) fn layerwise<E: Estimator + ?Sized>(
    estimator: &E,
    noise: &ChainNoise,
    chain: &CountedChain,
) -> Result<ChainOutcome> {
    let redraw = |_: usize, law: &Law| noise.hard(&law.constant());
    let mut below: Vec<Tensor<4>> = Vec::new();
    let mut first: Option<Law> = None;
    let mut total: Option<ChainOutcome> = None;
    for layer in 0..chain.layers() {
        let law = chain.layer(&below)?;
        let n = estimator.samples();
        estimator.check(&law, n)?;
        let first = first.get_or_insert_with(|| law.clone());
        let draws = noise.next(&law, &estimator.noise(&law, n))?;
        let conditional = Conditional::new(chain, &below, first, &redraw, layer == 0);
        let objective = conditional.counted();
        let outcome = match estimator.at_layer(layer) {
            Some(own) => own.outcome(&draws, &law, &objective)?,
            None => estimator.outcome(&draws, &law, &objective)?,
        };
        total = Some(match total {
            None => ChainOutcome {
                values: outcome.values,
                surrogate: outcome.surrogate,
                samples: conditional.seen(),
                lessons: outcome.lesson.into_iter().collect(),
            },
            Some(total) => ChainOutcome {
                surrogate: total.surrogate + gradient_only(outcome.surrogate),
                lessons: total.lessons.into_iter().chain(outcome.lesson).collect(),
                ..total
            },
        });
        if layer + 1 < chain.layers() {
            let z = noise.hard(&law.constant())?;
            below.push(z);
        }
    }
    total.ok_or(Error::EmptyChain)
}
