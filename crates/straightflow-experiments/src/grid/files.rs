//! Copies of run directories, also of one that somebody may still be writing to.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use straightflow_report::RecordError;
use straightflow_report::record::{CONFIG, METRICS, SUMMARY, is_temporary, write_file_bytes};

use super::GridError;
use super::lease::unwritable;
use crate::runner::{CELLS, CHECKPOINT, read_if_there};

/// Copies a run with everything below it. Every file is either a whole one, or records whose torn last line
/// is cut off later. A summary is looked for first and written last: where there is one, all else is there.
pub(super) fn copy_run(from: &Path, to: &Path) -> Result<(), GridError> {
    copy_run_without(from, to, &[])
}

/// [`copy_run`] without some of its files.
pub(super) fn copy_run_without(from: &Path, to: &Path, without: &[&str]) -> Result<(), GridError> {
    let summary = read_if_there(&from.join(SUMMARY))?;
    // Records may be ahead of a checkpoint, and are then written only once.
    copy_file(from, to, CHECKPOINT)?;
    let unreadable = |source| RecordError::Read {
        path: from.to_owned(),
        source,
    };
    for entry in fs::read_dir(from).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let aside = [SUMMARY, CHECKPOINT].iter().chain(without);
        if is_temporary(&name) || aside.copied().any(|other| name == other) {
            continue;
        }
        match entry.file_type().map_err(unreadable)?.is_dir() {
            true => copy_run(&entry.path(), &to.join(&name))?,
            false => copy_file(from, to, &name.to_string_lossy())?,
        }
    }
    match summary {
        Some(bytes) => write(to, SUMMARY, &bytes),
        None => Ok(()),
    }
}

/// Copies what the directory of a whole run has of one of its cells, for the first attempt at it: a run that
/// was begun on one machine goes on elsewhere.
pub(super) fn copy_cell(from: &Path, to: &Path, name: &str, alone: bool) -> Result<(), GridError> {
    copy_file(from, to, CONFIG)?;
    if alone {
        copy_file(from, to, CHECKPOINT)?;
        copy_file(from, to, METRICS)?;
    }
    copy_nested(from, to, name)
}

/// Copies a cell that is a run of its own, if it is one.
pub(super) fn copy_nested(from: &Path, to: &Path, name: &str) -> Result<(), GridError> {
    let nested = |directory: &Path| directory.join(CELLS).join(name);
    match nested(from).is_dir() {
        true => copy_run(&nested(from), &nested(to)),
        false => Ok(()),
    }
}

/// Copies a file if it is there.
pub(super) fn copy_file(from: &Path, to: &Path, name: &str) -> Result<(), GridError> {
    match read_if_there(&from.join(name))? {
        Some(bytes) => write(to, name, &bytes),
        None => Ok(()),
    }
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), GridError> {
    match fs::create_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(unwritable(directory, error));
        }
        _ => {}
    }
    let path = directory.join(name);
    write_file_bytes(&path, bytes).map_err(|source| unwritable(&path, source))
}
