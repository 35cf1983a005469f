//! The command line of the toy.

use clap::Args;
use straightflow::estimator::Spec;

use super::{Subject, ToyConfig, VarianceConfig};
use crate::arguments::{count, given, number};

pub(super) const EXAMPLES: &str = "Examples:
  straightflow toy                              prints the table, writes no files
  straightflow toy --out runs/toy               with records and plots; interrupted runs
                                                resume
  straightflow toy --estimators arm disarm reinforce:baseline=loo,samples=2 --seeds 5
  straightflow toy --p0 0.45 --steps 1000 --json > toy.json
  straightflow toy --config runs/toy/config.toml --seed 2 --out runs/again";

/// What the command line offers.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; `straightflow list` shows ids and keys
    /// [default: all, and reinforce with each baseline].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Runs per estimator and p0 [default: 20].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    seeds: Option<usize>,
    /// Steps per run [default: 4000; relax 10000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    steps: Option<usize>,
    /// Adam learning rate of the logit [default: 0.01].
    #[arg(long, value_name = "RATE", value_parser = number)]
    learning_rate: Option<f64>,
    /// Adam learning rate of what the estimator learns (control variates, baselines) [default: 0.01].
    #[arg(long, value_name = "RATE", value_parser = number)]
    state_learning_rate: Option<f64>,
    /// Values of p0 in the cost -(z - p0)^2, space-separated; the nearer to 1/2, the harder [default: 0.49 0.499 0.501 0.51].
    #[arg(long, value_name = "P", num_args = 1..)]
    p0: Vec<f64>,
    /// The p0 at which the variance of the gradient is measured [default: 0.499].
    #[arg(long, value_name = "P")]
    variance_p0: Option<f64>,
    /// Steps for which learned state is trained before the variance is measured [default: 4000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    variance_steps: Option<usize>,
    /// Independent estimates used for the variance [default: 100000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    variance_replicates: Option<usize>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
}

impl Arguments {
    /// What was given, in place of what was there.
    pub(super) fn config(&self, from: ToyConfig) -> ToyConfig {
        let mut estimators = from.estimators;
        if !self.estimators.is_empty() {
            let specs = self.estimators.iter().cloned();
            estimators = specs.map(Subject::with_default_steps).collect();
        }
        for subject in &mut estimators {
            subject.steps = self.steps.unwrap_or(subject.steps);
        }
        let variance = from.variance;
        ToyConfig {
            seed: self.seed.unwrap_or(from.seed),
            seeds: self.seeds.unwrap_or(from.seeds),
            p0: given(&self.p0, from.p0),
            learning_rate: self.learning_rate.unwrap_or(from.learning_rate),
            state_learning_rate: self.state_learning_rate.unwrap_or(from.state_learning_rate),
            variance: VarianceConfig {
                p0: self.variance_p0.unwrap_or(variance.p0),
                steps: self.variance_steps.unwrap_or(variance.steps),
                replicates: self.variance_replicates.unwrap_or(variance.replicates),
            },
            estimators,
        }
    }
}
