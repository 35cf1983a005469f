//! Monte Carlo: many independent estimates against the exact gradient.

use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};
use straightflow::compare::{self, Learner, Moments, replicate};
use straightflow::estimator::{Estimator, EstimatorExt};
use straightflow::exact::Exact;
use straightflow::{Key, Result};

use super::objective::Objective;
use super::problem::Problem;
use crate::host::to_host;

/// Random numbers and samples of one call.
const NUMBERS: usize = 200_000;
/// The batch that learned state is trained on; its elements are equal.
const TRAINING_BATCH: usize = 32;

/// What is known exactly about a cell.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    /// The gradient of `E f`, with respect to the means of an ordered family or the logits of a
    /// categorical one.
    pub gradient: Vec<f64>,
    /// The largest norm of a gradient that a cost with this variance can have:
    /// `sd(f) (E |score|^2)^(1/2)`, by Cauchy and Schwarz.
    pub scale: f64,
}

impl Truth {
    pub(super) fn new(problem: &Problem, objective: &Objective) -> Result<Self> {
        let q = problem.law(1);
        let exact = Exact::default();
        let gradient = exact.gradient(&q, |z| objective.cost(problem, z))?;
        let gradient = in_mean_coordinates(problem, to_host(gradient));
        let moment = |f: &dyn Fn(Tensor<4>) -> Tensor<2>| -> Result<f64> {
            let expectation = exact.expectation(&q, f)?;
            Ok(to_host(expectation.value)[0])
        };
        let mean = moment(&|z| objective.cost(problem, z))?;
        let variance = moment(&|z| (objective.cost(problem, z) - mean).square())?;
        let chain = problem.chain();
        let information = moment(&|z| {
            let mut score = q.score(z);
            if let Some(chain) = &chain {
                let chain = chain
                    .iter()
                    .map(|factor| factor.recip())
                    .collect::<Vec<f64>>();
                let chain = TensorData::new(chain, [1, 1, problem.means.len(), 1]);
                let options = (&score.device(), score.dtype());
                score = score * Tensor::<4>::from_data(chain, options);
            }
            score.square().sum_dims(&[2, 3]).squeeze_dims(&[2, 3])
        })?;
        Ok(Self {
            gradient,
            scale: (variance * information).sqrt(),
        })
    }

    /// The norm of the gradient.
    pub(super) fn norm(&self) -> f64 {
        norm(&self.gradient)
    }
}

/// Divides gradients with respect to natural parameters, one after the other, by the chain factor.
fn in_mean_coordinates(problem: &Problem, mut natural: Vec<f64>) -> Vec<f64> {
    if let Some(chain) = problem.chain() {
        for (g, factor) in natural.iter_mut().zip(chain.iter().cycle()) {
            *g /= factor;
        }
    }
    natural
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// An estimator with a number of draws on one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The draws of one estimate.
    pub draws: usize,
    /// The evaluations of the cost that one estimate takes.
    pub evaluations: usize,
    /// The backward passes through the cost that one estimate takes.
    pub gradients: usize,
    /// The independent estimates behind the numbers below.
    pub replicates: usize,
    /// The mean estimate less the exact gradient; the norm of that if there are several
    /// coordinates.
    pub bias: f64,
    /// The standard error of the bias.
    pub bias_error: f64,
    /// The standard deviation of one estimate: the root of the trace of the covariance.
    pub std: f64,
    /// The standard error of that.
    pub std_error: f64,
    /// The root of the mean squared distance from the exact gradient.
    pub rmse: f64,
    /// The standard error of that.
    pub rmse_error: f64,
    /// The mean estimate along the exact gradient, relative to that: 1 is right, below 0 is uphill.
    /// None if the exact gradient is zero.
    pub slope: Option<f64>,
}

/// What learned state is trained with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Training {
    pub key: Key,
    pub steps: usize,
    pub learning_rate: f64,
}

/// Whether an estimator has state.
pub(super) fn learns(estimator: &dyn Estimator, problem: &Problem) -> bool {
    // The key and the rate do not matter: nothing is trained.
    Learner::new(estimator, Key::new(0), &problem.law(1), 1.0).is_some()
}

/// The state of an estimator, trained on a cell; `None` if it has none.
pub(super) fn trained(
    estimator: &dyn Estimator,
    problem: &Problem,
    objective: &Objective,
    Training {
        key,
        steps,
        learning_rate,
    }: Training,
) -> Result<Option<Learner>> {
    let law = problem.law(TRAINING_BATCH);
    let cost = |z| objective.cost(problem, z);
    compare::trained(key, estimator, &law, cost, steps, learning_rate)
}

/// Draws estimates and compares them with the truth.
pub(super) fn measure(
    estimator: &dyn Estimator,
    learner: Option<&Learner>,
    problem: &Problem,
    objective: &Objective,
    truth: &Truth,
    key: Key,
    replicates: usize,
) -> Result<Measurement> {
    let one = problem.law(1);
    let draws = estimator.draws();
    let price = estimator.price(&one, draws);
    let noise = estimator.noise(&one, draws);
    let noise: usize = noise
        .iter()
        .map(|spec| spec.shape.iter().product::<usize>())
        .sum();
    // Without noise every estimate is the same.
    let replicates = if noise == 0 { 2 } else { replicates };
    let samples = price.evaluations * problem.means.len();
    let most = (NUMBERS / (noise + samples)).max(1);

    let bound = match learner {
        Some(learner) => learner.bind(estimator)?,
        None => estimator.at_step(0)?,
    };
    let estimates = replicate(key, replicates, most, |key, count| {
        let q = problem.law(count);
        let part = bound.gradient(key, &q, |z| objective.cost(problem, z))?;
        Ok(in_mean_coordinates(problem, to_host(part)))
    })?;
    let moments = Moments::of(&estimates, &truth.gradient);
    Ok(Measurement {
        draws,
        evaluations: price.evaluations,
        gradients: price.gradients,
        replicates,
        bias: moments.bias,
        bias_error: moments.std / (replicates as f64).sqrt(),
        std: moments.std,
        std_error: moments.std_error,
        rmse: moments.rmse,
        rmse_error: moments.rmse_error,
        slope: moments.slope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_reached_by_a_linear_cost_and_by_no_other() {
        for problem in super::super::problem::PROBLEMS {
            for objective in super::super::objective::objectives(problem) {
                let truth = Truth::new(problem, objective).expect("a finite problem");
                let ratio = truth.norm() / truth.scale;
                assert!(ratio < 1.0 + 1e-9, "{} {}", problem.id, objective.id);
                let reached = objective.id == "linear" && problem.chain().is_some();
                assert!(!reached || ratio > 1.0 - 1e-9, "{} {ratio}", problem.id);
            }
        }
    }
}
