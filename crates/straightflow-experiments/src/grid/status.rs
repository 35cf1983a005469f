//! How far the cells of a grid are.

use std::path::Path;

use serde::Serialize;

use super::lease::{Ending, How, Lease, Place, Worker};
use super::{Grid, GridError, place_of};

/// How far a cell is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum CellState {
    /// It was recorded in the directory of the run before there was a grid.
    Recorded,
    /// It is complete.
    Done {
        /// By whom.
        worker: Worker,
        /// The seconds of the attempt that counts.
        seconds: f64,
    },
    /// A process works on it.
    Running {
        /// Who.
        worker: Worker,
        /// The share that is done.
        share: f64,
        /// The seconds since its last sign of life.
        heartbeat: u64,
    },
    /// A process worked on it and has given no sign of life for longer than its lease.
    Silent {
        /// Who.
        worker: Worker,
        /// The seconds since its last sign of life.
        heartbeat: u64,
    },
    /// It failed.
    Failed {
        /// Where.
        worker: Worker,
        /// Why.
        reason: String,
    },
    /// A signal stopped it; the next task goes on from there.
    Stopped {
        /// Who worked on it.
        worker: Worker,
    },
    /// Nobody has begun with it.
    Waiting,
}

impl CellState {
    /// The state in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Recorded | Self::Done { .. } => "done",
            Self::Running { .. } => "running",
            Self::Silent { .. } => "silent",
            Self::Failed { .. } => "failed",
            Self::Stopped { .. } => "stopped",
            Self::Waiting => "waiting",
        }
    }
}

/// A cell and how far it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellStatus {
    /// Its number.
    pub cell: usize,
    /// Its name.
    pub name: String,
    /// The number of attempts.
    pub attempts: usize,
    /// How far it is.
    #[serde(flatten)]
    pub state: CellState,
}

/// How far a grid is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GridStatus {
    /// The experiment.
    pub experiment: String,
    /// All cells.
    pub cells: Vec<CellStatus>,
}

impl GridStatus {
    /// How many cells are in which state, in words.
    pub fn counts(&self) -> String {
        let words = ["done", "running", "silent", "failed", "stopped", "waiting"];
        let count = |word| {
            let states = self.cells.iter().map(|cell| cell.state.word());
            states.filter(|other| *other == word).count()
        };
        let counts = words.map(|word| (count(word), word)).into_iter();
        let counts: Vec<String> = counts
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        counts.join(", ")
    }
}

/// How far the grid of a directory is.
///
/// # Errors
///
/// If there is none, or a file cannot be read.
pub fn status(directory: &Path) -> Result<GridStatus, GridError> {
    let grid = Grid::read(directory)?;
    let cell = |(cell, name): (usize, &String)| -> Result<CellStatus, GridError> {
        let place = place_of(directory, cell);
        let attempts = Place(&place).attempts()?;
        Ok(CellStatus {
            cell,
            name: name.clone(),
            attempts: attempts.len(),
            state: state(&grid, cell, &Place(&place), attempts.last().copied())?,
        })
    };
    let cells: Result<Vec<CellStatus>, GridError> =
        grid.cells.iter().enumerate().map(cell).collect();
    Ok(GridStatus {
        cells: cells?,
        experiment: grid.experiment,
    })
}

fn state(
    grid: &Grid,
    cell: usize,
    place: &Place,
    last: Option<u32>,
) -> Result<CellState, GridError> {
    if grid.recorded.contains(&cell) {
        return Ok(CellState::Recorded);
    }
    if let Some(Ending {
        worker, seconds, ..
    }) = place.done()?
    {
        return Ok(CellState::Done { worker, seconds });
    }
    let Some(last) = last else {
        return Ok(CellState::Waiting);
    };
    if let Some(end) = place.end(last)? {
        let worker = end.worker;
        return Ok(match end.how {
            How::Failed => CellState::Failed {
                worker,
                reason: end.reason.unwrap_or_default(),
            },
            _ => CellState::Stopped { worker },
        });
    }
    Ok(match place.lease(last)? {
        Some((Lease { worker, share, .. }, age)) => match age > grid.lease() {
            true => CellState::Silent {
                worker,
                heartbeat: age.as_secs(),
            },
            false => CellState::Running {
                worker,
                share,
                heartbeat: age.as_secs(),
            },
        },
        // It was claimed a moment ago.
        None => CellState::Waiting,
    })
}
