//! What can be wrong with the directory of a run.

use std::io;
use std::path::PathBuf;

/// Why a run could not be opened, read or written. Each message is one sentence; where the operating
/// system has more to say, it is the [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The configuration has no form in TOML.
    #[error("the configuration of {} cannot be written as TOML", path.display())]
    Config {
        /// The directory of the run.
        path: PathBuf,
        /// What TOML cannot express.
        source: toml::ser::Error,
    },
    /// The directory cannot be made, or not be written to.
    #[error(
        "{} cannot be used for a run ({reason}); choose a writable directory",
        path.display()
    )]
    Unwritable {
        /// The directory, or the file in it, that refused.
        path: PathBuf,
        /// The operating system's reason.
        reason: io::Error,
    },
    /// The directory belongs to a run with another configuration.
    #[error(
        "{} holds a different run: its config.toml differs in `{line}`; choose another directory, or use \
         the recorded settings (a list that may grow must keep what is recorded)", path.display()
    )]
    AnotherRun {
        /// The directory.
        path: PathBuf,
        /// The first line of the recorded configuration that is not in the new one, or the other
        /// way round.
        line: String,
    },
    /// The directory has files but no `config.toml`.
    #[error(
        "{} is neither empty nor a run: it has no config.toml; choose another directory",
        path.display()
    )]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// Another process has the run open.
    #[error("{} is in use by another process; wait until it has finished", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A line of the records is not what was written there.
    #[error(
        "{}, line {line}: {reason}; repair or remove that line, or choose another directory",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The name is not one that a file of a run can have.
    #[error(
        "`{name}` cannot be a file of a run: it has to be a plain name that is neither config.toml \
         nor metrics.jsonl"
    )]
    Name {
        /// The refused name.
        name: String,
    },
    /// A value has no form in JSON.
    #[error("{} cannot be written as JSON", path.display())]
    Json {
        /// The file that it was meant for.
        path: PathBuf,
        /// What JSON cannot express.
        source: serde_json::Error,
    },
    /// A file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file cannot be written, for example because the disk is full.
    #[error("{} cannot be written", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

impl RecordError {
    /// Whether the directory that was asked for is the mistake (a wrong argument, exit code 2 of a
    /// command line), and not a run that failed on its way.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Unwritable { .. }
            | Self::AnotherRun { .. }
            | Self::NotARun { .. }
            | Self::Busy { .. }
            | Self::Corrupt { .. }
            | Self::Read { .. } => true,
            Self::Config { .. } | Self::Name { .. } | Self::Json { .. } | Self::Write { .. } => {
                false
            }
        }
    }
}
