//! The laboratory: bias, standard deviation, error and cost of every estimator against the exact
//! gradient, for every family and for costs that are kind or unkind to them.
//!
//! A *cell* is a variable, a cost and an estimator. Each cell is measured with the least number of
//! draws that the estimator takes, and with as many as each budget of evaluations and backward
//! passes buys. Gradients are those with respect to the means for ordered families, that is the
//! natural gradient divided by the chain factor, and by the logits for categorical variables.
//!
//! ```
//! use straightflow_experiments::lab::{Lab, LabConfig};
//!
//! # fn main() -> Result<(), straightflow_experiments::lab::LabError> {
//! let lab = Lab::new(LabConfig {
//!     problems: vec!["poisson-5".to_owned()],
//!     estimators: vec!["straight-through".parse()?, "finite-difference".parse()?],
//!     replicates: 500,
//!     ..LabConfig::default()
//! })?;
//! // The quadratic cost: the straight-through estimator misses the derivative of the variance, 1.
//! let rows = lab.unit(1)?;
//! let single = rows[0].single.as_ref().expect("it was measured");
//! assert!((single.bias + 1.0).abs() < 5.0 * single.bias_error);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod experiment;
mod measure;
mod objective;
mod plots;
mod problem;
mod recommend;
mod show;
mod subjects;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use straightflow::Key;
use straightflow::compare::{affordable, smallest, takes};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Estimator, Spec};
use straightflow::objective::ObjectiveKind;

use crate::limits::{self, LimitError};
use crate::tested::Tested;
use measure::{Training, Truth, learns, measure, trained};

pub use Lab as This;
pub use arguments::FAMILIES;
pub use measure::Measurement;
pub use objective::{Objective, objectives};
pub use problem::{PROBLEMS, Problem};
pub use recommend::{Recommendation, Standing, recommendations, standings};
pub use subjects::subjects;

/// All that is needed to repeat the measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LabConfig {
    /// The seed of everything random.
    pub seed: u64,
    /// The ids of the variables.
    pub problems: Vec<String>,
    /// The estimators; one that does not take a variable is left out there.
    pub estimators: Vec<Spec>,
    /// Evaluations of the cost and backward passes through it, together, that one estimate may
    /// take.
    pub budgets: Vec<usize>,
    /// The independent estimates with the least number of draws.
    pub replicates: usize,
    /// The independent estimates within each budget.
    #[serde(alias = "budget_replicates")]
    pub budget_replicates: usize,
    /// The steps for which learned state is trained before, on 32 estimates each.
    #[serde(alias = "training_steps")]
    pub training_steps: usize,
    /// Adam learning rate (epsilon 1e-8) of learned state.
    #[serde(alias = "state_learning_rate")]
    pub state_learning_rate: f64,
}

impl Default for LabConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            problems: PROBLEMS
                .iter()
                .map(|problem| problem.id.to_owned())
                .collect(),
            estimators: subjects(),
            budgets: vec![2, 8, 32],
            replicates: 20_000,
            budget_replicates: 4_000,
            training_steps: 500,
            state_learning_rate: 0.01,
        }
    }
}

/// What is wrong with a configuration, or went wrong in a measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// From the library: an unknown estimator, an invalid option, a failed enumeration.
    #[error(transparent)]
    Library(#[from] straightflow::Error),
    /// An estimator of something else.
    #[error("`{spec}` estimates {got}, but the laboratory measures expectations: leave it out")]
    Objective {
        /// The estimator.
        spec: Spec,
        /// What it estimates.
        got: ObjectiveKind,
    },
    /// A variable that is not there.
    #[error("there is no problem `{id}`: choose from {known}")]
    Problem {
        /// The id.
        id: String,
        /// Those that are there.
        known: String,
    },
    /// No estimator takes one of the variables.
    #[error("none of the estimators supports the variables of `{problem}`")]
    NoEstimator {
        /// The id of the variable.
        problem: &'static str,
    },
    /// A number that is out of its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// How an estimator failed on a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "message")]
pub enum Failure {
    /// Its expectation points uphill.
    WrongSign,
    /// Its bias is more than half of the gradient, or of a hundredth of the largest gradient that a
    /// cost with the same variance can have if that is more.
    Bias,
    /// It could not be computed.
    Error(String),
}

/// One cell: an estimator on a cost of a variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The estimator.
    #[serde(flatten)]
    pub estimator: Tested,
    /// Whether it has learned state, which was trained on the cell before; no budget counts that.
    pub trained: bool,
    /// The family of the variable.
    pub family: FamilyKind,
    /// The id of the variable.
    pub problem: String,
    /// The id of the cost.
    pub objective: String,
    /// The exact gradient.
    pub exact: Vec<f64>,
    /// The largest norm of a gradient that a cost with the same variance can have.
    pub scale: f64,
    /// With the least number of draws; none if the estimate is an error.
    pub single: Option<Measurement>,
    /// With what each budget buys, in the order of the budgets; none where it does not buy the
    /// least number of draws.
    pub budgets: Vec<Option<Measurement>>,
    /// How the estimator fails here, if it does.
    pub failure: Option<Failure>,
}

/// All results, and nothing that differs when they are repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// "lab".
    pub experiment: String,
    /// The budgets of the columns.
    pub budgets: Vec<usize>,
    /// The cells: variables, costs, estimators.
    pub rows: Vec<Row>,
    /// What to use, by family, budget and need.
    pub recommendations: Vec<Recommendation>,
}

/// The laboratory: a configuration whose every part was looked at. Its work comes in units, a
/// variable with a cost each.
#[derive(Debug)]
pub struct Lab {
    config: LabConfig,
    /// Positions in [`PROBLEMS`] and in the costs of the problem.
    units: Vec<(usize, usize)>,
}

impl Lab {
    /// Checks a configuration.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn new(config: LabConfig) -> Result<Self, LabError> {
        limits::learning_rate(config.state_learning_rate)?;
        let smallest_budget = config.budgets.iter().copied().min().unwrap_or(1);
        let largest_budget = config.budgets.iter().copied().max().unwrap_or(1);
        for (name, got, least) in [
            ("problems", config.problems.len(), 1),
            ("budgets", config.budgets.len(), 1),
            ("evaluations in a budget", smallest_budget, 1),
            ("evaluations in a budget", largest_budget, 1),
            ("replicates", config.replicates, 2),
            ("replicates", config.budget_replicates, 2),
            ("training steps", config.training_steps, 0),
        ] {
            limits::number(name, got, least)?;
        }
        let mut estimators = Vec::new();
        for spec in &config.estimators {
            let estimator = spec.build()?;
            let got = estimator.entry().objective;
            if got != ObjectiveKind::Expectation {
                let spec = spec.clone();
                return Err(LabError::Objective { spec, got });
            }
            estimators.push(estimator);
        }
        let mut units = Vec::new();
        for id in &config.problems {
            let index = PROBLEMS.iter().position(|problem| problem.id == id);
            let index = index.ok_or_else(|| LabError::Problem {
                id: id.clone(),
                known: known_problems(),
            })?;
            let problem = &PROBLEMS[index];
            let law = problem.law(1);
            if !estimators.iter().any(|one| takes(one.as_ref(), &law)) {
                return Err(LabError::NoEstimator {
                    problem: problem.id,
                });
            }
            units.extend((0..objectives(problem).len()).map(|objective| (index, objective)));
        }
        Ok(Self { config, units })
    }

    /// The configuration.
    pub fn config(&self) -> &LabConfig {
        &self.config
    }

    /// The number of units of work.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// The name of a unit, for messages.
    ///
    /// # Panics
    ///
    /// If there is no such unit.
    pub fn unit_name(&self, unit: usize) -> String {
        let (problem, objective) = self.parts(unit);
        format!("{}, {}", problem.label, objective.id)
    }

    /// Measures every estimator on one unit. The result depends on nothing but the configuration
    /// and the names: not on the other units and estimators, and not on the number of threads.
    ///
    /// # Errors
    ///
    /// If the exact gradient cannot be computed. An estimator that fails is a row that says so.
    ///
    /// # Panics
    ///
    /// If there is no such unit.
    pub fn unit(&self, unit: usize) -> Result<Vec<Row>, LabError> {
        let rows = self.unit_until(unit, &|| false)?;
        Ok(rows.expect("nobody stops it"))
    }

    /// The same, unless it is stopped.
    fn unit_until(
        &self,
        unit: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Row>>, LabError> {
        let (problem, objective) = self.parts(unit);
        let (problem_index, objective_index) = self.units[unit];
        let key = Key::new(self.config.seed).child(problem_index as u64);
        let key = key.child(objective_index as u64);
        let truth = Truth::new(problem, objective)?;
        let law = problem.law(1);
        let specs: Vec<&Spec> = self.config.estimators.iter().collect();
        let rows = specs.par_iter().filter_map(|spec| {
            let estimator = spec.build().expect("it was built before");
            takes(estimator.as_ref(), &law).then(|| {
                let wanted = !stop();
                wanted.then(|| self.row(estimator.as_ref(), problem, objective, &truth, key))
            })
        });
        Ok(rows.collect())
    }

    fn parts(&self, unit: usize) -> (&'static Problem, &'static Objective) {
        let (problem, objective) = self.units[unit];
        let problem = &PROBLEMS[problem];
        (problem, &objectives(problem)[objective])
    }

    fn row(
        &self,
        estimator: &dyn Estimator,
        problem: &Problem,
        objective: &Objective,
        truth: &Truth,
        key: Key,
    ) -> Row {
        let measured = self.measurements(estimator, problem, objective, truth, key);
        let (single, budgets, failure) = match measured {
            Ok((single, budgets)) => {
                let failure = failure(&single, truth);
                (Some(single), budgets, failure)
            }
            Err(error) => {
                let failure = Failure::Error(error.to_string());
                (None, vec![None; self.config.budgets.len()], Some(failure))
            }
        };
        Row {
            estimator: Tested::new(estimator),
            trained: learns(estimator, problem),
            family: problem.kind(),
            problem: problem.id.to_owned(),
            objective: objective.id.to_owned(),
            exact: truth.gradient.clone(),
            scale: truth.scale,
            single,
            budgets,
            failure,
        }
    }

    fn measurements(
        &self,
        estimator: &dyn Estimator,
        problem: &Problem,
        objective: &Objective,
        truth: &Truth,
        key: Key,
    ) -> straightflow::Result<(Measurement, Vec<Option<Measurement>>)> {
        let config = &self.config;
        let [training, draws] = key.split();
        let training = Training {
            key: training,
            steps: config.training_steps,
            learning_rate: config.state_learning_rate,
        };
        let single = smallest(estimator).expect("the least number of draws is valid");
        let learner = trained(single.as_ref(), problem, objective, training)?;
        let run = |estimator: &dyn Estimator, key: Key, replicates: usize| {
            let learner = learner.as_ref();
            measure(
                estimator, learner, problem, objective, truth, key, replicates,
            )
        };
        let first = run(single.as_ref(), draws.child(0), config.replicates)?;
        let law = problem.law(1);
        let within = |budget: usize| {
            let Some(estimator) = affordable(estimator, &law, budget) else {
                return Ok(None);
            };
            let key = draws.child(budget as u64 + 1);
            run(estimator.as_ref(), key, config.budget_replicates).map(Some)
        };
        let budgets: straightflow::Result<_> = config.budgets.iter().copied().map(within).collect();
        Ok((first, budgets?))
    }

    /// The summary of the rows of all units.
    pub fn summary(&self, rows: Vec<Row>) -> Summary {
        let recommendations = recommendations(&rows, &self.config.budgets);
        Summary {
            experiment: "lab".to_owned(),
            budgets: self.config.budgets.clone(),
            rows,
            recommendations,
        }
    }
}

/// The failure that a measurement shows, beyond three standard errors.
fn failure(single: &Measurement, truth: &Truth) -> Option<Failure> {
    let noise = 3.0 * single.bias_error + 1e-9 * truth.scale;
    let uphill = |slope: f64| slope * truth.norm() + noise < 0.0;
    if single.slope.is_some_and(uphill) {
        return Some(Failure::WrongSign);
    }
    let allowed = 0.5 * truth.norm().max(0.01 * truth.scale);
    (single.bias.abs() - noise > allowed).then_some(Failure::Bias)
}

fn known_problems() -> String {
    let ids: Vec<&str> = PROBLEMS.iter().map(|problem| problem.id).collect();
    ids.join(", ")
}
