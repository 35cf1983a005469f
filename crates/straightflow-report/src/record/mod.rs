//! The directory of a run.
//!
//! | file | holds | written |
//! |---|---|---|
//! | `config.toml` | everything that is needed to repeat the run | when the run is opened, and when it grows |
//! | `metrics.jsonl` | one JSON object per line, in the order of the run | line by line |
//! | `summary.json` | results only, the same bits when the run is repeated | at the end |
//! | `timing.json` | wall time, machine, versions, date | at the end |
//! | `*.svg` | plots | at the end |
//! | `*.png` | pictures | at the end |
//!
//! A process may be killed at any time. The lines of `metrics.jsonl` that are complete stay, a torn
//! last one is cut off when the run is opened again, and every other file is either the old one or
//! the new one; a temporary file that is left over goes when the run is opened again.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use straightflow_report::Run;
//!
//! #[derive(Serialize)]
//! struct Config { experiment: &'static str, seeds: u64 }
//! #[derive(Serialize, Deserialize)]
//! struct Seed { seed: u64, rate: f64 }
//!
//! # let parent = tempfile::tempdir()?;
//! # let directory = parent.path().join("run");
//! let config = Config { experiment: "poisson", seeds: 3 };
//! let mut run = Run::open(&directory, &config)?;
//! let done: Vec<Seed> = run.metrics()?;
//! for seed in done.len() as u64..config.seeds {
//!     run.append(&Seed { seed, rate: 5.0 })?;
//! }
//! run.write_json("summary.json", &run.metrics::<Seed>()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod atomic;
mod claim;
mod error;
mod lines;

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

pub use atomic::is_temporary;
pub use error::RecordError;

/// The name of the file with the configuration.
pub const CONFIG: &str = "config.toml";
/// The name of the file with the records.
pub const METRICS: &str = "metrics.jsonl";
/// The name of the file with the results.
pub const SUMMARY: &str = "summary.json";
/// The name of the file with what differs between repetitions: times, machine, date.
pub const TIMING: &str = "timing.json";

/// A run that is open for writing. No other process can open it meanwhile.
#[derive(Debug)]
pub struct Run {
    path: PathBuf,
    /// `metrics.jsonl` for appending; it carries the lock.
    metrics: File,
    /// The bytes of `metrics.jsonl` that are complete lines.
    complete: u64,
    resumed: bool,
}

impl Run {
    /// Creates the directory with its `config.toml`, or opens one that holds the same configuration,
    /// byte for byte. A torn last line of `metrics.jsonl` is cut off, and temporary files of processes
    /// that were killed are removed; nothing else is changed.
    ///
    /// # Errors
    /// The directory cannot be made or written, holds another run, holds something that is no run,
    /// is open in another process, or has a `metrics.jsonl` with a line that is not JSON.
    pub fn open<C: Serialize>(path: &Path, config: &C) -> Result<Self, RecordError> {
        let text = config_text(path, config)?;
        claim::directory(path, &text)?;

        let file = path.join(METRICS);
        let unwritable = |reason| RecordError::Unwritable {
            path: file.clone(),
            reason,
        };
        let metrics = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .map_err(unwritable)?;
        let alone = match metrics.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => {
                return Err(RecordError::Busy {
                    path: path.to_owned(),
                });
            }
            // Some network file systems have no locks. They protect from a mistake and are not
            // needed for a run.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => false,
            Err(TryLockError::Error(source)) => return Err(unwritable(source)),
        };

        // Everything is read before anything is cut off, so that a corrupt file stays as it is.
        let bytes = read(&file)?;
        let complete = lines::complete(&bytes);
        let records = lines::parse::<IgnoredAny>(&file, complete)?;
        if complete.len() < bytes.len() {
            metrics.set_len(complete.len() as u64).map_err(unwritable)?;
        }
        if alone {
            atomic::sweep(path);
        }
        Ok(Self {
            path: path.to_owned(),
            metrics,
            complete: complete.len() as u64,
            resumed: !records.is_empty(),
        })
    }

    /// Puts another configuration in the place of the recorded one, for a run that resumes under it. The
    /// summary goes first, because a directory that has one is complete.
    ///
    /// # Errors
    /// The configuration has no form in TOML, or a file cannot be removed or written.
    pub fn reconfigure<C: Serialize>(&self, config: &C) -> Result<(), RecordError> {
        let text = config_text(&self.path, config)?;
        let unwritable = |path: PathBuf, source| RecordError::Write { path, source };
        let summary = self.path.join(SUMMARY);
        match atomic::remove(&summary) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(unwritable(summary, error));
            }
            _ => {}
        }
        let config = self.path.join(CONFIG);
        write_file(&config, &text).map_err(|error| unwritable(config, error))
    }

    /// Removes all records, for a run whose results are to be recorded anew.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn forget_records(&mut self) -> Result<(), RecordError> {
        self.metrics
            .set_len(0)
            .map_err(|source| RecordError::Write {
                path: self.path.join(METRICS),
                source,
            })?;
        self.complete = 0;
        Ok(())
    }

    /// Whether there were records already when the run was opened.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// The directory of the run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was recorded so far, in this process or before.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not a `T`.
    pub fn metrics<T: DeserializeOwned>(&self) -> Result<Vec<T>, RecordError> {
        let file = self.path.join(METRICS);
        let bytes = read(&file)?;
        lines::parse(&file, lines::complete(&bytes))
    }

    /// Appends one record as one line of JSON, with one write to the file. Numbers that are not
    /// finite become `null`, as JSON has none.
    ///
    /// # Errors
    /// The record has no form in JSON, or the file cannot be written; then it ends after the last
    /// complete record.
    pub fn append<T: Serialize>(&mut self, record: &T) -> Result<(), RecordError> {
        let file = self.path.join(METRICS);
        let mut line = serde_json::to_vec(record).map_err(|source| RecordError::Json {
            path: file.clone(),
            source,
        })?;
        line.push(b'\n');
        self.append_line(&line, |out, line| out.write_all(line))
    }

    fn append_line(
        &mut self,
        line: &[u8],
        write: impl FnOnce(&mut File, &[u8]) -> io::Result<()>,
    ) -> Result<(), RecordError> {
        match write(&mut self.metrics, line) {
            Ok(()) => self.complete += line.len() as u64,
            Err(source) => {
                // A part of the line may be there. Were it to stay, the next record would be glued
                // to it. When it cannot be cut off either, the next `open` does it.
                let _ = self.metrics.set_len(self.complete);
                return Err(RecordError::Write {
                    path: self.path.join(METRICS),
                    source,
                });
            }
        }
        Ok(())
    }

    /// Writes a file of JSON as a whole: afterwards there is the new one or, after an error, the old
    /// one.
    ///
    /// # Errors
    /// The name is not a plain one, the value has no form in JSON, or the file cannot be written.
    pub fn write_json<T: Serialize>(&self, name: &str, value: &T) -> Result<(), RecordError> {
        let mut text = serde_json::to_string_pretty(value).map_err(|source| RecordError::Json {
            path: self.path.join(name),
            source,
        })?;
        text.push('\n');
        self.write_text(name, &text)
    }

    /// Writes a file of text as a whole: afterwards there is the new one or, after an error, the old
    /// one.
    ///
    /// # Errors
    /// The name is not a plain one, or the file cannot be written.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), RecordError> {
        self.write_bytes(name, text.as_bytes())
    }

    /// Writes a file of any kind as a whole: afterwards there is the new one or, after an error, the
    /// old one.
    ///
    /// # Errors
    /// The name is not a plain one, or the file cannot be written.
    pub fn write_bytes(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        let plain = Path::new(name).file_name() == Some(OsStr::new(name));
        if !plain || name == CONFIG || name == METRICS {
            return Err(RecordError::Name {
                name: name.to_owned(),
            });
        }
        let file = self.path.join(name);
        write_file_bytes(&file, bytes).map_err(|source| RecordError::Write { path: file, source })
    }
}

fn config_text<C: Serialize>(path: &Path, config: &C) -> Result<String, RecordError> {
    toml::to_string(config).map_err(|source| RecordError::Config {
        path: path.to_owned(),
        source,
    })
}

/// Replaces a file of text as a whole, through a temporary file beside it. After an error the old one
/// is unchanged.
///
/// # Errors
/// Those of the operating system.
pub fn write_file(path: &Path, text: &str) -> io::Result<()> {
    write_file_bytes(path, text.as_bytes())
}

/// Like [`write_file`], but fails if there is something at `path` already. Of several processes that try,
/// one succeeds.
///
/// # Errors
/// Those of the operating system.
pub fn create_file(path: &Path, text: &str) -> io::Result<()> {
    atomic::create(path, text)
}

/// [`write_file`] for files of any kind.
///
/// # Errors
/// Those of the operating system.
pub fn write_file_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    atomic::replace(path, |out| out.write_all(bytes))
}

/// What was recorded in the directory of a run that need not be open.
///
/// # Errors
/// The file cannot be read, or a line is not a `T`.
pub fn read_metrics<T: DeserializeOwned>(directory: &Path) -> Result<Vec<T>, RecordError> {
    let path = directory.join(METRICS);
    parse_lines(&path, &read(&path)?)
}

/// The records in the bytes of a `metrics.jsonl`, without a torn last line. The path is for messages.
pub(crate) fn parse_lines<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> Result<Vec<T>, RecordError> {
    lines::parse(path, lines::complete(bytes))
}

fn read(path: &Path) -> Result<Vec<u8>, RecordError> {
    fs::read(path).map_err(|source| RecordError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_was_written_in_part_is_taken_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let config = std::collections::BTreeMap::from([("experiment", "toy")]);
        let mut run = Run::open(directory.path(), &config).expect("a new run");
        run.append(&1).expect("appended");
        let error = run.append_line(b"22222\n", |out, line| {
            out.write_all(&line[..3])?;
            Err(ErrorKind::StorageFull.into())
        });
        let error = error.expect_err("the disk is full");
        assert!(matches!(error, RecordError::Write { .. }));
        run.append(&3).expect("there is room again");
        assert_eq!(run.metrics::<u64>().expect("records"), [1, 3]);
    }
}
