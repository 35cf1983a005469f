//! Who works on a cell.
//!
//! An attempt is a directory, and making one either succeeds for a single process or fails, on every file
//! system. It belongs to its maker for good. A lease only says whether its maker is alive: it has expired
//! when its bytes have not changed for a while *on the clock of the process that watches*, so clocks of
//! different machines are never compared.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use straightflow_report::RecordError;
use straightflow_report::record::{create_file, write_file};

use super::GridError;
use crate::runner::{cpu, now, read_if_there};

const LEASE: &str = "lease.json";
const END: &str = "end.json";
const DONE: &str = "done.json";
const READY: &str = "ready";
const RUN: &str = "run";

/// How often a lease is renewed before it expires.
pub(super) const BEATS: u32 = 6;

/// A process and its machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// The machine; with Slurm, its name of the node.
    pub host: String,
    /// The number of the process.
    pub process: u32,
    /// The job of the scheduler.
    pub job: Option<String>,
    /// The processor. Matrix products have the same bits only on the same model.
    pub cpu: String,
    /// When it began.
    pub since: String,
}

impl Worker {
    /// This process.
    pub fn this() -> Self {
        let variable = |name| std::env::var(name).ok();
        let system = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = variable("SLURMD_NODENAME")
            .or_else(system)
            .or_else(|| variable("HOSTNAME"))
            .unwrap_or_else(|| "unknown".to_owned());
        Self {
            host: host.trim().to_owned(),
            process: std::process::id(),
            job: variable("SLURM_JOB_ID"),
            cpu: cpu(),
            since: now(),
        }
    }
}

/// The sign of life of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// Who gives it.
    pub worker: Worker,
    /// How often it was renewed.
    pub beats: u64,
    /// The share of the cell that is done.
    pub share: f64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// In a word.
    pub how: How,
    /// Why it failed.
    pub reason: Option<String>,
    /// The attempt.
    pub attempt: u32,
    /// Who made it.
    pub worker: Worker,
    /// The seconds that it took.
    pub seconds: f64,
}

/// How an attempt ended, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The cell is complete.
    Done,
    /// It cannot be completed.
    Failed,
    /// A signal stopped it; what it did is kept.
    Stopped,
    /// Another attempt took over.
    SteppedBack,
}

/// The directory of a cell.
pub(super) struct Place<'a>(pub(super) &'a Path);

impl Place<'_> {
    pub(super) fn attempt(&self, number: u32) -> PathBuf {
        self.0.join(number.to_string())
    }

    /// The numbers of all attempts, in order.
    pub(super) fn attempts(&self) -> Result<Vec<u32>, GridError> {
        let unreadable = |source| RecordError::Read {
            path: self.0.to_owned(),
            source,
        };
        let entries = match std::fs::read_dir(self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(error).into()),
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The attempt that counts, if there is one.
    pub(super) fn done(&self) -> Result<Option<Ending>, GridError> {
        read_json(&self.0.join(DONE))
    }

    pub(super) fn end(&self, attempt: u32) -> Result<Option<Ending>, GridError> {
        read_json(&self.attempt(attempt).join(END))
    }

    /// The lease of an attempt and how long ago it was renewed, by the clock of this machine.
    pub(super) fn lease(&self, attempt: u32) -> Result<Option<(Lease, Duration)>, GridError> {
        let path = self.attempt(attempt).join(LEASE);
        let changed = std::fs::metadata(&path).and_then(|data| data.modified());
        let age = changed.ok().and_then(|time| time.elapsed().ok());
        let lease = read_json(&path)?;
        Ok(lease.map(|lease| (lease, age.unwrap_or_default())))
    }

    /// The directory of the run of an attempt.
    pub(super) fn run(&self, attempt: u32) -> PathBuf {
        self.attempt(attempt).join(RUN)
    }

    /// The last attempt that has all that was known before it.
    pub(super) fn last_ready(&self) -> Result<Option<u32>, GridError> {
        let ready = |attempt: &u32| self.attempt(*attempt).join(READY).exists();
        Ok(self.attempts()?.into_iter().rev().find(ready))
    }
}

/// A cell that this process works on.
#[derive(Debug)]
pub struct Claim {
    place: PathBuf,
    attempt: u32,
    lease: Lease,
    start: Instant,
    ended: bool,
}

/// Claims a cell, in the directory `place` of its attempts; none if it is done. A lease of another process
/// is watched until it is renewed, which ends in [`GridError::Busy`], or until it expires.
///
/// # Errors
///
/// Another process that is alive, [`GridError::Stopped`], or files that cannot be read or written.
pub fn claim(
    place: &Path,
    cell: usize,
    lease: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Claim>, GridError> {
    let at = Place(place);
    std::fs::create_dir_all(place).map_err(|source| unwritable(place, source))?;
    loop {
        if at.done()?.is_some() {
            return Ok(None);
        }
        let last = at.attempts()?.last().copied();
        if let Some(last) = last
            && let Some(other) = watch(&at, last, lease, stop)?
        {
            let Worker { host, process, .. } = other.worker;
            return Err(GridError::Busy {
                cell,
                host,
                process,
            });
        }
        // It may have been completed while it was watched.
        if at.done()?.is_some() {
            return Ok(None);
        }
        let attempt = last.unwrap_or(0) + 1;
        let path = at.attempt(attempt);
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            // Another process was faster; it is alive.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(source) => return Err(unwritable(&path, source)),
        }
        let lease = Lease {
            worker: Worker::this(),
            beats: 0,
            share: 0.0,
        };
        let mut claim = Claim {
            place: place.to_owned(),
            attempt,
            lease,
            start: Instant::now(),
            ended: false,
        };
        claim.renew(0.0)?;
        return Ok(Some(claim));
    }
}

/// Watches an attempt until it is known to be alive, and then has its lease, or until its lease has expired
/// or it has ended, or there is something newer.
fn watch(
    at: &Place,
    attempt: u32,
    lease: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Lease>, GridError> {
    let path = at.attempt(attempt).join(LEASE);
    let first = read_if_there(&path)?;
    let start = Instant::now();
    let pause = (lease / 50).clamp(Duration::from_millis(5), Duration::from_millis(500));
    loop {
        let newest = at.attempts()?.last().copied();
        if at.end(attempt)?.is_some() || at.done()?.is_some() || newest != Some(attempt) {
            return Ok(None);
        }
        // A file that is being replaced may be unreadable for a moment on network file systems.
        let bytes = read_if_there(&path).unwrap_or_else(|_| first.clone());
        if let Some(bytes) = bytes.filter(|bytes| Some(bytes) != first.as_ref()) {
            return match serde_json::from_slice(&bytes) {
                Ok(lease) => Ok(Some(lease)),
                Err(source) => Err(GridError::Unreadable { path, source }),
            };
        }
        if start.elapsed() >= lease {
            return Ok(None);
        }
        if stop() {
            return Err(GridError::Stopped);
        }
        std::thread::sleep(pause);
    }
}

impl Claim {
    /// The number of the attempt, from 1 on.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The directory of the run of this attempt. Nobody else writes to it.
    pub fn run(&self) -> PathBuf {
        Place(&self.place).run(self.attempt)
    }

    /// Says that all that was known before is in the directory of the run.
    pub(super) fn set_ready(&self) -> Result<(), GridError> {
        self.write(READY, "")
    }

    /// Renews the lease.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn renew(&mut self, share: f64) -> Result<(), GridError> {
        self.lease.share = share;
        self.lease.beats += 1;
        self.write(LEASE, &json(&self.lease))
    }

    /// Whether another attempt has taken over, or is complete.
    ///
    /// # Errors
    ///
    /// If that cannot be told.
    pub fn is_lost(&self) -> Result<bool, GridError> {
        let at = Place(&self.place);
        let newest = at.attempts()?.last().copied();
        Ok(newest > Some(self.attempt) || at.done()?.is_some())
    }

    /// The cell is complete; false if another attempt was faster, whose result counts.
    ///
    /// # Errors
    ///
    /// If that cannot be written.
    pub fn complete(mut self) -> Result<bool, GridError> {
        let path = self.place.join(DONE);
        let ending = self.ending(How::Done, None);
        match create_file(&path, &json(&ending)) {
            Ok(()) => {}
            Err(_) if Place(&self.place).done()?.is_some() => {
                self.end(How::SteppedBack, None)?;
                return Ok(false);
            }
            Err(source) => return Err(unwritable(&path, source)),
        }
        self.end(How::Done, None)?;
        Ok(true)
    }

    /// The attempt ends without a result.
    ///
    /// # Errors
    ///
    /// If that cannot be written.
    pub fn give_up(mut self, how: How, reason: Option<String>) -> Result<(), GridError> {
        self.end(how, reason)
    }

    fn end(&mut self, how: How, reason: Option<String>) -> Result<(), GridError> {
        self.ended = true;
        self.write(END, &json(&self.ending(how, reason)))
    }

    fn ending(&self, how: How, reason: Option<String>) -> Ending {
        Ending {
            how,
            reason,
            attempt: self.attempt,
            worker: self.lease.worker.clone(),
            seconds: (self.start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), GridError> {
        let path = Place(&self.place).attempt(self.attempt).join(name);
        write_file(&path, text).map_err(|source| unwritable(&path, source))
    }
}

impl Drop for Claim {
    /// A cell that panics has failed.
    fn drop(&mut self) {
        if std::thread::panicking() && !self.ended {
            let _ = self.end(How::Failed, Some("it panicked; see its log".to_owned()));
        }
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("plain values with text as keys") + "\n"
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, GridError> {
    let Some(bytes) = read_if_there(path)? else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|source| GridError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

pub(super) fn unwritable(path: &Path, source: io::Error) -> GridError {
    GridError::Write {
        path: path.to_owned(),
        source,
    }
}
