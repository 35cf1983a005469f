//! `straightflow cell`, `status` and `gather`: the cells of a run as tasks of a cluster.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use straightflow_experiments::arguments::{at_least_one, count};
use straightflow_experiments::grid::{CellState, Grid, GridError, Submitted, TRY_AGAIN, status};
use straightflow_experiments::runner::{RunError, quoted};
use straightflow_experiments::{Entry, Session};

use crate::experiment::print;
use crate::interrupt::{self, Interrupted};
use crate::screen::Terminal;

pub const CELL_EXAMPLES: &str = "Examples:
  straightflow cell runs/cluster 7         one cell of a run that was started with --submit
Exit codes: 0 if the cell is done, 1 if it failed, 2 for a bad argument, and 75 if it should be
tried again: it was stopped by a signal and saved its progress, or another process is working on it.";

#[derive(Args)]
pub struct CellArguments {
    /// The directory of the run.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The number of the cell, counted from 0.
    #[arg(value_name = "N", value_parser = count::<usize>)]
    cell: usize,
    /// The number of threads; results do not depend on it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one::<u16>)]
    jobs: u16,
}

#[derive(Args)]
pub struct StatusArguments {
    /// The directory of the run.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct GatherArguments {
    /// The directory of the run.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// A cell that a signal stopped.
#[derive(Debug)]
pub struct TryAgain(Interrupted);

impl TryAgain {
    /// The exit code.
    pub const CODE: u8 = TRY_AGAIN;
}

impl std::fmt::Display for TryAgain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for TryAgain {}

pub fn cell(
    arguments: &CellArguments,
    experiments: &[Entry],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let CellArguments {
        directory, cell, ..
    } = arguments;
    let entry = entry(experiments, directory)?;
    let interrupt = interrupt::patient_handler()?;
    let session = Session {
        words: &[],
        interrupt,
    };
    let mut screen = Terminal::new(entry.id);
    let jobs = usize::from(arguments.jobs);
    let worked = entry.cell(directory, *cell, jobs, &session, &mut screen);
    screen.finish();
    match (worked, interrupt.signal()) {
        (Err(RunError::Stopped), Some(signal)) => {
            let interrupted = Interrupted {
                signal,
                recorded: true,
            };
            Err(TryAgain(interrupted).into())
        }
        (worked, _) => {
            match worked? {
                true => writeln!(out, "cell {cell} is done")?,
                false => writeln!(out, "cell {cell} was done before")?,
            }
            Ok(())
        }
    }
}

pub fn gather(
    arguments: &GatherArguments,
    experiments: &[Entry],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let entry = entry(experiments, &arguments.directory)?;
    let interrupt = interrupt::handler()?;
    let session = Session {
        words: &[],
        interrupt,
    };
    let mut screen = Terminal::new(entry.id);
    let completed = entry.gather(&arguments.directory, &session, &mut screen);
    screen.finish();
    print(completed?, out)
}

/// The experiment of the grid in a directory.
fn entry<'a>(experiments: &'a [Entry], directory: &Path) -> Result<&'a Entry, RunError> {
    let id = Grid::read(directory)?.experiment;
    let entry = experiments.iter().find(|entry| entry.id == id);
    Ok(entry.ok_or(GridError::UnknownExperiment(id))?)
}

/// Says what was submitted and what comes next.
pub fn print_submitted(submitted: &Submitted, out: &mut impl Write) -> anyhow::Result<()> {
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let (script, directory) = (path(&submitted.script), path(&submitted.directory));
    let Submitted { tasks, cells, .. } = submitted;
    match &submitted.job {
        Some(job) => writeln!(out, "Submitted {tasks} of {cells} cells as job {job}.")?,
        None => writeln!(
            out,
            "Wrote an array of {tasks} of {cells} cells; submit it with\n  sbatch {script}\nor run a cell with\n  \
             straightflow cell {directory} N"
        )?,
    }
    writeln!(
        out,
        "Then:\n  straightflow status {directory}\n  straightflow gather {directory}"
    )?;
    Ok(())
}

pub fn print_status(arguments: &StatusArguments, out: &mut impl Write) -> anyhow::Result<()> {
    let status = status(&arguments.directory).map_err(RunError::from)?;
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&status)?)?;
        return Ok(());
    }
    let cells = &status.cells;
    writeln!(
        out,
        "{}, {} {}: {}\n",
        status.experiment,
        cells.len(),
        if cells.len() == 1 { "cell" } else { "cells" },
        status.counts()
    )?;
    let width = cells.iter().map(|cell| cell.name.chars().count());
    let width = width.max().unwrap_or(0).max(4);
    writeln!(
        out,
        "{:>5} {:width$} {:8} {:>8}",
        "cell", "name", "state", "attempts"
    )?;
    for cell in cells {
        writeln!(
            out,
            "{:>5} {:width$} {:8} {:>8}  {}",
            cell.cell,
            cell.name,
            cell.state.word(),
            cell.attempts,
            details(&cell.state)
        )?;
    }
    let failed = cells
        .iter()
        .any(|cell| matches!(cell.state, CellState::Failed { .. }));
    if failed {
        writeln!(
            out,
            "\nRepeat the command with `--submit slurm --cells failed` to submit what failed once more."
        )?;
    }
    Ok(())
}

fn details(state: &CellState) -> String {
    match state {
        CellState::Recorded => "recorded before the grid was submitted".to_owned(),
        CellState::Done { worker, seconds } => {
            format!("{}, {seconds:.1} s, {}", worker.host, worker.cpu)
        }
        CellState::Running {
            worker,
            share,
            heartbeat,
        } => format!(
            "{}, process {}, {:.0} %, heartbeat {heartbeat} s ago",
            worker.host,
            worker.process,
            100.0 * share
        ),
        CellState::Silent { worker, heartbeat } => format!(
            "{}, process {}, no heartbeat for {heartbeat} s",
            worker.host, worker.process
        ),
        CellState::Failed { worker, reason } => format!("{}: {reason}", worker.host),
        CellState::Stopped { worker } => {
            format!("on {} by a signal; the next task goes on", worker.host)
        }
        CellState::Waiting => String::new(),
    }
}
