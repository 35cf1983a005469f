//! `straightflow vae`, `table2` and `bench` as a user meets them: kills, full disks, damaged files, bad
//! input.

mod bench;
#[path = "../common/mod.rs"]
mod common;
mod files;
#[cfg(unix)]
mod full_disk;
#[cfg(target_os = "linux")]
mod full_output;
mod grow;
mod kills;
#[cfg(target_os = "linux")]
mod memory;
mod refused;
mod resume;
mod table2;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Place, finish, text};
use serde_json::Value;

/// A run of a fraction of a second, without a number of epochs.
const SMALL: &[&str] = &["vae", "--images", "100", "--bound-samples", "2"];

/// The small run in a directory, with further settings.
fn small_in<'a>(settings: &[&'a str], directory: &'a Path) -> Vec<&'a str> {
    [SMALL, settings, &["--out", text(directory)]].concat()
}

/// A complete small run, and the bytes of its summary.
fn complete(place: &Place, name: &str, settings: &[&str]) -> (PathBuf, Vec<u8>) {
    let directory = place.at(name);
    let summary = finish(&small_in(settings, &directory), &directory);
    (directory, summary)
}

/// What is there when a run was killed after its last checkpoint: some files of a complete one.
fn part_of(complete: &Path, names: &[&str], directory: &Path) {
    fs::create_dir(directory).expect("a new directory");
    for name in names {
        fs::copy(complete.join(name), directory.join(name)).expect("copied");
    }
}

fn json(path: &Path) -> Value {
    let bytes = fs::read(path).expect("a file");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// The records of a run.
fn epochs(directory: &Path) -> Vec<Value> {
    let text = fs::read_to_string(directory.join("metrics.jsonl")).expect("records");
    let values = text.lines().map(serde_json::from_str);
    values.collect::<Result<_, _>>().expect("lines of JSON")
}

/// Which epochs are recorded, in the order of the file.
fn recorded_epochs(directory: &Path) -> Vec<u64> {
    let number = |epoch: &Value| epoch["epoch"].as_u64().expect("a number");
    epochs(directory).iter().map(number).collect()
}
