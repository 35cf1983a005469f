//! `straightflow poisson`: the paper's Table 1 and learning curves, with the rows that explain them.

mod plots;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use straightflow_experiments::poisson::{
    Cell, Config, FLOOR, GameObjective, Parametrisation, Settings, Summary, SummaryRow, Watcher,
    run as play,
};
use straightflow_report::Run;
use straightflow_report::record::{SUMMARY, TIMING};

use crate::progress::Progress;
use crate::settings::{OBJECTIVES, PARAMETRISATIONS, count, read_config, word};
use crate::ui::{Timing, bad_input, cores, where_recorded};

pub const EXAMPLES: &str = "Examples:
  straightflow poisson                                 the table, nothing is written
  straightflow poisson --out runs/poisson              with records and plots; run it again to go on
                                                       after an interruption
  straightflow poisson --estimators pwgf matched:muprop --seeds 5
  straightflow poisson --objective literal --seeds 5   the paper's formula as it is printed
  straightflow poisson --config runs/poisson/config.toml --seed 2 --out runs/again";

#[derive(Args)]
pub struct Arguments {
    /// The rate of the data [default: 5].
    #[arg(long, value_name = "RATE")]
    rate: Option<f64>,
    /// The generator's first rate [default: 1].
    #[arg(long, value_name = "RATE")]
    init: Option<f64>,
    /// The generator's parameter [default: direct].
    #[arg(long, value_name = "PARAMETER", value_parser = word::<Parametrisation>(PARAMETRISATIONS))]
    parametrisation: Option<Parametrisation>,
    /// What the discriminator minimises [default: log-loss].
    #[arg(long, value_name = "OBJECTIVE", value_parser = word::<GameObjective>(OBJECTIVES))]
    objective: Option<GameObjective>,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; after `matched:` the learning
    /// rate is multiplied by the gain of the paper's pWGF [default: the paper's four and the control
    /// rows].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<String>,
    /// The common learning rate of the generators, which take plain gradient steps [default: 2.5].
    #[arg(long, value_name = "LR")]
    learning_rate: Option<f64>,
    /// The samples of each batch [default: 200].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    samples: Option<usize>,
    /// A fixed data set of this size for each seed; 0 for fresh data in each iteration [default: 0].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    data: Option<usize>,
    /// Epochs [default: 120].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    epochs: Option<usize>,
    /// The iterations of an epoch [default: 10].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    iterations: Option<usize>,
    /// The epochs at the end over which statistics are taken [default: 20, at most half of all].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    tail: Option<usize>,
    /// Games for each estimator [default: 20].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    seeds: Option<usize>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
    /// Games that are played together; their samples depend on it [default: 10].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    block: Option<usize>,
    /// The settings of a config.toml, where none are given.
    #[arg(long, value_name = "FILE")]
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

impl Arguments {
    fn config(&self) -> anyhow::Result<Config> {
        let recorded = self.config.as_deref().map(recorded).transpose()?;
        let from = recorded
            .as_ref()
            .map_or_else(Settings::default, Config::settings);
        let settings = self.changed(from.clone());
        match recorded.filter(|_| settings == from) {
            // Word for word, also what no setting leads to.
            Some(config) => Ok(config),
            None => Ok(settings.config()?),
        }
    }

    fn changed(&self, from: Settings) -> Settings {
        Settings {
            rate: self.rate.unwrap_or(from.rate),
            init: self.init.unwrap_or(from.init),
            parametrisation: self.parametrisation.unwrap_or(from.parametrisation),
            objective: self.objective.unwrap_or(from.objective),
            estimators: match self.estimators.is_empty() {
                true => from.estimators,
                false => self.estimators.clone(),
            },
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

fn recorded(path: &Path) -> anyhow::Result<Config> {
    let config: Config = read_config(path, Config::EXPERIMENT)?;
    let checked = config.check().with_context(|| path.display().to_string());
    checked.map_err(bad_input)?;
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
        for (name, svg) in plots::draw(&config, &cells, &summary)? {
            record.write_text(name, &svg)?;
        }
        // A process that was killed after its last cell leaves a complete run without its notes.
        if played > 0 || !record.path().join(TIMING).exists() {
            let share = played as f64 / cells.len() as f64;
            record.write_json(TIMING, &Timing::since(start, share, jobs, command))?;
        }
        // The summary is last: a directory that has one is complete.
        record.write_json(SUMMARY, &summary)?;
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
        self.progress.finish_part();
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
