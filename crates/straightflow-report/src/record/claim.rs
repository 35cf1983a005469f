//! Whether a directory may hold a run.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::{CONFIG, RecordError, atomic, read};

/// Creates the directory with this configuration, or finds that it holds it already. A directory with
/// anything else is left alone.
pub fn directory(path: &Path, text: &str) -> Result<(), RecordError> {
    if !holds_same_run(path, text)? {
        create(path, text)?;
    }
    Ok(())
}

/// Whether the directory is there and holds the run with this configuration; false means that it is
/// free.
fn holds_same_run(path: &Path, text: &str) -> Result<bool, RecordError> {
    let unwritable = |reason| RecordError::Unwritable {
        path: path.to_owned(),
        reason,
    };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(unwritable(error)),
    };
    let mut free = true;
    for entry in entries {
        let name = entry.map_err(unwritable)?.file_name();
        if name == CONFIG {
            return same_config(path, text);
        }
        // What a process leaves behind that was killed while it created a run.
        free &= atomic::is_temporary(&name);
    }
    if free {
        Ok(false)
    } else {
        Err(RecordError::NotARun {
            path: path.to_owned(),
        })
    }
}

fn same_config(path: &Path, text: &str) -> Result<bool, RecordError> {
    let recorded = read(&path.join(CONFIG))?;
    let recorded = String::from_utf8_lossy(&recorded);
    if recorded == text || in_one_spelling(&recorded) == in_one_spelling(text) {
        return Ok(true);
    }
    let missing = |from: &str, other: &str| -> Option<String> {
        let mut lines = from.lines();
        let line = lines.find(|line| !other.lines().any(|known| known == *line));
        line.map(str::to_owned)
    };
    Err(RecordError::AnotherRun {
        path: path.to_owned(),
        line: missing(&recorded, text)
            .or_else(|| missing(text, &recorded))
            .unwrap_or_else(|| "the order of its lines".to_owned()),
    })
}

/// A configuration with the words of its keys joined by hyphens: some experiments had underscores once.
fn in_one_spelling(text: &str) -> String {
    let line = |line: &str| match line.split_once(" = ") {
        Some((key, value)) => format!("{} = {value}\n", key.replace('_', "-")),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn create(path: &Path, text: &str) -> Result<(), RecordError> {
    let unwritable = |reason| RecordError::Unwritable {
        path: path.to_owned(),
        reason,
    };
    fs::create_dir_all(path).map_err(unwritable)?;
    match atomic::create(&path.join(CONFIG), text) {
        Ok(()) => Ok(()),
        // Another process was faster; it may have removed our temporary file as well.
        Err(_) if path.join(CONFIG).exists() => same_config(path, text).map(|_| ()),
        Err(error) => Err(unwritable(error)),
    }
}
