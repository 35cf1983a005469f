//! Samples on the tape: the family of estimators that differentiate the cost at the samples.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::noise::Noise;
use super::run::{Estimator, Outcome};
use crate::distribution::Law;
use crate::error::Result;
use crate::estimate::objective::CountedObjective;

/// How a loss combines the costs of draws and batch elements. A rule that is linear in the
/// incoming gradient does not need to know; one with a step of fixed size does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// The loss is the mean over draws and batch elements.
    #[default]
    Mean,
    /// The loss is their sum.
    Sum,
}

impl Reduction {
    /// The factor that the loss puts on the cost of each draw and batch element.
    pub fn factor(self, n: usize, batch: usize) -> f64 {
        match self {
            Self::Mean => 1.0 / (n * batch) as f64,
            Self::Sum => 1.0,
        }
    }
}

/// An estimator that is a rule from (parameters, z, df/dz) to the gradient of the parameters, so
/// that its samples can stand on the tape of an existing model.
pub trait Pathwise: Estimator {
    /// Samples `[n, batch, d, k]` on the tape of the law's parameters, for a loss of the given
    /// reduction.
    fn attach(&self, noise: &Noise, law: &Law, reduction: Reduction) -> Tensor<4>;

    /// The reduction of the loss behind the drop-in [`draw`](super::EstimatorExt::draw) and
    /// [`sample`](super::EstimatorExt::sample). Only rules with a step of fixed size let it be
    /// chosen.
    fn loss_reduction(&self) -> Reduction {
        Reduction::Mean
    }
}

/// The outcome of every pathwise estimator: the mean cost of the samples on the tape.
///
/// # Errors
///
/// If the cost has the wrong shape, is not finite, or is on no tape although the samples are.
pub fn pathwise_outcome(
    estimator: &(impl Pathwise + ?Sized),
    noise: &Noise,
    law: &Law,
    objective: &CountedObjective,
) -> Result<Outcome> {
    // The surrogate is a mean, whatever the drop-in's loss is.
    let z = estimator.attach(noise, law, Reduction::Mean);
    let cost = objective.evaluate_attached(std::slice::from_ref(&z), std::slice::from_ref(law))?;
    Ok(Outcome::with_surrogate(cost.clone(), cost.mean(), vec![z]))
}
