//! Grids: the cells of a run as tasks of their own, on machines that share a directory. There is no daemon;
//! a scheduler such as Slurm, or anything else that can start a process, runs `work_on` for each cell.
//!
//! | below the directory of the run | holds | is written by |
//! |---|---|---|
//! | `cells.json` | the experiment, its settings, the names of the cells | `--submit` |
//! | `grid.sbatch` | the array of tasks | `--submit` |
//! | `grid/7/2/run/` | cell 7 as its second attempt leaves it: the run with that cell alone | that attempt |
//! | `grid/7/2/lease.json` | who works on it, renewed again and again | that attempt |
//! | `grid/7/2/end.json` | how the attempt ended, unless it was killed | that attempt |
//! | `grid/7/done.json` | the attempt that counts | the first that is complete |
//! | `grid/log/7.txt` | what the tasks of the cell print | the scheduler |
//!
//! No file is ever written by two processes, so a task that was declared dead and is not cannot spoil
//! anything: it goes on in a directory that nobody else writes to, finds that there is a newer attempt, and
//! steps back. If it ends first all the same, its result counts, and the newer attempt steps back.

mod collect;
mod error;
mod files;
mod lease;
mod script;
mod status;
mod submit;
mod work;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use straightflow_report::record::{CONFIG, write_file};

pub(crate) use collect::{collect, failures_of};
pub use error::GridError;
pub use lease::{Claim, Ending, How, Lease, Worker, claim};
pub use script::TRY_AGAIN;
pub use status::{CellState, CellStatus, GridStatus, status};
pub(crate) use submit::{SCHEDULERS, Submission, submit};
pub use submit::{Scheduler, Selection, Submitted};
pub(crate) use work::{Task, work_on};

use crate::runner::read_if_there;

/// The name of the file that says what the cells are.
const CELLS_FILE: &str = "cells.json";
/// The name of the script.
const SCRIPT: &str = "grid.sbatch";
/// The directory of the attempts.
const ATTEMPTS: &str = "grid";

/// What the tasks of a grid have to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Grid {
    /// The experiment.
    pub experiment: String,
    /// The version of the program.
    pub version: String,
    /// The command line, the name of the program first, without what concerns the grid.
    pub command: Vec<String>,
    /// The `config.toml` of the run.
    pub config: String,
    /// The seconds after which a lease that nobody renews has expired.
    pub lease_seconds: u64,
    /// Cells that were recorded in the directory of the run before there was a grid.
    pub recorded: Vec<usize>,
    /// The names of all cells.
    pub cells: Vec<String>,
}

impl Grid {
    /// The grid of a directory.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be read.
    pub fn read(directory: &Path) -> Result<Self, GridError> {
        let found = Self::find(directory)?;
        let path = || directory.to_owned();
        found.ok_or_else(|| match directory.exists() {
            true => GridError::NoGrid { path: path() },
            false => GridError::NoDirectory { path: path() },
        })
    }

    /// The grid of a directory that may have one.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn find(directory: &Path) -> Result<Option<Self>, GridError> {
        let path = directory.join(CELLS_FILE);
        let Some(bytes) = read_if_there(&path)? else {
            return Ok(None);
        };
        let grid = serde_json::from_slice(&bytes);
        grid.map(Some)
            .map_err(|source| GridError::Unreadable { path, source })
    }

    /// Whether the run of the directory still has the settings that the grid was made with.
    fn fits(&self, directory: &Path) -> Result<bool, GridError> {
        let config = read_if_there(&directory.join(CONFIG))?;
        Ok(config.is_some_and(|config| config == self.config.as_bytes()))
    }

    fn write(&self, directory: &Path) -> Result<(), GridError> {
        let text = serde_json::to_string_pretty(self).expect("plain values with text as keys");
        let path = directory.join(CELLS_FILE);
        write_file(&path, &(text + "\n")).map_err(|source| GridError::Write { path, source })
    }

    /// Refuses a number that no cell has.
    fn check(&self, cell: usize) -> Result<(), GridError> {
        match self.cells.len() {
            count if cell < count => Ok(()),
            count => Err(GridError::NoCell { cell, count }),
        }
    }

    fn lease(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.lease_seconds)
    }
}

/// The directory of the attempts at a cell.
fn place_of(directory: &Path, cell: usize) -> PathBuf {
    directory.join(ATTEMPTS).join(cell.to_string())
}
