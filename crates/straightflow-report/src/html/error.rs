//! What can be wrong with the runs of a report, or with the place for it.

use std::io;
use std::path::PathBuf;

use crate::record::RecordError;

/// Why there is no report. Each message is one sentence; where the operating system has more to say,
/// it is the [`source`](std::error::Error::source). All of them are mistakes of the input.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// No directory was given.
    #[error("a report needs at least one run directory")]
    Nothing,
    /// There is nothing of that name.
    #[error("there is no directory {}", path.display())]
    NoDirectory {
        /// The name.
        path: PathBuf,
    },
    /// A directory is not one of a run.
    #[error("{} is not a run: it has no config.toml", path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// The run has no results.
    #[error(
        "{} has no summary.json, so the run has not finished: repeat its command to resume it, or look at a grid with `straightflow status`",
        path.display()
    )]
    Unfinished {
        /// The directory.
        path: PathBuf,
    },
    /// Two directories hold the same run.
    #[error("{} and {} hold the same run; name one of them", first.display(), second.display())]
    Duplicate {
        /// The directory that came first.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// A file has another form than that of a run.
    #[error("{}, line {line}: {reason}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A file is well-formed, but not what a run has there.
    #[error("{}: {reason}", path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The records of a run are not what was written there.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// There is a file in the place of the report that is none.
    #[error("{} exists and is not a report of straightflow; choose another file", path.display())]
    NotAReport {
        /// The file.
        path: PathBuf,
    },
    /// The report cannot be written.
    #[error("{} cannot be written ({reason}); choose another file", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        reason: io::Error,
    },
}
