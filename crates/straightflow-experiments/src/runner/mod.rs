//! One runner for all experiments. It owns everything that is not science: directories, claims, records,
//! checkpoints, resuming, threads, progress, interrupts and versions.
//!
//! The summary is written last: a directory that has one is complete. A process may be killed at any
//! moment; the same command resumes from what was recorded, and ends with the same bits.

mod cells;
mod command;
mod config;
mod desk;
mod error;
mod interrupt;
mod progress;
mod timing;

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde::Serialize;
use straightflow_report::Run;
use straightflow_report::page::Table;
use straightflow_report::record::{CONFIG, SUMMARY, TIMING};

pub(crate) use command::repeating_words;
pub use command::{command_line, quoted};
pub use config::{ConfigError, ConfigFault, Recorded, read as read_config};
pub(crate) use desk::read_if_there;
pub use desk::{CELLS, CHECKPOINT, Desk};
pub use error::RunError;
pub(crate) use error::in_one_line;
pub use interrupt::Interrupt;
pub use progress::{Nowhere, Screen};
pub use timing::{cores, cpu, now};

use crate::experiment::{Ended, Experiment, Recalled};
use crate::grid;
use cells::Known;
use desk::locked;
use progress::Progress;
use timing::Timing;

/// How an experiment is to be run.
pub struct Assignment<'a> {
    /// The directory of its record, if it is to have one.
    pub directory: Option<&'a Path>,
    /// The number of threads; 0 for all of them.
    pub jobs: usize,
    /// The command line that repeats the run.
    pub command: &'a str,
    /// Whether a run in the directory may [become](Experiment::may_become) this one.
    pub may_grow: bool,
    /// Cells that failed elsewhere, with their reasons, and are not to be tried again.
    pub failures: &'a [(usize, String)],
    /// Whether the run is to stop where it is.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Assignment<'_> {
    /// The threads that a number of cells takes.
    fn threads<E: Experiment>(&self, cells: usize) -> usize {
        let jobs = match self.jobs {
            0 => cores(),
            jobs => jobs,
        };
        match E::CELLS_AT_ONCE {
            true => jobs.clamp(1, cells.max(1)),
            false => jobs,
        }
    }
}

impl std::fmt::Debug for Assignment<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assignment")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Done<S> {
    /// The results.
    pub summary: S,
    /// The cells that failed, each with its name and the reason.
    pub failures: Vec<(String, String)>,
    /// Whether there was something left to do.
    pub worked: bool,
}

/// Runs an experiment to its end, from what is recorded of it.
///
/// # Errors
///
/// A directory that is not one for this run, [`RunError::Stopped`], cells that fail, and files that cannot
/// be written. What was recorded before stays.
pub fn work<E: Experiment>(
    experiment: &E,
    assignment: &Assignment,
    screen: &mut dyn Screen,
) -> Result<Done<E::Summary>, RunError> {
    let start = Instant::now();
    let opened = assignment
        .directory
        .map(|path| open(experiment, path, assignment.may_grow));
    let opened = opened.transpose()?.map(Mutex::new);
    let names = experiment.cells();
    if let Some(run) = &opened {
        grid::collect(experiment, &names, &mut locked(run))?;
    }
    let mut known = recall(experiment, names.len(), opened.as_ref(), 0)?;
    if let Some(run) = opened.as_ref()
        && E::SUMMARY_SUFFICES
        && let Some(summary) = read_summary::<E>(locked(run).path())?
    {
        return Ok(Done {
            summary,
            failures: Vec::new(),
            worked: false,
        });
    }

    let complete: Vec<bool> = known.outcomes.iter().map(Option::is_some).collect();
    let recorded = complete.iter().filter(|complete| **complete).count();
    match recorded {
        0 => {}
        all if all == names.len() => screen.note("the run is complete already"),
        1 => screen.note("going on after 1 recorded cell"),
        some => screen.note(&format!("going on after {some} recorded cells")),
    }
    for (cell, reason) in assignment.failures {
        known.outcomes[*cell] = Some(Err(reason.clone()));
    }
    let mut progress = Progress::new(start, &complete);
    let outcomes = cells::run(
        experiment,
        &names,
        known,
        opened.as_ref(),
        assignment,
        &mut progress,
        screen,
    )?;
    let outcomes: Vec<Result<E::Outcome, String>> = outcomes.into_iter().flatten().collect();

    let summary = experiment.summarise(&outcomes);
    let share = progress.own_share();
    if let Some(run) = &opened {
        let run = locked(run);
        let ended = Ended {
            summary: &summary,
            outcomes: &outcomes,
            directory: run.path(),
        };
        for (name, bytes) in experiment.files(&ended)? {
            run.write_bytes(&name, &bytes)?;
        }
        // A process that was killed after its last cell leaves a complete run without its notes.
        if share > 0.0 || !run.path().join(TIMING).exists() {
            let jobs = assignment.threads::<E>(complete.len());
            let timing = Timing::since(start, share, jobs, assignment.command);
            run.write_json(TIMING, &timing)?;
        }
        // The summary is last: a directory that has one is complete.
        run.write_json(SUMMARY, &Results::of::<E>(&summary))?;
    }
    let failures = names.into_iter().zip(outcomes);
    Ok(Done {
        summary,
        failures: failures
            .filter_map(|(name, outcome)| Some((name, outcome.err()?)))
            .collect(),
        worked: share > 0.0,
    })
}

/// Runs one cell and records it; a run that has no other cell goes on to its end.
///
/// # Errors
///
/// As [`work`], and if the cell fails.
pub(crate) fn work_on_cell<E: Experiment>(
    experiment: &E,
    cell: usize,
    assignment: &Assignment,
    screen: &mut dyn Screen,
) -> Result<(), RunError> {
    let names = experiment.cells();
    let count = names.len();
    if count == 1 {
        return work(experiment, assignment, screen).map(|_| ());
    }
    let opened = assignment
        .directory
        .map(|path| open(experiment, path, assignment.may_grow));
    let opened = opened.transpose()?.map(Mutex::new);
    // The records of experiments that do not say which cell they are of are in the order of the cells.
    let mut known = recall(experiment, count, opened.as_ref(), cell)?;
    if known.recorded[cell] {
        return Ok(());
    }
    known.only = Some(cell);
    let others: Vec<bool> = (0..count).map(|other| other != cell).collect();
    let mut progress = Progress::new(Instant::now(), &others);
    let mut outcomes = cells::run(
        experiment,
        &names,
        known,
        opened.as_ref(),
        assignment,
        &mut progress,
        &mut OneOf { count, screen },
    )?;
    match outcomes.swap_remove(cell) {
        Some(Err(reason)) => Err(RunError::Unfinished {
            cell: names[cell].clone(),
            others: String::new(),
            reason,
        }),
        _ => Ok(()),
    }
}

/// The progress of a single cell, from that of a run whose other cells count as complete.
struct OneOf<'a> {
    count: usize,
    screen: &'a mut dyn Screen,
}

impl Screen for OneOf<'_> {
    fn progress(&mut self, share: f64, left: Option<Duration>) {
        let count = self.count as f64;
        self.screen
            .progress((share * count - (count - 1.0)).clamp(0.0, 1.0), left);
    }

    fn note(&mut self, text: &str) {
        self.screen.note(text);
    }
}

/// A summary as it is written: with its tables, whose columns say what the numbers are.
#[derive(Serialize)]
pub(crate) struct Results<'a, S> {
    #[serde(flatten)]
    summary: &'a S,
    tables: Vec<Table>,
}

impl<'a, S: Serialize> Results<'a, S> {
    pub(crate) fn of<E: Experiment<Summary = S>>(summary: &'a S) -> Self {
        // What is told in detail is in the summary itself.
        let tables = E::show(summary).tables.into_iter();
        Self {
            summary,
            tables: tables.filter(|table| !table.is_detail).collect(),
        }
    }
}

/// Opens the directory of a run, also one whose configuration may become this one.
pub(crate) fn open<E: Experiment>(
    experiment: &E,
    path: &Path,
    may_grow: bool,
) -> Result<Run, RunError> {
    let config = experiment.config();
    let recorded = |config: &E::Config| Recorded::new(E::ID, config.clone());
    let file = path.join(CONFIG);
    let old = match may_grow && file.exists() {
        true => Some(config::read::<E::Config>(&file, E::ID)?),
        false => None,
    };
    let grows = old.filter(|old| old != config && E::may_become(old, config));
    let Some(old) = grows else {
        return Ok(Run::open(path, &recorded(config))?);
    };
    let mut run = Run::open(path, &recorded(&old))?;
    experiment.check_growth(path)?;
    if E::FORGETS {
        run.forget_records()?;
    }
    run.reconfigure(&recorded(config))?;
    Ok(run)
}

/// What the records say, the first of which is that of the cell `first` if they do not say it themselves.
fn recall<E: Experiment>(
    experiment: &E,
    cells: usize,
    opened: Option<&Mutex<Run>>,
    first: usize,
) -> Result<Known<E::Outcome>, RunError> {
    let mut known = Known {
        outcomes: (0..cells).map(|_| None).collect(),
        recorded: vec![false; cells],
        only: None,
    };
    let Some(run) = opened else {
        return Ok(known);
    };
    let run = locked(run);
    for (place, record) in run.metrics::<E::Record>()?.into_iter().enumerate() {
        let (cell, outcome) = match experiment.recall(first + place, record)? {
            Recalled::Complete(cell, outcome) => (cell, Some(Ok(outcome))),
            Recalled::Elsewhere(cell) => (cell, None),
            Recalled::Part => continue,
        };
        if cell >= cells {
            return Err(RunError::TooManyRecords {
                path: run.path().to_owned(),
            });
        }
        known.recorded[cell] = true;
        known.outcomes[cell] = outcome;
    }
    Ok(known)
}

fn read_summary<E: Experiment>(directory: &Path) -> Result<Option<E::Summary>, RunError> {
    let path = directory.join(SUMMARY);
    let Some(bytes) = read_if_there(&path)? else {
        return Ok(None);
    };
    let summary = serde_json::from_slice(&bytes);
    summary.map(Some).map_err(|source| RunError::Summary {
        path,
        experiment: E::ID,
        source,
    })
}
