//! `straightflow bench`: the time of a training step, for estimators and architectures.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use straightflow::estimator::Spec;
use straightflow_experiments::arguments::{at_least_one, count, word};
use straightflow_experiments::device::{PROCESSORS, Processor};
use straightflow_experiments::runner::{Screen, cpu, now};
use straightflow_experiments::table2::default_estimators;
use straightflow_experiments::vae::{
    ARCHITECTURES, Architecture, Config, Floor, LATENTS, Latent, Protocol, Settings, Source,
    Trainer,
};

use crate::screen::Terminal;

pub const EXAMPLES: &str = "Examples:
  straightflow bench                                              every estimator of Table 2
  taskset -c 0 straightflow bench --arch linear --estimators straight-through arm --json
Each step runs on one thread. Other work on the machine slows it down, so compare the fastest times within
one run.";

#[derive(Args)]
pub struct Arguments {
    /// The networks, space-separated, written as the encoder's layers: [ ] marks a layer of latent variables, and the
    /// decoder mirrors the encoder [default: linear two-layer nonlinear].
    #[arg(long, value_name = "ARCH", num_args = 1.., value_parser = word::<Architecture>(ARCHITECTURES))]
    arch: Vec<Architecture>,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; `straightflow list` shows ids and keys
    /// [default: those of Table 2].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// The latent variables.
    #[arg(
        long,
        value_name = "LATENT",
        default_value = "bernoulli",
        value_parser = word::<Latent>(LATENTS)
    )]
    latent: Latent,
    /// The device to compute on.
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = word::<Processor>(PROCESSORS))]
    device: Processor,
    /// Images per step, space-separated.
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = [25, 50, 200], value_parser = count::<usize>)]
    batch: Vec<usize>,
    /// Steps per repetition.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one::<u64>)]
    steps: u64,
    /// Warm-up steps before the first repetition.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count::<u64>)]
    warmup: u64,
    /// The number of repetitions.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one::<u64>)]
    repetitions: u64,
    /// A directory with IDX files [default: the bundled MNIST].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The time of a step, beside what a step of straight-through takes at least.
#[derive(Serialize)]
struct Row {
    arch: &'static str,
    estimator: String,
    batch: usize,
    steps: u64,
    repetitions: u64,
    median_ms: f64,
    least_ms: f64,
    images_per_second: f64,
    dense_floor_ms: f64,
    practical_floor_ms: f64,
    /// The median over the practical floor.
    distance: f64,
}

/// The table, and what it was measured on.
#[derive(Serialize)]
struct Table {
    date: String,
    cpu: String,
    version: &'static str,
    device: &'static str,
    latent: &'static str,
    rows: Vec<Row>,
}

pub fn run(arguments: &Arguments, out: &mut impl Write) -> anyhow::Result<()> {
    let latent = arguments.latent;
    let archs: Vec<Architecture> = match arguments.arch.as_slice() {
        [] => Architecture::ALL.to_vec(),
        some => some.to_vec(),
    };
    let estimators = match arguments.estimators.as_slice() {
        [] => default_estimators(latent, true),
        some => some.to_vec(),
    };
    let data = Protocol::Threshold.load(arguments.data.as_deref())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    // Bad settings are refused before anything is measured.
    let mut groups = Vec::new();
    for arch in &archs {
        for batch in &arguments.batch {
            let configs = estimators.iter().map(|estimator| {
                let settings = Settings {
                    latent,
                    device: arguments.device,
                    batch: Some(*batch),
                    ..Settings::new(*arch, estimator.clone())
                };
                settings.config(&data)
            });
            groups.push(configs.collect::<Result<Vec<_>, _>>()?);
        }
    }
    let mut screen = Terminal::new("bench");
    let count = groups.iter().map(Vec::len).sum::<usize>();
    let mut rows = Vec::new();
    for configs in &groups {
        let mut floor = None;
        for config in configs {
            screen.progress(rows.len() as f64 / count as f64, None);
            rows.push(pool.install(|| measure(arguments, config, &data, &mut floor))?);
        }
    }
    screen.progress(1.0, None);
    screen.finish();
    let table = Table {
        date: now(),
        cpu: cpu(),
        version: env!("CARGO_PKG_VERSION"),
        device: arguments.device.name(),
        latent: latent.name(),
        rows,
    };
    match arguments.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&table)?)?,
        false => print(&table, out)?,
    }
    Ok(())
}

/// The floor depends on networks and batch only, so the first estimator measures it for all.
fn measure(
    arguments: &Arguments,
    config: &Config,
    data: &Source,
    floor: &mut Option<Floor>,
) -> anyhow::Result<Row> {
    let mut trainer = Trainer::new(config, data)?;
    let floor = *floor.get_or_insert_with(|| trainer.floor());
    for _ in 0..arguments.warmup {
        trainer.step()?;
    }
    let mut times = Vec::new();
    for _ in 0..arguments.repetitions {
        let start = Instant::now();
        for _ in 0..arguments.steps {
            trainer.step()?;
        }
        times.push(start.elapsed().as_secs_f64() * 1e3 / arguments.steps as f64);
    }
    times.sort_by(f64::total_cmp);
    let median_ms = times[times.len() / 2];
    Ok(Row {
        arch: config.arch.name(),
        estimator: config.estimator.to_string(),
        batch: config.batch,
        steps: arguments.steps,
        repetitions: arguments.repetitions,
        median_ms,
        least_ms: times[0],
        images_per_second: 1e3 * config.batch as f64 / median_ms,
        dense_floor_ms: floor.dense_ms,
        practical_floor_ms: floor.practical_ms,
        distance: median_ms / floor.practical_ms,
    })
}

fn print(table: &Table, out: &mut impl Write) -> std::io::Result<()> {
    let width = table.rows.iter().map(|row| row.estimator.len());
    let width = width.max().unwrap_or(0).max(9);
    writeln!(
        out,
        "One training step{}, {} variables, {}.\n",
        match table.device {
            "cpu" => " on one thread".to_owned(),
            device => format!(" on {device}"),
        },
        table.latent,
        table.cpu
    )?;
    writeln!(
        out,
        "{:10} {:width$} {:>6} {:>10} {:>9} {:>9} {:>9} {:>12} {:>9}",
        "arch",
        "estimator",
        "batch",
        "median ms",
        "least ms",
        "images/s",
        "dense ms",
        "practical ms",
        "distance",
    )?;
    for row in &table.rows {
        writeln!(
            out,
            "{:10} {:width$} {:>6} {:>10.3} {:>9.3} {:>9.0} {:>9.3} {:>12.3} {:>9.2}",
            row.arch,
            row.estimator,
            row.batch,
            row.median_ms,
            row.least_ms,
            row.images_per_second,
            row.dense_floor_ms,
            row.practical_floor_ms,
            row.distance,
        )?;
    }
    writeln!(
        out,
        "\ndense: the matrix products of a step of straight-through, each alone; practical: those, with \
         images\nas sums over their ones, and likelihood, samples and Adam; distance: the median over \
         the practical floor."
    )
}
