//! `straightflow table2`: the grid of architectures, estimators and seeds behind the paper's Table 2.

mod arguments;
mod plots;

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Instant;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use straightflow_experiments::vae::{
    Config, Source, Summary, TableCell, TableConfig, TableRow, TableSummary,
};
use straightflow_report::Run;
use straightflow_report::record::{CONFIG, SUMMARY, TIMING};

pub use arguments::{Arguments, EXAMPLES};

use crate::progress::Progress;
use crate::settings::read_config;
use crate::ui::{Timing, cores, where_recorded};
use crate::vae::{Event, RECONSTRUCTIONS, check_length, go_on, record};

/// The directory with the runs.
const CELLS: &str = "cells";

/// The record of a cell.
#[derive(Serialize, Deserialize)]
struct Line {
    cell: String,
    test_nelbo: f64,
    test_bound_100: f64,
}

pub fn run(arguments: &Arguments, command: String, out: &mut impl Write) -> anyhow::Result<()> {
    let start = Instant::now();
    let (config, data) = arguments.config()?;
    let cells = config.cells(&data)?;
    let jobs = arguments.jobs.map_or_else(cores, usize::from);
    let mut table = match arguments.resume {
        true => go_on_with(&arguments.out, &config, &cells)?,
        false => Run::open(&arguments.out, &config)?,
    };
    let lines = table.metrics::<Line>()?;
    let known: HashSet<String> = lines.into_iter().map(|line| line.cell).collect();

    let place = arguments.out.join(CELLS);
    std::fs::create_dir_all(&place)
        .with_context(|| format!("{} cannot be made", place.display()))?;
    let mut complete = |cell: &TableCell, summary: &Summary| {
        if known.contains(&cell.name) {
            return Ok(());
        }
        table.append(&Line {
            cell: cell.name.clone(),
            test_nelbo: summary.test_nelbo,
            test_bound_100: summary.test_bound_100,
        })
    };
    let count = cells.len();
    let results = play(&cells, &place, &data, &command, jobs, &mut complete)?;

    let mut runs: Vec<(Config, Option<Summary>)> = Vec::new();
    let mut failures = Vec::new();
    for (cell, result) in cells.into_iter().zip(results) {
        if result.is_ok() && cell.config.seed == 1 {
            show(&table, &place.join(&cell.name), &cell.name)?;
        }
        match result {
            Ok(summary) => runs.push((cell.config, Some(summary))),
            Err(error) => {
                runs.push((cell.config, None));
                failures.push((cell.name, format!("{error:#}")));
            }
        }
    }
    let summary = TableSummary::new(&runs, failures);
    for (name, svg) in plots::draw(&summary) {
        table.write_text(&name, &svg)?;
    }
    let played = runs.len().saturating_sub(known.len());
    let share = played as f64 / count as f64;
    let timing = Timing::since(start, share, jobs, command);
    if played > 0 || !table.path().join(TIMING).exists() {
        table.write_json(TIMING, &timing)?;
    }
    table.write_json(SUMMARY, &summary)?;
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
    } else {
        print(&summary, out)?;
        where_recorded(Some(&arguments.out), out)?;
    }
    match summary.failures.as_slice() {
        [] => Ok(()),
        [(cell, error), others @ ..] => {
            let others = match others.len() {
                0 => String::new(),
                count => format!(" (and {count} more, see {SUMMARY})"),
            };
            bail!("{cell} came to no end{others}: {error}")
        }
    }
}

/// Opens the table of a directory, also one that differs in the number of epochs: it takes the new one,
/// unless a run has begun more.
fn go_on_with(path: &Path, config: &TableConfig, cells: &[TableCell]) -> anyhow::Result<Run> {
    let recorded: TableConfig = read_config(&path.join(CONFIG), "table2")?;
    let epochs = config.epochs;
    let same = *config
        == TableConfig {
            epochs,
            ..recorded.clone()
        };
    if !same || recorded.epochs == epochs {
        return Ok(Run::open(path, config)?);
    }
    let mut table = Run::open(path, &recorded)?;
    for cell in cells {
        let run = path.join(CELLS).join(&cell.name);
        check_length(&run, &cell.config).with_context(|| cell.name.clone())?;
    }
    // The records are of shorter runs; the runs themselves go on.
    table.forget_records()?;
    table.reconfigure(config)?;
    Ok(table)
}

/// Puts the reconstructions of a run beside the table.
fn show(table: &Run, run: &Path, name: &str) -> anyhow::Result<()> {
    let path = run.join(RECONSTRUCTIONS);
    let bytes =
        std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let name = name.strip_suffix("-1").unwrap_or(name);
    Ok(table.write_bytes(&format!("{name}-{RECONSTRUCTIONS}"), &bytes)?)
}

/// What a worker says.
enum Message {
    /// The share of a cell that is done.
    Share(usize, f64),
    /// A cell has ended.
    Done(usize, anyhow::Result<Summary>),
}

/// Runs all cells, `jobs` at once. A cell that fails does not stop the others; a table that cannot be
/// recorded does.
fn play(
    cells: &[TableCell],
    place: &Path,
    data: &Source,
    command: &str,
    jobs: usize,
    complete: &mut dyn FnMut(&TableCell, &Summary) -> Result<(), straightflow_report::RecordError>,
) -> anyhow::Result<Vec<anyhow::Result<Summary>>> {
    let next = AtomicUsize::new(0);
    let cancelled = AtomicBool::new(false);
    let mut progress = Progress::new("table2");
    let mut shares = vec![0.0; cells.len()];
    // What was done of each cell before; unknown until it is looked at.
    let mut before: Vec<Option<f64>> = vec![None; cells.len()];
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len() as f64;
    let mut results: Vec<Option<anyhow::Result<Summary>>> = Vec::new();
    results.resize_with(cells.len(), || None);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..jobs.clamp(1, cells.len()) {
            let (sender, next, cancelled) = (sender.clone(), &next, &cancelled);
            scope.spawn(move || {
                while let Some(cell) = next_cell(next, cells.len()) {
                    let directory = place.join(&cells[cell].name);
                    let config = &cells[cell].config;
                    let mut watch = |event: Event| report(event, cell, &sender, cancelled);
                    // A table that was made longer has cells that are not so long yet.
                    let result = match go_on(&directory, config) {
                        Ok(run) => record(run, config, data, command, &mut watch),
                        Err(error) => Err(error),
                    };
                    // After an error nobody listens any more.
                    if sender.send(Message::Done(cell, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let listen = || -> anyhow::Result<()> {
            for message in receiver {
                match message {
                    Message::Share(cell, share) => {
                        before[cell].get_or_insert(share);
                        shares[cell] = share;
                    }
                    Message::Done(cell, result) => {
                        shares[cell] = 1.0;
                        // One that was complete is only read, and no share of it was told.
                        if *before[cell].get_or_insert(1.0) < 1.0 {
                            progress.finish_part();
                        }
                        match &result {
                            Ok(summary) => {
                                complete(&cells[cell], summary)?;
                                let (name, test) = (&cells[cell].name, summary.test_nelbo);
                                progress.note(&format!("{name}: test negative ELBO {test:.2}"));
                            }
                            Err(error) => {
                                progress.note(&format!("{}: {error:#}", cells[cell].name))
                            }
                        }
                        results[cell] = Some(result);
                    }
                }
                let earlier: Vec<f64> = before.iter().map(|share| share.unwrap_or(0.0)).collect();
                progress.set_before(mean(&earlier));
                progress.set(mean(&shares));
            }
            Ok(())
        };
        let listened = listen();
        cancelled.store(true, Ordering::Relaxed);
        listened
    })?;
    progress.finish();
    Ok(results.into_iter().flatten().collect())
}

fn next_cell(next: &AtomicUsize, count: usize) -> Option<usize> {
    let cell = next.fetch_add(1, Ordering::Relaxed);
    (cell < count).then_some(cell)
}

fn report(
    event: Event,
    cell: usize,
    sender: &Sender<Message>,
    cancelled: &AtomicBool,
) -> anyhow::Result<()> {
    if cancelled.load(Ordering::Relaxed) {
        bail!("the table was given up");
    }
    if let Event::Share(share) = event {
        // The listener is gone when the table is given up.
        let _ = sender.send(Message::Share(cell, share));
    }
    Ok(())
}

fn print(summary: &TableSummary, out: &mut impl Write) -> std::io::Result<()> {
    let width = summary.rows.iter().map(|row| row.label.chars().count());
    let width = width.max().unwrap_or(0).max(9);
    for rows in summary.rows.chunk_by(|a, b| a.arch == b.arch) {
        writeln!(
            out,
            "{}, {} variables: negative ELBO after {} epochs, seeds: {}",
            rows[0].arch, rows[0].latent, rows[0].epochs, rows[0].seeds
        )?;
        writeln!(
            out,
            "{:width$} {:>8} {:>8} {:>8} {:>6} {:>9} {:>10} {:>6} {:>8}",
            "estimator",
            "train",
            "valid",
            "test",
            "sd",
            draws(&rows[0]),
            "variance",
            "f",
            "paper"
        )?;
        for row in rows {
            writeln!(out, "{:width$} {}", row.label, numbers(row))?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "Variance: of the encoder's gradient, summed over its parameters. f: evaluations of the cost in \
         a step,\nfor each image. The paper's numbers are for its whole protocol."
    )?;
    if summary
        .rows
        .iter()
        .any(|row| row.estimator == "pwgf:preset=paper")
    {
        writeln!(
            out,
            "pwgf:preset=paper: N = 1 sample, eps = 1, h = one standard deviation, at least 1; the paper \
             states none of them."
        )?;
    }
    Ok(())
}

fn draws(row: &TableRow) -> String {
    format!("{} draws", row.bound_samples)
}

fn numbers(row: &TableRow) -> String {
    let optional = |value: Option<f64>, decimals: usize| match value {
        Some(value) => format!("{value:.decimals$}"),
        None => "-".to_owned(),
    };
    format!(
        "{:8.2} {:8.2} {:8.2} {:>6} {:9.2} {:>10} {:6.1} {:>8}",
        row.train_nelbo,
        row.valid_nelbo,
        row.test_nelbo,
        optional(row.test_nelbo_sd, 2),
        row.test_bound_100,
        optional(row.gradient_variance, 1),
        row.evaluations,
        optional(row.paper, 1),
    )
}
