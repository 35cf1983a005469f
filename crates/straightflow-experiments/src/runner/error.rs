//! Why a run did not come to its end.

use std::error::Error;
use std::path::PathBuf;

use straightflow_report::RecordError;

use super::config::ConfigError;
use crate::grid::GridError;

type Cause = Box<dyn Error + Send + Sync>;

/// Why a run could not begin, or did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It was asked to stop, by a signal or because another cell failed.
    #[error("the run was stopped")]
    Stopped,
    /// Invalid settings.
    #[error(transparent)]
    Refused(Cause),
    /// Something went wrong on the way.
    #[error(transparent)]
    Failed(Cause),
    /// A file with a configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory of the run.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A checkpoint that cannot be resumed.
    #[error("{} cannot be used; move it away to start over", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Cause,
    },
    /// A summary that is not one.
    #[error("{} is not a summary of `{experiment}`", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// The experiment.
        experiment: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// More records than cells.
    #[error("{} has more records than the run has cells; choose another directory", path.display())]
    TooManyRecords {
        /// The directory.
        path: PathBuf,
    },
    /// Cells that failed, while the others have their results.
    #[error("{cell} failed{others}: {reason}")]
    Unfinished {
        /// The first of them.
        cell: String,
        /// How many others there are, in words.
        others: String,
        /// Why the first one failed.
        reason: String,
    },
    /// One of the cells that run at once, each with its name.
    #[error("{cell}")]
    Cell {
        /// The name of the cell.
        cell: String,
        /// Why.
        source: Box<RunError>,
    },
    /// A grid or one of its cells.
    #[error(transparent)]
    Grid(GridError),
    /// The threads could not be made.
    #[error("no thread could be started")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

impl RunError {
    /// What was asked for is the mistake.
    pub fn refused(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Refused(Box::new(error))
    }

    /// It is what happened on the way.
    pub fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }

    /// Whether what was asked for is the mistake, and not what happened on the way.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Refused(_) | Self::Config(_) | Self::Summary { .. } => true,
            Self::TooManyRecords { .. } => true,
            Self::Record(error) => error.is_bad_input(),
            Self::Grid(error) => error.is_bad_input(),
            Self::Cell { source, .. } => source.is_bad_input(),
            Self::Stopped
            | Self::Failed(_)
            | Self::Checkpoint { .. }
            | Self::Unfinished { .. }
            | Self::Threads(_) => false,
        }
    }
}

impl From<GridError> for RunError {
    fn from(error: GridError) -> Self {
        match error {
            GridError::Stopped => Self::Stopped,
            error => Self::Grid(error),
        }
    }
}

/// An error with all of its causes, in one line.
pub(crate) fn in_one_line(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line += &format!(": {error}");
        cause = error.source();
    }
    line
}
