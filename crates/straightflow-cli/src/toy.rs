//! `straightflow toy`: the one-bit toy for every estimator.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use straightflow::estimator::Spec;
use straightflow_experiments::toy::{Row, Subject, Summary, Toy, ToyConfig, VarianceConfig};
use straightflow_report::plot::{Curves, Line};

use crate::record::Record;
use crate::settings::{count, read_config};
use crate::ui::bad_input;

pub const EXAMPLES: &str = "Examples:
  straightflow toy                              the table, nothing is written
  straightflow toy --out runs/toy               with records and plots; run it again to go on after an
                                                interruption
  straightflow toy --estimators arm disarm reinforce:baseline=loo,samples=2 --seeds 5
  straightflow toy --p0 0.45 --steps 1000 --json > toy.json
  straightflow toy --config runs/toy/config.toml --seed 2 --out runs/again";

#[derive(Args)]
pub struct Arguments {
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated [default: all, and
    /// reinforce with each baseline].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Runs for each estimator and p0 [default: 20].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    seeds: Option<usize>,
    /// Steps of each run [default: 4000; relax 10000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    steps: Option<usize>,
    /// Of Adam on the logit [default: 0.01].
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,
    /// Of Adam on what an estimator learns [default: 0.01].
    #[arg(long, value_name = "RATE")]
    state_learning_rate: Option<f64>,
    /// The values of p0, space-separated [default: 0.49 0.499 0.501 0.51].
    #[arg(long, value_name = "P", num_args = 1..)]
    p0: Vec<f64>,
    /// p0 of the cost whose gradient's variance is measured [default: 0.499].
    #[arg(long, value_name = "P")]
    variance_p0: Option<f64>,
    /// Steps for which learned state is trained before the variance is measured [default: 4000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    variance_steps: Option<usize>,
    /// Independent estimates behind the variance [default: 100000].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    variance_replicates: Option<usize>,
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

impl Arguments {
    fn config(&self) -> anyhow::Result<ToyConfig> {
        let from = match &self.config {
            Some(path) => read_config(path, "toy")?,
            None => ToyConfig::default(),
        };
        let mut estimators = from.estimators;
        if !self.estimators.is_empty() {
            let specs = self.estimators.iter().cloned();
            estimators = specs.map(Subject::with_default_steps).collect();
        }
        for subject in &mut estimators {
            subject.steps = self.steps.unwrap_or(subject.steps);
        }
        let variance = from.variance;
        Ok(ToyConfig {
            seed: self.seed.unwrap_or(from.seed),
            seeds: self.seeds.unwrap_or(from.seeds),
            p0: match self.p0.is_empty() {
                true => from.p0,
                false => self.p0.clone(),
            },
            learning_rate: self.learning_rate.unwrap_or(from.learning_rate),
            state_learning_rate: self.state_learning_rate.unwrap_or(from.state_learning_rate),
            variance: VarianceConfig {
                p0: self.variance_p0.unwrap_or(variance.p0),
                steps: self.variance_steps.unwrap_or(variance.steps),
                replicates: self.variance_replicates.unwrap_or(variance.replicates),
            },
            estimators,
        })
    }
}

/// The table of the terminal and of the documentation.
fn table(summary: &Summary) -> String {
    let mut text = String::new();
    let width = summary.rows.iter().map(|row| row.spec.to_string().len());
    let width = width.max().unwrap_or(0);
    let p0: Vec<f64> = summary.rows[0].runs.iter().map(|runs| runs.p0).collect();
    let _ = write!(text, "{:width$}  {:>5}", "", "steps");
    for p0 in &p0 {
        let _ = write!(text, "  {:>13}", format!("p0 = {p0}"));
    }
    let _ = writeln!(text, "  {:>12}  {:>8}", "log variance", "bias");
    for row in &summary.rows {
        let _ = write!(text, "{:width$}  {:>5}", row.spec.to_string(), row.steps);
        for runs in &row.runs {
            let median = match runs.median_steps {
                Some(steps) => steps.to_string(),
                None => "-".to_owned(),
            };
            let right = format!("{}/{}", runs.right, summary.seeds);
            let _ = write!(text, "  {right:>7} {median:>5}");
        }
        let variance = match row.variance.log_variance {
            Some(log) => format!("{log:.2}"),
            None => "none".to_owned(),
        };
        let _ = writeln!(text, "  {variance:>12}  {:>8}", bias(row));
    }
    let _ = write!(
        text,
        "\nFor each p0: the runs that end on the optimum's side of p = 1/2, and the median of the first \
         step with\nmore than 0.95 for the optimum (-: fewer than half of the runs get there). Log \
         variance: of one estimate\nof the gradient by the logit, at p = 1/2 and p0 = {}; bias: of the \
         same, relative to the exact gradient\n(0: within three standard errors).\n",
        summary.variance_p0
    );
    text
}

/// The relative bias, if it is seen.
fn bias(row: &Row) -> String {
    let variance = &row.variance;
    let bias = variance.mean - variance.exact;
    // Rounding errors of an estimate without variance are no bias.
    if bias.abs() <= 3.0 * variance.standard_error + 1e-9 * variance.exact.abs() {
        return "0".to_owned();
    }
    format!("{:+.1}%", 100.0 * bias / variance.exact)
}

/// The learning curves, one plot for each `p0`, of the estimators that learn fastest.
fn plots(summary: &Summary) -> Vec<(String, String)> {
    /// Lines that can be told apart.
    const LINES: usize = 8;
    let p0 = summary.rows[0].runs.iter().map(|runs| runs.p0);
    let plot = |(index, p0): (usize, f64)| {
        let mut rows: Vec<&Row> = summary.rows.iter().collect();
        rows.sort_by_key(|row| row.runs[index].median_steps.unwrap_or(usize::MAX));
        let lines = rows.iter().take(LINES).map(|row| {
            let curve = &row.runs[index].curve;
            let every = row.steps as f64 / (curve.len() - 1) as f64;
            let points = curve.iter().enumerate();
            Line {
                label: row.spec.to_string(),
                points: points
                    .map(|(point, p)| (point as f64 * every, *p))
                    .collect(),
                band: Vec::new(),
            }
        });
        let curves = Curves {
            title: format!("One bit, p0 = {p0}"),
            caption: format!(
                "The probability of the optimum, on average over {} runs, for the {LINES} estimators \
                 that get to 0.95 first.",
                summary.seeds
            ),
            x_label: "steps".to_owned(),
            y_label: "probability of the optimum".to_owned(),
            lines: lines.collect(),
            ..Curves::default()
        };
        (format!("curves-{p0}.svg"), curves.svg())
    };
    p0.enumerate().map(plot).collect()
}

pub fn run(arguments: &Arguments, command: String, out: &mut impl Write) -> anyhow::Result<()> {
    let toy = Toy::new(arguments.config()?).map_err(bad_input)?;
    let mut record = Record::open(arguments.out.as_deref(), "toy", command, toy.config())?;
    let count = toy.config().estimators.len();
    let rows = record.units(count, |index| Ok(toy.row(index)?))?;
    let summary = toy.summary(rows);
    record.finish(&summary, &plots(&summary), count)?;
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
    } else {
        write!(out, "{}", table(&summary))?;
    }
    Ok(())
}
