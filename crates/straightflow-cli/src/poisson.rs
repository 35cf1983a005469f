//! `straightflow poisson`: the paper's Table 1 and learning curves, with the rows that explain them.

mod plots;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use straightflow_experiments::poisson::{
    Cell, Config, FLOOR, GameObjective, Parametrisation, Settings, Summary, SummaryRow, Watcher,
    run as play,
};
use straightflow_report::Run;

use crate::record::read_toml;
use crate::ui::{Progress, Timing, bad_input, cores, where_recorded};

pub const EXAMPLES: &str = "Examples:
  straightflow poisson                                 the table, nothing is written
  straightflow poisson --out runs/poisson              with records and plots; run it again to go on
                                                       after an interruption
  straightflow poisson --estimators pwgf matched:muprop --seeds 5
  straightflow poisson --objective literal --seeds 5   the paper's formula as it is printed
  straightflow poisson --config runs/poisson/config.toml --out runs/again";

#[derive(Args)]
pub struct Arguments {
    /// The rate of the data.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 5.0,
        allow_negative_numbers = true
    )]
    rate: f64,
    /// The generator's first rate.
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    init: f64,
    /// The generator's parameter.
    #[arg(long, value_enum, default_value = "direct")]
    parametrisation: ParametrisationName,
    /// What the discriminator minimises.
    #[arg(long, value_enum, default_value = "log-loss")]
    objective: ObjectiveName,
    /// Estimators, as `id` or `id:key=value,key=value`, separated by blanks; after `matched:` the
    /// learning rate is multiplied by the gain of the paper's pWGF [default: the paper's four and
    /// the control rows].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<String>,
    /// The common learning rate of the generators, which take plain gradient steps.
    #[arg(
        long,
        value_name = "LR",
        default_value_t = 2.5,
        allow_negative_numbers = true
    )]
    learning_rate: f64,
    /// The samples of each batch.
    #[arg(long, value_name = "N", default_value_t = 200)]
    samples: usize,
    /// A fixed data set of this size for each seed; 0 for fresh data in each iteration.
    #[arg(long, value_name = "N", default_value_t = 0)]
    data: usize,
    /// Epochs of ten iterations.
    #[arg(long, value_name = "N", default_value_t = 120)]
    epochs: usize,
    /// The epochs at the end over which statistics are taken [default: 20, at most half of all].
    #[arg(long, value_name = "N")]
    tail: Option<usize>,
    /// Games for each estimator.
    #[arg(long, value_name = "N", default_value_t = 20)]
    seeds: usize,
    /// The seed of all randomness.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Repeat the run of a config.toml.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "rate", "init", "parametrisation", "objective", "estimators", "learning_rate", "samples",
        "data", "epochs", "tail", "seeds", "seed",
    ])]
    config: Option<PathBuf>,
    /// A directory for the record of the run; an interrupted run is continued.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads; the results do not depend on them [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ParametrisationName {
    /// The parameter is the rate.
    Direct,
    /// The parameter is the logarithm of the rate.
    LogRate,
    /// The rate is ln(1 + exp(parameter)).
    Softplus,
}

#[derive(Clone, Copy, ValueEnum)]
enum ObjectiveName {
    /// -E_data log w - E_generator log(1 - w).
    LogLoss,
    /// E_generator w - E_data w, the paper's formula as it is printed.
    Literal,
}

impl Arguments {
    fn config(&self) -> anyhow::Result<Config> {
        if let Some(path) = &self.config {
            return read_config(path).map_err(bad_input);
        }
        let defaults = Settings::default();
        let settings = Settings {
            rate: self.rate,
            init: self.init,
            parametrisation: match self.parametrisation {
                ParametrisationName::Direct => Parametrisation::Direct,
                ParametrisationName::LogRate => Parametrisation::LogRate,
                ParametrisationName::Softplus => Parametrisation::Softplus,
            },
            objective: match self.objective {
                ObjectiveName::LogLoss => GameObjective::LogLoss,
                ObjectiveName::Literal => GameObjective::Literal,
            },
            estimators: match self.estimators.is_empty() {
                true => defaults.estimators,
                false => self.estimators.clone(),
            },
            learning_rate: self.learning_rate,
            samples: self.samples,
            data: self.data,
            epochs: self.epochs,
            tail: self.tail,
            seeds: self.seeds,
            seed: self.seed,
        };
        Ok(settings.config()?)
    }
}

fn read_config(path: &Path) -> anyhow::Result<Config> {
    let config: Config = read_toml(path, "poisson")?;
    config.check().with_context(|| path.display().to_string())?;
    Ok(config)
}

pub fn run(arguments: &Arguments, command: String, out: &mut impl Write) -> anyhow::Result<()> {
    let start = Instant::now();
    let config = arguments.config()?;
    let jobs = arguments.jobs.map_or_else(cores, usize::from);
    let directory = arguments.out.as_deref();
    let mut record = directory.map(|path| Run::open(path, &config)).transpose()?;
    let recorded: Vec<Cell> = match &record {
        Some(record) => record.metrics()?,
        None => Vec::new(),
    };
    let mut screen = Screen {
        record: record.as_mut(),
        progress: Progress::new("poisson"),
        resumed: recorded.len(),
        played: 0,
    };
    let cells = play(&config, recorded, jobs, &mut screen)?;
    let played = screen.played;
    if played == 0 {
        screen.progress.note("the run is complete already");
    }
    screen.progress.finish();

    let summary = Summary::new(&config, &cells);
    if let Some(record) = &record {
        record.write_json("summary.json", &summary)?;
        for (name, svg) in plots::draw(&config, &cells, &summary)? {
            record.write_text(name, &svg)?;
        }
        // A process that was killed after its last cell leaves a complete run without its notes.
        if played > 0 || !record.path().join("timing.json").exists() {
            let share = played as f64 / cells.len() as f64;
            record.write_json("timing.json", &Timing::since(start, share, jobs, command))?;
        }
    }
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
        return Ok(());
    }
    print(&config, &summary, out)?;
    Ok(where_recorded(directory, out)?)
}

/// Shows the progress of a run and records its cells.
struct Screen<'a> {
    record: Option<&'a mut Run>,
    progress: Progress,
    /// The cells of earlier processes that were not mentioned yet.
    resumed: usize,
    played: usize,
}

impl Watcher for Screen<'_> {
    type Error = anyhow::Error;

    fn progress(&mut self, share: f64) {
        match std::mem::take(&mut self.resumed) {
            0 => {}
            1 => self.progress.note("going on after 1 recorded cell"),
            cells => self
                .progress
                .note(&format!("going on after {cells} recorded cells")),
        }
        self.progress.set(share);
    }

    fn complete(&mut self, cell: &Cell) -> anyhow::Result<()> {
        self.played += 1;
        if let Some(record) = &mut self.record {
            record.append(cell)?;
        }
        Ok(())
    }
}

fn print(config: &Config, summary: &Summary, out: &mut impl Write) -> std::io::Result<()> {
    let source = match config.data {
        0 => "fresh data".to_owned(),
        size => format!("a fixed data set of {size} for each seed"),
    };
    let (seeds, epochs) = (config.seeds, config.epochs);
    writeln!(
        out,
        "Data from Pois({}), generator from {}, {seeds} seed{} of {epochs} epochs of {} iterations with {} \
         samples, {source}.\nMean and deviations over the last {} epochs; a game has settled when it \
         stays within {:.2} of the rate.\n",
        config.rate,
        config.init,
        if seeds == 1 { "" } else { "s" },
        config.iterations,
        config.samples,
        config.tail,
        config.tolerance(),
    )?;
    let labels = summary.rows.iter().map(|row| row.label.chars().count());
    let width = labels.max().unwrap_or(0).max(9);
    let paper = summary.rows.iter().any(|row| row.paper_mean.is_some());
    let (heads, units) = (
        format!(
            "{:7} {:>8} {:>18} {:>8} {:>8} {:>8}",
            "", "", "sd over", "sd over", "root ms", "settled"
        ),
        format!(
            "{:>7} {:>8} {:>18} {:>8} {:>8} {:>8}",
            "lr", "mean", "iterations", "seeds", "error", "from"
        ),
    );
    let (above, below) = if paper {
        ("   paper's", "   mean     sd")
    } else {
        ("", "")
    };
    writeln!(out, "{:width$} {heads}{above}", "")?;
    writeln!(out, "{:width$} {units}{below}", "estimator")?;
    for row in &summary.rows {
        writeln!(out, "{:width$} {}", row.label, numbers(row, config))?;
    }
    let floored: usize = summary.rows.iter().map(|row| row.floored).sum();
    if floored > 0 {
        writeln!(
            out,
            "\nThe rate was held at its floor of {} in {floored} of {} steps.",
            FLOOR * config.rate,
            summary.rows.len() * config.seeds * config.length(),
        )?;
    }
    writeln!(out, "\n{}", summary.finding)
}

fn numbers(row: &SummaryRow, config: &Config) -> String {
    let settle = match row.settled {
        all if all == config.seeds => format!("{:.0}", row.settle),
        some => format!("{some} of {}", config.seeds),
    };
    let mut text = format!(
        "{:7.4} {:8.4} {:8.4} +- {:6.4} {:8.4} {:8.4} {settle:>8}",
        row.learning_rate, row.mean, row.time_std, row.time_std_error, row.seed_std, row.rmse,
    );
    if let (Some(mean), Some(sd)) = (row.paper_mean, row.paper_std) {
        text += &format!("   {mean:.4} {sd:.3}");
    }
    text
}
