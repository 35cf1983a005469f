//! Every experiment, killed at random moments by three signals, and resumed.
//!
//! 20 kills here; with `STRAIGHTFLOW_KILLS=200` and `--nocapture` as many as that, and a line for each
//! experiment.

#![cfg(unix)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Moments, Place, errors, finish, snapshot, straightflow, text};

/// Runs of a second or two, each of several parts.
const EXPERIMENTS: [&str; 5] = [
    "toy --estimators arm disarm reinforce muprop --seeds 4 --steps 600 --p0 0.45 --variance-steps 100 \
     --variance-replicates 2000",
    "lab --family binomial --replicates 2000 --training-steps 50",
    "poisson --seeds 6 --block 2 --epochs 20 --estimators pwgf muprop reinforce:baseline=loo",
    "vae --images 100 --bound-samples 2 --epochs 12 --estimator rebar",
    "table2 --images 100 --bound-samples 2 --epochs 3 --arch linear two-layer --estimators arm rebar",
];
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

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-s", name, &pid]).status();
    // A process that has ended cannot be killed.
    let _ = sent.expect("kill is there");
}

/// What became of the kills of an experiment.
struct Outcome {
    /// Those that came before the end of a run.
    interrupted: usize,
    /// The runs that were complete, each compared with the one that nobody killed.
    complete: usize,
}

fn killing_changes_nothing(settings: &str, kills: usize, moments: &mut Moments) -> Outcome {
    let place = Place::new();
    let (whole, directory) = (place.at("whole"), place.at("killed"));
    let words: Vec<&str> = settings
        .split(' ')
        .filter(|word| !word.is_empty())
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
        assert!(!message.contains("straightflow: "), "{name}: {message}");
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
    let mut interrupted = 0;
    for settings in EXPERIMENTS {
        let share = kills.div_ceil(EXPERIMENTS.len());
        let outcome = killing_changes_nothing(settings, share, &mut moments);
        let name = settings.split(' ').next().expect("a command");
        println!(
            "{name}: {} of {share} kills came before the end of a run; runs that were completed, all with the \
             same summary: {}; no record lost",
            outcome.interrupted, outcome.complete
        );
        interrupted += outcome.interrupted;
    }
    // Those that came too late tested nothing.
    assert!(interrupted * 2 >= kills, "only {interrupted} of {kills}");
}
