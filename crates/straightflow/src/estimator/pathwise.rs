//! Samples on the tape: the family of estimators that differentiate the cost at the samples.

use burn::tensor::Tensor;

use super::estimate::{Estimator, Outcome};
use super::noise::Noise;
use crate::Key;
use crate::distribution::{Canonical, Distribution, Law};
use crate::error::Result;
use crate::objective::CountedObjective;

/// An estimator that is a rule from (parameters, z, df/dz) to the gradient of the parameters, so
/// that its samples can stand on the tape of an existing model.
pub trait Pathwise: Estimator {
    /// Samples `[n, batch, d, k]` on the tape of the law's parameters.
    fn attach(&self, noise: &Noise, law: &Law) -> Tensor<4>;
}

/// The outcome of every pathwise estimator: the mean cost of the samples on the tape.
///
/// # Errors
///
/// If the cost has the wrong shape or is not finite.
pub fn pathwise_outcome(
    estimator: &(impl Pathwise + ?Sized),
    noise: &Noise,
    law: &Law,
    objective: &CountedObjective,
) -> Result<Outcome> {
    let z = estimator.attach(noise, law);
    let cost = objective.evaluate(z.clone(), law)?;
    Ok(Outcome {
        values: cost.clone().inner(),
        surrogate: cost.mean(),
        samples: z.inner(),
    })
}

/// The drop-in: an existing model changes the line that samples, and its loss stays as it was.
pub trait PathwiseExt: Pathwise {
    /// One sample of each variable, of the shape of the parameters (`[batch, d]`), on their tape.
    ///
    /// Its gradient is, bit for bit, that of [`estimate`](super::EstimatorExt::estimate) with one
    /// draw and the same key.
    ///
    /// # Errors
    ///
    /// If the family is not supported or a parameter is not finite.
    fn draw<D: Distribution>(&self, key: Key, q: &D) -> Result<D::Parameters> {
        let z = attach(self, key, q, 1)?;
        Ok(D::Parameters::from_canonical(z.squeeze_dim(0)))
    }

    /// `n` samples `[n, batch, d]` on the tape of the parameters.
    ///
    /// # Errors
    ///
    /// As [`draw`](Self::draw).
    fn sample<D: Distribution>(&self, key: Key, q: &D, n: usize) -> Result<D::Samples> {
        attach(self, key, q, n).map(D::Samples::from_canonical)
    }
}

impl<E: Pathwise + ?Sized> PathwiseExt for E {}

fn attach<E: Pathwise + ?Sized, D: Distribution>(
    estimator: &E,
    key: Key,
    q: &D,
    n: usize,
) -> Result<Tensor<4>> {
    estimator.check(q.law())?;
    let specs = estimator.noise(q.law(), n);
    let noise = Noise::draw(key, q.law(), &specs);
    Ok(estimator.attach(&noise, q.law()))
}
