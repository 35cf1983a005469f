//! What can be wrong with a grid.

use std::io;
use std::path::PathBuf;

use straightflow_report::RecordError;

/// Why a cell was not run, or a grid not submitted or gathered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// There is nothing of that name.
    #[error("there is no directory {}", path.display())]
    NoDirectory {
        /// The name.
        path: PathBuf,
    },
    /// The directory has no grid.
    #[error("{} was not started with --submit: it has no cells.json", path.display())]
    NoGrid {
        /// The directory.
        path: PathBuf,
    },
    /// A file of the grid is not what was written there.
    #[error("{} is not a file of a grid", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// There is no such cell.
    #[error("there is no cell {cell}: the grid has {count}, numbered from 0")]
    NoCell {
        /// The number that was asked for.
        cell: usize,
        /// The number of cells.
        count: usize,
    },
    /// The experiment is not one of the list.
    #[error("the grid belongs to the experiment `{0}`, which this program does not have")]
    UnknownExperiment(String),
    /// The grid was made with other settings.
    #[error(
        "{} has a grid of other settings; gather it and remove its cells.json and grid before submitting",
        path.display()
    )]
    OtherSettings {
        /// The directory.
        path: PathBuf,
    },
    /// The wait for another process was interrupted.
    #[error("stopped while waiting for another process")]
    Stopped,
    /// Another process works on the cell.
    #[error("cell {cell} is being run by process {process} on {host}")]
    Busy {
        /// The cell.
        cell: usize,
        /// The machine of the other process.
        host: String,
        /// Its number.
        process: u32,
    },
    /// Another process took the cell over, because this one did not renew its lease.
    #[error("cell {cell} was taken over by another process; the work of this one is discarded")]
    TakenOver {
        /// The cell.
        cell: usize,
    },
    /// Cells are missing.
    #[error("{missing} of {count} cells are not done ({states}); `straightflow status` lists them")]
    Incomplete {
        /// How many.
        missing: usize,
        /// How many there are.
        count: usize,
        /// How many in which state.
        states: String,
    },
    /// There is nothing to submit.
    #[error("no cell is left to submit: {0}")]
    NothingLeft(&'static str),
    /// The scheduler is not there.
    #[error("sbatch was not found; {} was written and can be submitted elsewhere", script.display())]
    NoScheduler {
        /// The script.
        script: PathBuf,
    },
    /// The scheduler does not take the script.
    #[error("sbatch refused {}: {reason}", script.display())]
    Refused {
        /// The script.
        script: PathBuf,
        /// What it says.
        reason: String,
    },
    /// A file or directory cannot be written.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl GridError {
    /// Whether what was asked for is the mistake, and not what happened on the way.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::NoDirectory { .. }
            | Self::NoGrid { .. }
            | Self::Unreadable { .. }
            | Self::NoCell { .. }
            | Self::UnknownExperiment(_)
            | Self::OtherSettings { .. }
            | Self::NothingLeft(_) => true,
            Self::Record(error) => error.is_bad_input(),
            _ => false,
        }
    }

    /// Whether the same cell may be tried again later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}
