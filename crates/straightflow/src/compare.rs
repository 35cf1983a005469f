//! What an estimator does on one's own model: bias, standard deviation, price and time of several
//! estimators, and which of them to use.
//!
//! The gradient is that of the mean cost of every batch element with respect to its natural
//! parameters, all elements together as one long vector. Its truth is found by enumeration where
//! the states are few, else it is the mean of many estimates of an unbiased method.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use straightflow::prelude::*;
//!
//! let q = Bernoulli::from_logits(Tensor::<2>::from_floats([[0.4, -1.0, 0.3]], &Device::flex()))?;
//! let cost = |z: Tensor<3>| (z.sum_dim(2) * 1.3 + 0.2).sin();
//! let budget = Budget::evaluations(8).with_replicates(200);
//! let table = compare(Key::new(1), &q, cost, ["straight-through", "disarm", "vimco"], budget)?;
//! println!("{table}");
//! assert_eq!(table.rows.len(), 3);
//! assert!(table.rows[2].result.is_err()); // it estimates a bound
//! let best = table.best.expect("one that works");
//! println!("{}: {}", table.rows[best].spec, table.reason);
//! # Ok::<(), Error>(())
//! ```

mod display;
mod draws;
mod moments;
mod training;

pub use draws::{affordable, smallest, takes};
pub use moments::{Moments, replicate};
pub use training::{Learner, trained};

use std::time::Instant;

use serde::Serialize;

use crate::Key;
use crate::distribution::{Distribution, Law, samples_of};
use crate::error::{Error, Result};
use crate::estimate::objective::{IntoCost, ObjectiveKind};
use crate::estimate::{Entry, Estimator, EstimatorExt, Need, Price, Spec};
use crate::exact::Exact;
use crate::method::find;
use crate::ops::to_host;
use moments::squared_bias;

/// What one estimate may take, and how well it is measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// Evaluations of the cost and backward passes through it, together, of one estimate. Each
    /// estimator takes as many draws as that buys.
    pub evaluations: usize,
    /// The independent estimates of each estimator.
    pub replicates: usize,
    /// The steps for which learned state is trained before; no budget counts them.
    pub training_steps: usize,
    /// The learning rate of that training, by Adam.
    pub learning_rate: f64,
    /// The largest number of states that are enumerated for the truth.
    pub states: usize,
    /// Without enumeration: the estimates of an unbiased method whose mean is the truth.
    pub reference: usize,
    /// The estimates over which the noise of a training averages out, for the recommendation: the
    /// steps that an optimiser remembers, say. A bias does not average out.
    pub horizon: usize,
    /// How many copies of the batch one call evaluates. More than 1 is for costs that treat all
    /// batch elements alike: it makes many replicates cheap.
    pub copies: usize,
}

impl Budget {
    /// So many evaluations of the cost and backward passes through it, together, for one estimate.
    pub fn evaluations(evaluations: usize) -> Self {
        Self {
            evaluations,
            replicates: 400,
            training_steps: 200,
            learning_rate: 0.01,
            states: 1 << 12,
            reference: 2_000,
            horizon: 1_000,
            copies: 1,
        }
    }

    /// The same with so many independent estimates of each estimator; the reference has five times
    /// as many.
    #[must_use]
    pub fn with_replicates(mut self, replicates: usize) -> Self {
        self.replicates = replicates;
        self.reference = 5 * replicates;
        self
    }

    /// The same with another training of learned state.
    #[must_use]
    pub fn with_training(mut self, steps: usize, learning_rate: f64) -> Self {
        self.training_steps = steps;
        self.learning_rate = learning_rate;
        self
    }

    /// The same with another number of estimates over which noise averages out.
    #[must_use]
    pub fn with_horizon(mut self, horizon: usize) -> Self {
        self.horizon = horizon;
        self
    }

    /// The same with so many copies of the batch in one call, for a cost that treats batch elements
    /// alike.
    #[must_use]
    pub fn with_copies(mut self, copies: usize) -> Self {
        self.copies = copies;
        self
    }

    fn check(&self) -> Result<()> {
        let least = [
            ("evaluations", self.evaluations, 1),
            ("replicates", self.replicates, LEAST),
            ("reference", self.reference, LEAST),
            ("horizon", self.horizon, 1),
            ("copies", self.copies, 1),
        ];
        for (name, got, least) in least {
            if got < least {
                return Err(Error::InvalidOption {
                    estimator: "compare",
                    message: format!("`{name}` must be at least {least}, got {got}"),
                });
            }
        }
        Ok(())
    }
}

/// The least number of replicates: a standard error needs some.
const LEAST: usize = 10;

/// Where the truth comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// All states were visited.
    Enumeration {
        /// How many there are.
        states: usize,
    },
    /// The mean of estimates of an unbiased method.
    Reference {
        /// The method.
        spec: Spec,
        /// The number of estimates.
        replicates: usize,
        /// The standard error of their mean, over all coordinates.
        error: f64,
    },
}

/// What was measured of one estimator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The norm of the expected estimate less the truth. It is corrected for the noise of both, and
    /// 0 if that leaves nothing.
    pub bias: f64,
    /// The standard error of the bias.
    pub bias_error: f64,
    /// The standard deviation of one estimate: the root of the trace of the covariance.
    pub std: f64,
    /// The root mean square error of one estimate, `(bias^2 + std^2)^(1/2)`.
    pub error: f64,
    /// The same of the mean of as many estimates as the horizon has.
    pub lasting: f64,
    /// The expected estimate along the truth, relative to it: 1 is right, below 0 is uphill.
    pub slope: f64,
    /// The wall time of one estimate with its backward pass, in seconds.
    pub seconds: f64,
}

/// An estimator of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The estimator, with the draws that the budget buys.
    pub spec: Spec,
    /// Whether it says that it has no bias.
    pub unbiased: bool,
    /// Whether its state was trained before, which no budget counts.
    pub trained: bool,
    /// Evaluations of the cost that one estimate takes.
    pub evaluations: usize,
    /// Backward passes through the cost that one estimate takes.
    pub gradients: usize,
    /// What was measured, or why it was not.
    pub result: std::result::Result<Measured, String>,
}

impl Row {
    /// Of options that do not fit.
    fn refused(spec: Spec, entry: &Entry, error: &Error) -> Self {
        Self {
            spec,
            unbiased: entry.bias.is_unbiased(),
            trained: false,
            evaluations: 0,
            gradients: 0,
            result: Err(error.to_string()),
        }
    }
}

/// The estimators of a list on one model. It prints as a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What one estimate may take.
    pub budget: Budget,
    /// Where the truth comes from.
    pub truth: Source,
    /// The norm of the gradient.
    pub norm: f64,
    /// One row for each specification, in the given order.
    pub rows: Vec<Row>,
    /// The row with the least lasting error.
    pub best: Option<usize>,
    /// The same among those that say that they have no bias.
    pub best_unbiased: Option<usize>,
    /// Why, in a sentence or two.
    pub reason: String,
}

/// Compares estimators on the gradient of `E f(z)` with respect to the natural parameters of `q`.
///
/// The cost maps samples `[n, batch, d]` (categorical: `[n, batch, d, k]`) to `[n, batch]` or
/// `[n, batch, 1]`, as for [`estimate`](crate::estimator::EstimatorExt::estimate). It is called and
/// differentiated many times over. So it must not use tensors that a network computed while recording
/// gradients, such as the features of an encoder: the first backward pass would consume what was
/// recorded, and the second would panic. Take such tensors off the tape before, by `features.inner()`
/// or by running the network as `model.valid()`. The weights of a network are no such tensors: a
/// cost that calls a decoder is fine.
///
/// State that is learned sees no conditioning input here.
///
/// # Errors
///
/// If a specification is malformed or names no method, the budget is out of its range, or the truth
/// cannot be computed. An estimator whose options do not fit, or that fails on the model, has a row
/// that says why.
pub fn compare<D, R, S>(
    key: Key,
    q: &D,
    cost: impl Fn(D::Samples) -> R,
    specs: impl IntoIterator<Item = S>,
    budget: Budget,
) -> Result<Comparison>
where
    D: Distribution,
    R: IntoCost,
    S: AsRef<str>,
{
    budget.check()?;
    let specs: Result<Vec<Spec>> = specs
        .into_iter()
        .map(|spec| spec.as_ref().parse())
        .collect();
    let entries: Result<Vec<(Spec, &Entry)>> = specs?
        .into_iter()
        .map(|spec| Ok((spec.clone(), find(spec.id())?)))
        .collect();
    let entries = entries?;
    let model = Model {
        law: q.law().constant(),
        cost: |z: burn::tensor::Tensor<4>| cost(samples_of::<D>(q.law(), z)),
        budget: &budget,
    };
    let [of_truth, of_rows] = key.split();
    let truth = model.truth(of_truth)?;
    let rows: Vec<Row> = (0..)
        .zip(entries)
        .map(|(i, (spec, entry))| match entry.build_spec(&spec) {
            Ok(method) => model.row(of_rows.child(i), &*method, &truth),
            Err(error) => Row::refused(spec, entry, &error),
        })
        .collect();
    let norm = moments::norm(&truth.gradient);
    let [best, best_unbiased] = [false, true].map(|unbiased| best(&rows, unbiased, norm));
    Ok(Comparison {
        reason: display::reason(&rows, [best, best_unbiased], norm, budget.horizon),
        truth: truth.source,
        budget,
        norm,
        rows,
        best,
        best_unbiased,
    })
}

/// Errors below this part of the gradient are rounding.
const ROUNDING: f64 = 1e-9;

/// The row with the least lasting error, and of equal ones the cheapest.
fn best(rows: &[Row], unbiased: bool, norm: f64) -> Option<usize> {
    let measured = rows.iter().enumerate().filter_map(|(i, row)| {
        let error = row.result.as_ref().ok()?.lasting.max(ROUNDING * norm);
        (row.unbiased || !unbiased).then_some((i, error, row.evaluations + row.gradients))
    });
    let better =
        |a: &(usize, f64, usize), b: &(usize, f64, usize)| a.1.total_cmp(&b.1).then(a.2.cmp(&b.2));
    measured.min_by(better).map(|(i, ..)| i)
}

/// The gradient that estimates are compared with.
struct Truth {
    source: Source,
    gradient: Vec<f64>,
    /// The estimates behind it; none if it is exact.
    estimates: Option<Vec<f64>>,
}

struct Model<'a, F> {
    law: Law,
    cost: F,
    budget: &'a Budget,
}

impl<F, R> Model<'_, F>
where
    F: Fn(burn::tensor::Tensor<4>) -> R,
    R: IntoCost,
{
    fn truth(&self, key: Key) -> Result<Truth> {
        let exact = Exact {
            limit: self.budget.states,
            ..Exact::default()
        };
        match exact.count(&self.law) {
            Ok(states) => Ok(Truth {
                source: Source::Enumeration { states },
                gradient: to_host(exact.gradient(&self.law, &self.cost)?),
                estimates: None,
            }),
            Err(Error::TooManyStates { .. }) => self.reference(key),
            Err(error) => Err(error),
        }
    }

    /// The mean of many unbiased estimates: of debiased straight-through, which has the least variance
    /// of those for all families, or of REINFORCE if the cost cannot be differentiated.
    fn reference(&self, key: Key) -> Result<Truth> {
        let candidates = ["debiased-st", "reinforce:baseline=loo,samples=4"];
        let mut last = None;
        for (i, spec) in (0u64..).zip(candidates) {
            let method = spec.parse::<Spec>()?.build()?;
            let (spec, replicates) = (method.spec(), self.budget.reference);
            match self.estimates(key.child(i), &*method, replicates) {
                Ok(drawn) => {
                    let moments = Moments::of(&drawn.estimates, &vec![0.0; self.width()]);
                    let error = moments.std / (replicates as f64).sqrt();
                    return Ok(Truth {
                        source: Source::Reference {
                            spec,
                            replicates,
                            error,
                        },
                        gradient: moments.mean,
                        estimates: Some(drawn.estimates),
                    });
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.expect("there are candidates"))
    }

    fn width(&self) -> usize {
        self.law.dims().iter().product()
    }

    fn row(&self, key: Key, method: &dyn Estimator, truth: &Truth) -> Row {
        let sized = self.sized(method);
        let shown = sized.as_deref().unwrap_or(method);
        let entry = shown.entry();
        let price = match takes(shown, &self.law) {
            true => shown.price(&self.law, shown.draws()),
            false => Price::new(0, 0),
        };
        let result = match &sized {
            Ok(sized) => self.measured(key, &**sized, truth),
            Err(error) => Err(error.clone()),
        };
        Row {
            spec: shown.spec(),
            unbiased: entry.bias.is_unbiased(),
            trained: Learner::new(shown, Key::new(0), &self.law, 1.0).is_some(),
            evaluations: price.evaluations,
            gradients: price.gradients,
            result: result.map_err(|error| error.to_string()),
        }
    }

    /// The method with as many draws as the budget buys.
    fn sized(&self, method: &dyn Estimator) -> Result<Box<dyn Estimator>> {
        let entry = method.entry();
        if entry.objective != ObjectiveKind::Expectation {
            return Err(Error::UnsupportedObjective {
                estimator: entry.id,
                expected: entry.objective,
                got: ObjectiveKind::Expectation,
            });
        }
        method.check(&self.law, method.draws())?;
        let budget = self.budget.evaluations;
        affordable(method, &self.law, budget).ok_or_else(|| {
            entry.invalid(format!(
                "one estimate takes more than {budget} evaluations and backward passes"
            ))
        })
    }

    fn measured(&self, key: Key, method: &dyn Estimator, truth: &Truth) -> Result<Measured> {
        let drawn = self.estimates(key, method, self.budget.replicates)?;
        let moments = Moments::of(&drawn.estimates, &truth.gradient);
        let (square, error) = squared_bias(
            &drawn.estimates,
            &truth.gradient,
            truth.estimates.as_deref(),
        );
        let bias = square.max(0.0).sqrt();
        let variance = moments.std * moments.std;
        Ok(Measured {
            bias,
            // That of a root: half of the relative error of the square, or the root of the error
            // where the square is nothing beside it.
            bias_error: (bias * bias + error).sqrt() - bias,
            std: moments.std,
            error: (bias * bias + variance).sqrt(),
            lasting: (bias * bias + variance / self.budget.horizon as f64).sqrt(),
            slope: moments.slope.unwrap_or(1.0),
            seconds: drawn.seconds,
        })
    }

    /// Independent estimates, one after the other, and the time of one.
    fn estimates(&self, key: Key, method: &dyn Estimator, replicates: usize) -> Result<Drawn> {
        let [training, draws] = key.split();
        let learner = trained(
            training,
            method,
            &self.law,
            &self.cost,
            self.budget.training_steps,
            self.budget.learning_rate,
        )?;
        let method = match &learner {
            Some(learner) => learner.bind(method)?,
            None => method.at_step(0)?,
        };
        let started = Instant::now();
        let estimates = replicate(draws, replicates, self.budget.copies, |key, count| {
            let law = match count {
                1 => self.law.clone(),
                _ => self
                    .law
                    .with_natural(self.law.natural().repeat_dim(0, count)),
            };
            let gradient = method.gradient(key, &law, &self.cost)?;
            Ok(to_host(gradient))
        })?;
        Ok(Drawn {
            estimates,
            seconds: started.elapsed().as_secs_f64() / replicates as f64,
        })
    }
}

/// Estimates, and the time of one.
struct Drawn {
    estimates: Vec<f64>,
    seconds: f64,
}

/// The methods that take a law and the expectation of a cost, differentiable or not: what to compare
/// if nothing is asked for.
pub fn candidates(law: &Law, differentiable: bool) -> Vec<Spec> {
    let entries = crate::method::REGISTRY.iter().filter(|entry| {
        let gradient = entry.needs.contains(&Need::Gradient);
        entry.objective == ObjectiveKind::Expectation && (differentiable || !gradient)
    });
    let specs = entries.map(|entry| Spec::new(entry.id));
    let fits = |spec: &Spec| spec.build().is_ok_and(|method| takes(&*method, law));
    specs.filter(fits).collect()
}
