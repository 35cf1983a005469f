//! Every experiment, killed at random moments by three signals, and resumed.
//!
//! 20 kills here; with `STRAIGHTFLOW_KILLS=200` and `--nocapture` as many as that, and a line for each
//! experiment.

#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Moments, Place, errors, finish, signal, snapshot, straightflow, text};
use straightflow_experiments::{EXPERIMENTS, Entry};

const SIGNALS: [&str; 3] = ["KILL", "TERM", "INT"];

/// All files of records of a run and of its cells, without torn last lines.
fn all_records(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    if !directory.exists() {
        return Vec::new();
    }
    let files = snapshot(directory).into_iter();
    let records = files.filter(|(path, _)| path.ends_with("metrics.jsonl"));
    records
        .map(|(path, mut bytes)| {
            let end = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(end.map_or(0, |newline| newline + 1));
            (path, bytes)
        })
        .collect()
}

/// What became of the kills of an experiment.
struct Outcome {
    /// Those that came before the end of a run.
    interrupted: usize,
    /// Those of them after which the run said how to resume.
    said: usize,
    /// The runs that were complete, each compared with the one that nobody killed.
    complete: usize,
}

/// What a run that was interrupted has to say, and with which code it ends. One that was killed has
/// nothing to say; neither has one that did not listen yet.
fn parting_words(name: &str) -> (&'static str, Option<i32>) {
    match name {
        "TERM" => (
            "straightflow: interrupted by SIGTERM; repeat the command to resume",
            Some(143),
        ),
        "INT" => (
            "straightflow: interrupted by SIGINT; repeat the command to resume",
            Some(130),
        ),
        _ => ("straightflow: ", None),
    }
}

fn killing_changes_nothing(entry: &Entry, kills: usize, moments: &mut Moments) -> Outcome {
    let settings = entry.id;
    let place = Place::new();
    let (whole, directory) = (place.at("whole"), place.at("killed"));
    let words: Vec<&str> = [entry.id]
        .into_iter()
        .chain(entry.small.split_whitespace())
        .collect();
    let into = |directory: &Path| -> Vec<String> {
        let out = ["--out", text(directory)];
        words
            .iter()
            .chain(&out)
            .map(|word| (*word).to_owned())
            .collect()
    };
    let complete_in = |directory: &Path| {
        let arguments = into(directory);
        finish(
            &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
            directory,
        )
    };
    let start = Instant::now();
    let expected = complete_in(&whole);
    let time = start.elapsed();

    let arguments = into(&directory);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut outcome = Outcome {
        interrupted: 0,
        said: 0,
        complete: 0,
    };
    for _ in 0..kills {
        let before = all_records(&directory);
        let name = SIGNALS[moments.below(3) as usize];
        let delay: Duration = moments.before(time.mul_f64(0.6));
        let child = straightflow(&arguments).spawn().expect("the binary runs");
        sleep(delay);
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        let message = errors(&output);
        let mut said = message.lines().filter(|l| l.starts_with("straightflow: "));
        let (words, code) = parting_words(name);
        match (said.next(), output.status.code()) {
            (None, _) => {}
            (Some(said), ended) => {
                assert_eq!((said, ended), (words, code), "{name}: {message}");
                outcome.said += 1;
            }
        }
        assert_eq!(said.next(), None, "{name}: {message}");
        let after = all_records(&directory);
        for (path, bytes) in before {
            let now = after.iter().find(|(other, _)| *other == path);
            let kept = now.is_some_and(|(_, now)| now.starts_with(&bytes));
            assert!(kept, "{name}: {} lost a record", path.display());
        }
        if output.status.success() {
            let summary = fs::read(directory.join("summary.json")).expect("a summary");
            assert!(summary == expected, "{settings}: the summary differs");
            outcome.complete += 1;
            fs::remove_dir_all(&directory).expect("removed");
        } else {
            outcome.interrupted += 1;
        }
    }
    assert!(
        complete_in(&directory) == expected,
        "{settings}: the summary differs"
    );
    outcome.complete += 1;
    outcome
}

#[test]
fn kills_at_random_moments_change_no_bit_of_any_experiment() {
    let kills = std::env::var("STRAIGHTFLOW_KILLS");
    let kills: usize = kills.map_or(20, |count| count.parse().expect("a number of kills"));
    let mut moments = Moments(20_261_116);
    let (mut interrupted, mut said) = (0, 0);
    for entry in EXPERIMENTS {
        let share = kills.div_ceil(EXPERIMENTS.len());
        let outcome = killing_changes_nothing(entry, share, &mut moments);
        println!(
            "{}: {} of {share} kills came before the end of a run, {} of them said how to resume; runs that were \
             completed, all with the same summary: {}; no record lost",
            entry.id, outcome.interrupted, outcome.said, outcome.complete
        );
        interrupted += outcome.interrupted;
        said += outcome.said;
    }
    // Those that came too late tested nothing.
    assert!(interrupted * 2 >= kills, "only {interrupted} of {kills}");
    assert!(said > 0, "no run was interrupted by a signal that it hears");
}
