//! `straightflow lab`: every estimator against the exact gradient, and what to use.

mod plots;
mod table;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use straightflow::distribution::FamilyKind;
use straightflow::estimator::Spec;
use straightflow_experiments::lab::{Lab, LabConfig, PROBLEMS, Row};

use crate::record::Record;
use crate::settings::{count, read_config};
use crate::ui::bad_input;

pub const EXAMPLES: &str = "Examples:
  straightflow lab                              tables and recommendations, nothing is written
  straightflow lab --family poisson --budget 8 --unbiased
  straightflow lab --estimators straight-through pwgf:bandwidth=1sd
  straightflow lab --out runs/lab --json > lab.json
  straightflow lab --config runs/lab/config.toml --seed 2 --out runs/again";

#[derive(Args)]
pub struct Arguments {
    /// Only this family: bernoulli, categorical, poisson, binomial or negative-binomial.
    #[arg(long, value_name = "FAMILY", value_parser = family)]
    family: Option<FamilyKind>,
    /// The variables, by their ids, space-separated [default: all].
    #[arg(long, value_name = "ID", num_args = 1.., conflicts_with = "family")]
    problems: Vec<String>,
    /// Evaluations of the cost and backward passes through it that one estimate may take,
    /// space-separated [default: 2 8 32].
    #[arg(long, value_name = "N", num_args = 1.., value_parser = count::<usize>)]
    budget: Vec<usize>,
    /// Recommend unbiased estimators only.
    #[arg(long)]
    unbiased: bool,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated [default: all, with some
    /// variants].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Independent estimates behind each number of the table [default: 20000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    replicates: Option<usize>,
    /// Independent estimates within each budget [default: a fifth of the others].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    budget_replicates: Option<usize>,
    /// Steps for which learned state is trained before, on 32 estimates each [default: 500].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    training_steps: Option<usize>,
    /// Of Adam on learned state [default: 0.01].
    #[arg(long, value_name = "RATE")]
    state_learning_rate: Option<f64>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
    /// The settings of a config.toml, where none are given.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A directory for the record of the run; an interrupted run is continued.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

fn family(text: &str) -> Result<FamilyKind, String> {
    let known = FamilyKind::ALL.iter();
    let found = known.copied().find(|family| family.to_string() == text);
    found.ok_or_else(|| {
        let known: Vec<String> = FamilyKind::ALL.iter().map(FamilyKind::to_string).collect();
        format!("no such family: take {}", known.join(", "))
    })
}

impl Arguments {
    fn config(&self) -> anyhow::Result<LabConfig> {
        let from = match &self.config {
            Some(path) => read_config(path, "lab")?,
            None => LabConfig::default(),
        };
        let fifth = self.replicates.map(|replicates| (replicates / 5).max(2));
        let budget_replicates = self.budget_replicates.or(fifth);
        let mut config = LabConfig {
            seed: self.seed.unwrap_or(from.seed),
            replicates: self.replicates.unwrap_or(from.replicates),
            budget_replicates: budget_replicates.unwrap_or(from.budget_replicates),
            training_steps: self.training_steps.unwrap_or(from.training_steps),
            state_learning_rate: self.state_learning_rate.unwrap_or(from.state_learning_rate),
            ..from
        };
        if !self.budget.is_empty() {
            config.budgets.clone_from(&self.budget);
        }
        if !self.problems.is_empty() {
            config.problems.clone_from(&self.problems);
        }
        if let Some(family) = self.family {
            let problems = PROBLEMS.iter().filter(|problem| problem.kind() == family);
            config.problems = problems.map(|problem| problem.id.to_owned()).collect();
        }
        if !self.estimators.is_empty() {
            config.estimators.clone_from(&self.estimators);
        }
        Ok(config)
    }
}

pub fn run(arguments: &Arguments, command: String, out: &mut impl Write) -> anyhow::Result<()> {
    let lab = Lab::new(arguments.config()?).map_err(bad_input)?;
    let mut record = Record::open(arguments.out.as_deref(), "lab", command, lab.config())?;
    let rows: Vec<Vec<Row>> = record.units(lab.units(), |unit| Ok(lab.unit(unit)?))?;
    let mut summary = lab.summary(rows.concat());
    record.finish(&summary, &plots::draw(&summary), lab.units())?;
    if arguments.unbiased {
        summary.recommendations.retain(|one| one.unbiased);
    }
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
    } else {
        write!(out, "{}", table::render(&summary))?;
    }
    Ok(())
}
