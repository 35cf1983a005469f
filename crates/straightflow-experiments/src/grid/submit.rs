//! From a run to an array of tasks.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use straightflow_report::record::{CONFIG, write_file};

use super::collect::recorded_cells;
use super::lease::unwritable;
use super::script::Script;
use super::{ATTEMPTS, CellState, Grid, GridError, SCRIPT, status};
use crate::arguments::Words;
use crate::experiment::Experiment;
use crate::runner::{RunError, open, read_if_there, repeating_words};

/// Who starts the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Slurm, through `sbatch`.
    Slurm,
    /// Whoever runs the script.
    Script,
}

/// The schedulers, in words.
pub(crate) const SCHEDULERS: &Words = &[
    ("slurm", "Write an array of tasks and hand it to sbatch"),
    ("script", "Write the array of tasks only"),
];

/// Which cells are submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Those that failed.
    Failed,
    /// Those with these numbers, in order.
    These(Vec<usize>),
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "failed" {
            return Ok(Self::Failed);
        }
        let mut cells = Vec::new();
        for part in text.split(',') {
            let (start, end) = part.split_once('-').unwrap_or((part, part));
            let number = |word: &str| word.parse::<usize>().ok();
            match (number(start), number(end)) {
                (Some(start), Some(end)) if start <= end && end - start < 1_000_000 => {
                    cells.extend(start..=end);
                }
                _ => return Err("`failed`, or numbers such as 3,7-9, are wanted".to_owned()),
            }
        }
        cells.sort_unstable();
        cells.dedup();
        Ok(Self::These(cells))
    }
}

/// How a grid is to be submitted.
pub(crate) struct Submission<'a> {
    pub(crate) scheduler: Scheduler,
    pub(crate) directory: &'a Path,
    /// The command line.
    pub(crate) words: &'a [String],
    pub(crate) may_grow: bool,
    pub(crate) selection: Option<&'a Selection>,
    pub(crate) lease_seconds: u64,
    pub(crate) cpus: u16,
    pub(crate) limit: Option<u32>,
    pub(crate) partition: Option<&'a str>,
    pub(crate) time: Option<&'a str>,
}

/// A grid that was submitted, or whose script was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The directory of the run.
    pub directory: PathBuf,
    /// The script.
    pub script: PathBuf,
    /// The number of tasks.
    pub tasks: usize,
    /// The number of cells.
    pub cells: usize,
    /// The number of the job, if it was submitted.
    pub job: Option<String>,
}

/// Writes the files of a grid, and submits it if that was asked for.
pub(crate) fn submit<E: Experiment>(
    experiment: &E,
    submission: &Submission,
) -> Result<Submitted, RunError> {
    let directory = submission.directory;
    // Refuses a directory that is not one for this run.
    drop(open(experiment, directory, submission.may_grow)?);
    let grid = match Grid::find(directory)? {
        Some(grid) if grid.fits(directory)? => grid,
        Some(_) => {
            let path = directory.to_owned();
            return Err(GridError::OtherSettings { path }.into());
        }
        None => new_grid(experiment, submission)?,
    };
    let grid = Grid {
        lease_seconds: submission.lease_seconds,
        ..grid
    };
    if let Some(Selection::These(cells)) = submission.selection {
        cells.iter().try_for_each(|cell| grid.check(*cell))?;
    }
    grid.write(directory)?;
    let cells = select(directory, submission.selection)?;
    let log = directory.join(ATTEMPTS).join("log");
    std::fs::create_dir_all(&log).map_err(|source| unwritable(&log, source))?;
    let script = write_script(E::ID, &cells, submission)?;
    let job = match submission.scheduler {
        Scheduler::Slurm => Some(sbatch(&script)?),
        Scheduler::Script => None,
    };
    Ok(Submitted {
        directory: directory.to_owned(),
        script,
        tasks: cells.len(),
        cells: grid.cells.len(),
        job,
    })
}

fn new_grid<E: Experiment>(experiment: &E, submission: &Submission) -> Result<Grid, RunError> {
    let config = read_if_there(&submission.directory.join(CONFIG))?.unwrap_or_default();
    let cells = experiment.cells();
    let recorded = recorded_cells(experiment, submission.directory, cells.len())?;
    Ok(Grid {
        experiment: E::ID.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: repeating_words(submission.words),
        config: String::from_utf8_lossy(&config).into_owned(),
        lease_seconds: submission.lease_seconds,
        recorded: (0..cells.len()).filter(|cell| recorded[*cell]).collect(),
        cells,
    })
}

/// The cells that were asked for and are left, in order; otherwise all that nobody works on.
fn select(directory: &Path, selection: Option<&Selection>) -> Result<Vec<usize>, GridError> {
    let wanted = |cell: usize, state: &CellState| match (selection, state) {
        (_, CellState::Done { .. } | CellState::Recorded) => false,
        (Some(Selection::Failed), state) => matches!(state, CellState::Failed { .. }),
        (Some(Selection::These(cells)), _) => cells.contains(&cell),
        (None, state) => !matches!(state, CellState::Running { .. }),
    };
    let cells = status(directory)?.cells.into_iter();
    let cells = cells.filter(|one| wanted(one.cell, &one.state));
    let cells: Vec<usize> = cells.map(|one| one.cell).collect();
    match cells.is_empty() {
        true => Err(GridError::NothingLeft(match selection {
            Some(Selection::Failed) => "none has failed",
            Some(Selection::These(_)) => "those are done",
            None => "all are done or running",
        })),
        false => Ok(cells),
    }
}

fn write_script(id: &str, cells: &[usize], submission: &Submission) -> Result<PathBuf, GridError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| unwritable(path, error));
    let directory = absolute(submission.directory)?;
    let path = directory.join(SCRIPT);
    let binary = std::env::current_exe().map_err(|error| unwritable(&path, error))?;
    let script = Script {
        experiment: id,
        cells,
        binary: &binary,
        origin: &absolute(Path::new("."))?,
        directory: &directory,
        cpus: submission.cpus,
        limit: submission.limit,
        partition: submission.partition,
        time: submission.time,
    };
    write_file(&path, &script.text()).map_err(|source| unwritable(&path, source))?;
    Ok(path)
}

/// Submits a script; the number of its job.
fn sbatch(script: &Path) -> Result<String, GridError> {
    let script_path = || script.to_owned();
    let output = Command::new("sbatch")
        .arg("--parsable")
        .arg(script)
        .output();
    let output = output.map_err(|error| match error.kind() {
        ErrorKind::NotFound => GridError::NoScheduler {
            script: script_path(),
        },
        _ => GridError::Refused {
            script: script_path(),
            reason: error.to_string(),
        },
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        // With several clusters, the name of one follows.
        true => Ok(text(&output.stdout)
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned()),
        false => Err(GridError::Refused {
            script: script_path(),
            reason: text(&output.stderr).replace('\n', " "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_command_line_are_schedulers() {
        crate::arguments::assert_known::<Scheduler>(SCHEDULERS);
    }

    #[test]
    fn cells_are_chosen_by_numbers_or_by_their_failure() {
        assert_eq!("failed".parse(), Ok(Selection::Failed));
        assert_eq!("7-9,3,8".parse(), Ok(Selection::These(vec![3, 7, 8, 9])));
        for bad in ["", "x", "3-1", "1,,2", "-1", "0-99999999999"] {
            assert!(bad.parse::<Selection>().is_err(), "{bad}");
        }
    }
}
