//! `straightflow lab`: every estimator against the exact gradient, and what to use.

mod plots;
mod table;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use straightflow::distribution::FamilyKind;
use straightflow::estimator::Spec;
use straightflow_experiments::lab::{Lab, LabConfig, PROBLEMS, Row};

use crate::record::{Record, read_config};
use crate::ui::bad_input;

pub const EXAMPLES: &str = "Examples:
  straightflow lab                              tables and recommendations, nothing is written
  straightflow lab --family poisson --budget 8 --unbiased
  straightflow lab --estimators straight-through pwgf:bandwidth=1sd
  straightflow lab --out runs/lab --json > lab.json
  straightflow lab --config runs/lab/config.toml --out runs/again";

#[derive(Args)]
pub struct Arguments {
    /// Only this family: bernoulli, categorical, poisson, binomial or negative-binomial.
    #[arg(long, value_name = "FAMILY", value_parser = family)]
    family: Option<FamilyKind>,
    /// Evaluations of the cost and backward passes through it that one estimate may take, separated
    /// by blanks.
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = [2, 8, 32])]
    budget: Vec<usize>,
    /// Recommend unbiased estimators only.
    #[arg(long)]
    unbiased: bool,
    /// Estimators, as `id` or `id:key=value,key=value`, separated by blanks [default: all, with some
    /// variants].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Independent estimates behind each number of the table.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    replicates: usize,
    /// Repeat the run of a config.toml.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["family", "budget", "estimators", "replicates"])]
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
        if let Some(path) = &self.config {
            return read_config(path, "lab");
        }
        let mut config = LabConfig {
            budgets: self.budget.clone(),
            replicates: self.replicates,
            budget_replicates: (self.replicates / 5).max(2),
            ..LabConfig::default()
        };
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
