//! The command line of the game.

use clap::Args;

use super::config::{Parametrisation, Settings};
use super::discriminator::GameObjective;
use crate::arguments::{Words, count, given, number, positive, word};

pub(super) const EXAMPLES: &str = "Examples:
  straightflow poisson                                 prints the table, writes no files
  straightflow poisson --out runs/poisson              with records and plots; interrupted runs
                                                       resume
  straightflow poisson --estimators pwgf matched:muprop --seeds 5
  straightflow poisson --objective literal --seeds 5   the paper's formula as it is printed
  straightflow poisson --config runs/poisson/config.toml --seed 2 --out runs/again";

const PARAMETRISATIONS: &Words = &[
    ("direct", "The parameter is the rate"),
    ("log-rate", "The parameter is the logarithm of the rate"),
    ("softplus", "The rate is ln(1 + exp(parameter))"),
];
const OBJECTIVES: &Words = &[
    ("log-loss", "-E_data log w - E_generator log(1 - w)"),
    (
        "literal",
        "E_generator w - E_data w, the paper's formula as it is printed",
    ),
];

/// What the command line offers.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The rate of the data [default: 5].
    #[arg(long, value_name = "RATE", value_parser = number)]
    rate: Option<f64>,
    /// The rate at which the generator starts [default: 1].
    #[arg(long, value_name = "RATE", value_parser = number)]
    init: Option<f64>,
    /// The generator's parameter [default: direct].
    #[arg(long, value_name = "PARAMETER", value_parser = word::<Parametrisation>(PARAMETRISATIONS))]
    parametrisation: Option<Parametrisation>,
    /// What the discriminator minimises [default: log-loss].
    #[arg(long, value_name = "OBJECTIVE", value_parser = word::<GameObjective>(OBJECTIVES))]
    objective: Option<GameObjective>,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; `straightflow list` shows ids and keys. The
    /// prefix `matched:` shortens the steps to the length of those of the paper's pWGF [default: the paper's four,
    /// the exact gradient and other rows to compare with].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<String>,
    /// The learning rate of all generators, which take plain gradient steps [default: 2.5].
    #[arg(long, value_name = "LR", value_parser = number)]
    learning_rate: Option<f64>,
    /// Samples per batch [default: 200].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    samples: Option<usize>,
    /// Use a fixed data set of this size for each seed, or fresh data in each iteration if 0 [default: 0].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    data: Option<usize>,
    /// The number of epochs [default: 120].
    #[arg(long, value_name = "N", value_parser = positive::<usize>)]
    epochs: Option<usize>,
    /// Iterations per epoch [default: 10].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    iterations: Option<usize>,
    /// Compute the statistics over this many epochs at the end [default: 20, at most half of all].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    tail: Option<usize>,
    /// Games per estimator [default: 20].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    seeds: Option<usize>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
    /// Games that run together in one batch; another number gives other samples [default: 10].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    block: Option<usize>,
}

impl Arguments {
    /// What was given, in place of what was there.
    pub(super) fn changed(&self, from: Settings) -> Settings {
        Settings {
            rate: self.rate.unwrap_or(from.rate),
            init: self.init.unwrap_or(from.init),
            parametrisation: self.parametrisation.unwrap_or(from.parametrisation),
            objective: self.objective.unwrap_or(from.objective),
            estimators: given(&self.estimators, from.estimators),
            learning_rate: self.learning_rate.unwrap_or(from.learning_rate),
            samples: self.samples.unwrap_or(from.samples),
            data: self.data.unwrap_or(from.data),
            epochs: self.epochs.unwrap_or(from.epochs),
            iterations: self.iterations.unwrap_or(from.iterations),
            tail: self.tail.or(from.tail),
            seeds: self.seeds.unwrap_or(from.seeds),
            seed: self.seed.unwrap_or(from.seed),
            block: self.block.unwrap_or(from.block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::assert_known;

    #[test]
    fn the_words_of_the_command_line_are_those_of_the_records() {
        assert_known::<Parametrisation>(PARAMETRISATIONS);
        assert_known::<GameObjective>(OBJECTIVES);
    }
}
