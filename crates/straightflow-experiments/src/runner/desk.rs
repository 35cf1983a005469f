//! What a cell has while it runs: its place in the records, its checkpoint, and who is told about it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use straightflow_report::{RecordError, Run};

use super::{Assignment, RunError, Screen, work};
use crate::experiment::Experiment;

/// The name of the file with the last checkpoint.
pub const CHECKPOINT: &str = "checkpoint.bin";
/// The directory with the cells that are runs of their own.
pub const CELLS: &str = "cells";
/// Shares that differ by less are not told.
const NEWS_WORTH: f64 = 0.002;

/// What is heard of a cell.
pub(super) enum News {
    /// The share of it that is done.
    Share(f64),
    /// A part of it is complete.
    Part,
    /// A line to be shown.
    Note(String),
}

/// The desk that a cell works at.
pub struct Desk<'a> {
    pub(super) run: Option<&'a Mutex<Run>>,
    pub(super) command: &'a str,
    pub(super) stop: &'a (dyn Fn() -> bool + Sync),
    pub(super) tell: &'a (dyn Fn(News) + Sync),
    /// The share that was told last, as bits.
    pub(super) told: AtomicU64,
    /// Whether there was something left to do.
    pub(super) worked: AtomicBool,
}

impl std::fmt::Debug for Desk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk<'_> {
    /// Whether the cell is asked to stop.
    pub fn is_stopped(&self) -> bool {
        (self.stop)()
    }

    /// Ends a cell that is asked to stop.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`] if it is.
    pub fn check(&self) -> Result<(), RunError> {
        match self.is_stopped() {
            true => Err(RunError::Stopped),
            false => Ok(()),
        }
    }

    /// The share of the cell that is done, from 0 to 1. What the first call says was done before.
    pub fn progress(&self, share: f64) {
        let last = f64::from_bits(self.told.load(Ordering::Relaxed));
        // The first one is told in any case: nothing is larger than what is not a number.
        if last.is_nan() || share >= last + NEWS_WORTH || share >= 1.0 {
            self.told.store(share.to_bits(), Ordering::Relaxed);
            (self.tell)(News::Share(share));
        }
    }

    /// A part of the cell is complete: its pace tells how long the rest takes.
    pub fn finish_part(&self) {
        (self.tell)(News::Part);
    }

    /// A line beside the progress.
    pub fn note(&self, text: String) {
        (self.tell)(News::Note(text));
    }

    /// What was recorded so far, in this process or before; nothing without a directory.
    ///
    /// # Errors
    ///
    /// If the records cannot be read.
    pub fn records<T: DeserializeOwned>(&self) -> Result<Vec<T>, RunError> {
        Ok(self.opened(|run| run.metrics())?.unwrap_or_default())
    }

    /// Records a part of the cell.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn append<T: Serialize>(&self, record: &T) -> Result<(), RunError> {
        self.opened(|run| run.append(record))?;
        Ok(())
    }

    /// The last checkpoint of the cell, if there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>, RunError> {
        match self.place() {
            Some(place) => Ok(read_if_there(&place.join(CHECKPOINT))?),
            None => Ok(None),
        }
    }

    /// Keeps a checkpoint in the place of the last one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn keep(&self, checkpoint: &[u8]) -> Result<(), RunError> {
        self.opened(|run| run.write_bytes(CHECKPOINT, checkpoint))?;
        Ok(())
    }

    /// The directory of the run, if it has one.
    pub fn place(&self) -> Option<PathBuf> {
        self.run.map(|run| locked(run).path().to_owned())
    }

    /// A cell that is a run of another experiment, in a directory of its own. One that is complete is only
    /// read.
    ///
    /// # Errors
    ///
    /// Those of the run.
    pub fn run<E: Experiment>(&self, experiment: &E, name: &str) -> Result<E::Summary, RunError> {
        let directory = self.place().map(|place| place.join(CELLS).join(name));
        let assignment = Assignment {
            directory: directory.as_deref(),
            jobs: 1,
            command: self.command,
            may_grow: true,
            failures: &[],
            stop: self.stop,
        };
        let done = work(experiment, &assignment, &mut Forward(self))?;
        self.worked.store(done.worked, Ordering::Relaxed);
        Ok(done.summary)
    }

    fn opened<T>(
        &self,
        act: impl FnOnce(&mut Run) -> Result<T, RecordError>,
    ) -> Result<Option<T>, RunError> {
        let opened = self.run.map(|run| act(&mut locked(run)));
        Ok(opened.transpose()?)
    }
}

/// A worker that panicked left complete files behind, as one that was killed does.
pub(super) fn locked(run: &Mutex<Run>) -> MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a file, or none if there is no such file.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, RecordError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RecordError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The progress of a run within a cell is that of the cell; its notes are nobody's.
struct Forward<'a, 'b>(&'a Desk<'b>);

impl Screen for Forward<'_, '_> {
    fn progress(&mut self, share: f64, _left: Option<Duration>) {
        self.0.progress(share);
    }

    fn note(&mut self, _text: &str) {}
}
