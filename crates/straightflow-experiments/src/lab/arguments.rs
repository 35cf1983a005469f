//! The command line of the laboratory.

use clap::Args;
use straightflow::distribution::FamilyKind;
use straightflow::estimator::Spec;

use super::{LabConfig, PROBLEMS};
use crate::arguments::{Words, count, given, number, word};

pub(super) const EXAMPLES: &str = "Examples:
  straightflow lab                              prints tables and recommendations, writes no files
  straightflow lab --family poisson --budget 8 --unbiased
  straightflow lab --estimators straight-through pwgf:bandwidth=1sd
  straightflow lab --out runs/lab --json > lab.json
  straightflow lab --config runs/lab/config.toml --seed 2 --out runs/again";

/// What the command line offers.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Measure only this family, such as `poisson`.
    #[arg(long, value_name = "FAMILY", value_parser = word::<FamilyKind>(FAMILIES))]
    family: Option<FamilyKind>,
    /// Measure only these problems, space-separated, such as bernoulli-0.2 or poisson-5; cannot
    /// be combined with --family [default: all].
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "family")]
    problems: Vec<String>,
    /// Budgets of one estimate, in evaluations of the cost and backward passes through it,
    /// space-separated [default: 2 8 32].
    #[arg(long, value_name = "N", num_args = 1.., value_parser = count::<usize>)]
    budget: Vec<usize>,
    /// Recommend only unbiased estimators.
    #[arg(long)]
    pub(super) unbiased: bool,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; `straightflow list` shows ids and keys
    /// [default: all, with some variants].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Independent estimates used for each number in the table [default: 20000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    replicates: Option<usize>,
    /// Independent estimates used for each budget [default: a fifth of --replicates].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    budget_replicates: Option<usize>,
    /// Pre-training steps for what an estimator learns (control variates, baselines), with 32 estimates per step
    /// [default: 500].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    training_steps: Option<usize>,
    /// Adam learning rate of what the estimator learns [default: 0.01].
    #[arg(long, value_name = "RATE", value_parser = number)]
    state_learning_rate: Option<f64>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
}

/// The families, in words.
pub const FAMILIES: &Words = &[
    ("bernoulli", "Bits"),
    ("categorical", "One-hot vectors"),
    ("poisson", "Counts"),
    ("binomial", "Counts up to a number of trials"),
    (
        "negative-binomial",
        "Counts that spread more than Poisson ones",
    ),
    ("geometric", "Counts of failures before a success"),
    ("subset", "k-hot vectors"),
    ("rounded", "Rounded continuous variables"),
];

impl Arguments {
    /// What was given, in place of what was there.
    pub(super) fn config(&self, from: LabConfig) -> LabConfig {
        let fifth = self.replicates.map(|replicates| (replicates / 5).max(2));
        let budget_replicates = self.budget_replicates.or(fifth);
        let mut problems = given(&self.problems, from.problems);
        if let Some(family) = self.family {
            let of_family = PROBLEMS.iter().filter(|problem| problem.kind() == family);
            problems = of_family.map(|problem| problem.id.to_owned()).collect();
        }
        LabConfig {
            seed: self.seed.unwrap_or(from.seed),
            problems,
            estimators: given(&self.estimators, from.estimators),
            budgets: given(&self.budget, from.budgets),
            replicates: self.replicates.unwrap_or(from.replicates),
            budget_replicates: budget_replicates.unwrap_or(from.budget_replicates),
            training_steps: self.training_steps.unwrap_or(from.training_steps),
            state_learning_rate: self.state_learning_rate.unwrap_or(from.state_learning_rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_families_are_their_names() {
        let words: Vec<&str> = FAMILIES.iter().map(|(word, _)| *word).collect();
        let names: Vec<String> = FamilyKind::ALL.iter().map(FamilyKind::to_string).collect();
        assert_eq!(words, names);
        crate::arguments::assert_known::<FamilyKind>(FAMILIES);
    }
}
