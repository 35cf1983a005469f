//! The one-bit toy of REBAR, RELAX and ARM: maximise `E (z - p0)^2` for a bit `z` with
//! `P(z = 1) = sigmoid(logit)`.
//!
//! The exact gradient with respect to the logit is `(1 - 2 p0) p (1 - p)`: for `p0` near 1/2 it is
//! tiny beside the cost, so it measures how well an estimator sees a difference of costs behind
//! their common part. The optimum is `p = 1` for `p0 < 1/2` and `p = 0` for `p0 > 1/2`. Every run
//! starts at `p = 1/2` and is an Adam of its own; what an estimator learns is learned by each run
//! for itself.
//!
//! ```
//! use straightflow_experiments::toy::{Subject, Toy, ToyConfig};
//!
//! # fn main() -> Result<(), straightflow_experiments::toy::ToyError> {
//! let toy = Toy::new(ToyConfig {
//!     estimators: vec![Subject::new("disarm".parse()?, 400)],
//!     p0: vec![0.49],
//!     seeds: 2,
//!     ..ToyConfig::default()
//! })?;
//! let row = toy.row(0)?;
//! assert_eq!(row.runs[0].right, 2);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod experiment;
mod show;
mod training;
mod variance;

use serde::{Deserialize, Serialize};
use straightflow::distribution::{Bernoulli, Distribution, FamilyKind};
use straightflow::estimator::{REGISTRY, Spec};
use straightflow::objective::ObjectiveKind;

use crate::limits::{self, LimitError};
use crate::tested::Tested;

pub use Toy as This;
pub use training::Runs;
pub use variance::Variance;

/// The steps of a run, unless the estimator needs more.
pub const STEPS: usize = 4_000;
/// The steps of estimators that have to train a network before their variance falls.
pub const LONG_STEPS: usize = 10_000;
/// The estimators that get [`LONG_STEPS`].
pub const SLOW: &[&str] = &["relax"];

/// An estimator and the steps that it gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The estimator.
    pub spec: Spec,
    /// The steps of each of its runs.
    pub steps: usize,
}

impl Subject {
    /// An estimator with a number of steps.
    pub fn new(spec: Spec, steps: usize) -> Self {
        Self { spec, steps }
    }

    /// An estimator with the number of steps that the experiment gives it.
    pub fn with_default_steps(spec: Spec) -> Self {
        let slow = SLOW.contains(&spec.id());
        Self::new(spec, if slow { LONG_STEPS } else { STEPS })
    }
}

/// Every estimator of the registry that takes bits and the expectation of a cost, REINFORCE with
/// each of its baselines, and double control variates with the scale that is exact on linear costs.
pub fn subjects() -> Vec<Subject> {
    const VARIANTS: &[&str] = &[
        "reinforce:baseline=moving-average",
        "reinforce:baseline=loo,samples=2",
        "reinforce:baseline=learned",
        "double-cv:alpha=-1,tune=off",
    ];
    let takes_part = REGISTRY.iter().filter(|entry| {
        entry.families.contains(&FamilyKind::Bernoulli)
            && entry.objective == ObjectiveKind::Expectation
    });
    let specs = takes_part.flat_map(|entry| {
        let variants = VARIANTS.iter().map(|text| text.parse::<Spec>());
        let variants = variants.map(|spec| spec.expect("a valid specification"));
        let variants = variants.filter(|spec| spec.id() == entry.id);
        std::iter::once(Spec::new(entry.id)).chain(variants)
    });
    specs.map(Subject::with_default_steps).collect()
}

/// Where and how well the variance of one estimate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VarianceConfig {
    /// `p0` of the cost. The bit is fair.
    pub p0: f64,
    /// The steps for which learned state is trained before, with the bit as it is.
    pub steps: usize,
    /// The number of independent estimates.
    pub replicates: usize,
}

/// All that is needed to repeat the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToyConfig {
    /// The seed of everything random.
    pub seed: u64,
    /// The number of runs for each estimator and `p0`.
    pub seeds: usize,
    /// The values of `p0`.
    pub p0: Vec<f64>,
    /// Adam learning rate (epsilon 1e-8) of the logit.
    #[serde(alias = "learning_rate")]
    pub learning_rate: f64,
    /// Adam learning rate (epsilon 1e-8) of learned state.
    #[serde(alias = "state_learning_rate")]
    pub state_learning_rate: f64,
    /// The measurement of the variance.
    pub variance: VarianceConfig,
    /// The estimators.
    pub estimators: Vec<Subject>,
}

impl Default for ToyConfig {
    fn default() -> Self {
        Self {
            seed: 1,
            seeds: 20,
            p0: vec![0.49, 0.499, 0.501, 0.51],
            learning_rate: 0.01,
            state_learning_rate: 0.01,
            variance: VarianceConfig {
                p0: 0.499,
                steps: 4_000,
                replicates: 100_000,
            },
            estimators: subjects(),
        }
    }
}

/// What is wrong with a configuration, or went wrong in a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToyError {
    /// From the library: an unknown estimator, an invalid option, a failed estimate.
    #[error(transparent)]
    Library(#[from] straightflow::Error),
    /// An estimator of something else.
    #[error("`{spec}` estimates {got}, but the toy is the expectation of a cost: leave it out")]
    Objective {
        /// The estimator.
        spec: Spec,
        /// What it estimates.
        got: ObjectiveKind,
    },
    /// A `p0` without an optimum.
    #[error("p0 must be between 0 and 1 and not 1/2, where every p is optimal; got {0}")]
    P0(f64),
    /// A number that is out of its range.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// Whether a row is no longer wanted.
type Stop<'a> = dyn Fn() -> bool + Sync + 'a;

/// The experiment: a configuration whose every part was looked at.
#[derive(Debug)]
pub struct Toy {
    config: ToyConfig,
}

/// The results of one estimator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The estimator.
    #[serde(flatten)]
    pub estimator: Tested,
    /// The steps of each run.
    pub steps: usize,
    /// The runs, for each `p0`.
    pub runs: Vec<Runs>,
    /// The variance of one estimate.
    pub variance: Variance,
}

/// All results, and nothing that differs when they are repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// "toy".
    pub experiment: String,
    /// The number of runs for each estimator and `p0`.
    pub seeds: usize,
    /// `p0` of the cost whose gradient's variance was measured.
    pub variance_p0: f64,
    /// The estimators, in the order of the configuration.
    pub rows: Vec<Row>,
}

impl Toy {
    /// Checks a configuration.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn new(config: ToyConfig) -> Result<Self, ToyError> {
        for p0 in config.p0.iter().chain([&config.variance.p0]) {
            if !(*p0 > 0.0 && *p0 < 1.0 && *p0 != 0.5) {
                return Err(ToyError::P0(*p0));
            }
        }
        limits::learning_rate(config.learning_rate)?;
        limits::learning_rate(config.state_learning_rate)?;
        let steps = config.estimators.iter().map(|subject| subject.steps);
        let (fewest, most) = (steps.clone().min(), steps.max());
        for (name, got, least) in [
            ("p0 values", config.p0.len(), 1),
            ("seeds", config.seeds, 1),
            ("estimators", config.estimators.len(), 1),
            ("steps", fewest.unwrap_or(1), 1),
            ("steps", most.unwrap_or(1), 1),
            ("steps", config.variance.steps, 0),
            ("replicates", config.variance.replicates, 2),
        ] {
            limits::number(name, got, least)?;
        }
        let one_bit = training::bits(1);
        for subject in &config.estimators {
            let estimator = subject.spec.build()?;
            let got = estimator.entry().objective;
            if got != ObjectiveKind::Expectation {
                let spec = subject.spec.clone();
                return Err(ToyError::Objective { spec, got });
            }
            let q = Bernoulli::from_logits(one_bit.logits())?;
            estimator.check(q.law(), estimator.draws())?;
        }
        Ok(Self { config })
    }

    /// The configuration.
    pub fn config(&self) -> &ToyConfig {
        &self.config
    }

    /// Runs the estimator number `index`. The result depends on nothing but the configuration: not
    /// on the other estimators, and not on the number of threads.
    ///
    /// # Errors
    ///
    /// If an estimate fails.
    ///
    /// # Panics
    ///
    /// If there is no such estimator.
    pub fn row(&self, index: usize) -> Result<Row, ToyError> {
        let row = self.row_until(index, &|| false)?;
        Ok(row.expect("nobody stops it"))
    }

    /// The same, unless it is stopped.
    fn row_until(&self, index: usize, stop: &Stop) -> Result<Option<Row>, ToyError> {
        let subject = &self.config.estimators[index];
        let estimator = subject.spec.build()?;
        let Some(runs) = training::train(&self.config, estimator.as_ref(), subject.steps, stop)?
        else {
            return Ok(None);
        };
        let Some(variance) = variance::measure(&self.config, estimator.as_ref(), stop)? else {
            return Ok(None);
        };
        Ok(Some(Row {
            estimator: Tested::new(estimator.as_ref()),
            steps: subject.steps,
            runs,
            variance,
        }))
    }

    /// The summary of the rows of all estimators.
    pub fn summary(&self, rows: Vec<Row>) -> Summary {
        Summary {
            experiment: "toy".to_owned(),
            seeds: self.config.seeds,
            variance_p0: self.config.variance.p0,
            rows,
        }
    }
}
