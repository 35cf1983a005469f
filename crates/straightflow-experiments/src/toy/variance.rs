//! The variance of one estimate at a fair bit.

use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{Bernoulli, Distribution};
use straightflow::estimator::{Estimator, EstimatorExt};

use super::training::{bits, cost, keys};
use super::{Stop, ToyConfig};
use crate::host::to_host;
use crate::learner::Learner;

/// Batch elements of one call: with the intermediate results of an estimate they are some ten
/// megabytes.
const CALL: usize = 10_000;
/// Relative to the square of the cost, a variance that is nothing but rounding.
const ROUNDING: f64 = 1e-28;

/// The law of one estimate of the gradient of `E (z - p0)^2` with respect to the logit, at `p =
/// 1/2`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variance {
    /// The exact gradient, `(1 - 2 p0) / 4`.
    pub exact: f64,
    /// The mean of the estimates.
    pub mean: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
    /// The natural logarithm of the variance of one estimate; none if it has no variance.
    pub log_variance: Option<f64>,
}

/// Trains what the estimator learns, with the logit frozen, then draws many estimates.
pub(super) fn measure(
    config: &ToyConfig,
    estimator: &dyn Estimator,
    stop: &Stop,
) -> Result<Option<Variance>> {
    let p0 = config.variance.p0;
    let [_, _, key] = keys(config);
    let [initial, training, draws] = key.split();
    let q = Bernoulli::from_logits(bits(1).logits())?;
    let mut learner = Learner::new(estimator, initial, q.law(), config.state_learning_rate);
    if let Some(learner) = &mut learner {
        let cost = cost(&[p0]);
        for step in 0..config.variance.steps as u64 {
            if stop() {
                return Ok(None);
            }
            let bound = learner.bind(estimator.at_step(step)?.as_ref())?;
            let q = Bernoulli::<2>::from_law(q.law().leaf());
            let estimate = bound.estimate(training.child(step), &q, &cost)?;
            let mut gradients = estimate.surrogate.backward();
            learner.learn(&mut gradients, &estimate);
        }
    }
    let estimator = match &learner {
        Some(learner) => learner.bind(estimator)?,
        None => estimator.at_step(0)?,
    };
    let count = config.variance.replicates;
    let mut gradients = Vec::with_capacity(count);
    while gradients.len() < count {
        if stop() {
            return Ok(None);
        }
        let batch = CALL.min(count - gradients.len());
        let q = Bernoulli::from_logits(bits(batch).logits())?;
        let key = draws.child(gradients.len() as u64);
        // The cost is minimised: its sign is turned back.
        let part = estimator.gradient(key, &q, cost(&vec![p0; batch]))?;
        gradients.extend(to_host(-part));
    }
    let mean = gradients.iter().sum::<f64>() / count as f64;
    let squares = gradients.iter().map(|g| (g - mean).powi(2)).sum::<f64>();
    let variance = squares / (count as f64 - 1.0);
    Ok(Some(Variance {
        exact: (1.0 - 2.0 * p0) / 4.0,
        mean,
        standard_error: (variance / count as f64).sqrt(),
        log_variance: (variance > ROUNDING * p0.powi(4)).then(|| variance.ln()),
    }))
}
