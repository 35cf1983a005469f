//! Processes that are killed, and runs that resume from there.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::thread::sleep;
use std::time::Instant;

use crate::common::{
    Moments, Place, complete_records, errors, finish, lines, names, records, signal, straightflow,
    text, wait_for, wait_until,
};
use crate::{json, recorded_epochs, small_in};

const KILLS: usize = 20;
const EPOCHS: u32 = 16;

/// Starts a process, waits for a moment and kills it, on Unix with `kill -9`. Whether that came before
/// its end.
pub fn killed(arguments: &[&str], moment: impl FnOnce(&mut std::process::Child)) -> bool {
    let child = straightflow(arguments).spawn();
    let mut child = child.expect("the binary runs");
    moment(&mut child);
    child.kill().expect("killed or ended");
    let output: Output = child.wait_with_output().expect("it ends");
    let message = errors(&output);
    assert!(
        !message.contains("straightflow: "),
        "{arguments:?} did not resume: {message}"
    );
    !output.status.success()
}

/// Each epoch is there once, the summary has the bits of an uninterrupted run, and nothing is left of
/// the processes that were killed while they wrote a file.
fn check(directory: &Path, expected: &[u8]) {
    let summary = fs::read(directory.join("summary.json")).expect("a summary");
    assert!(summary == expected, "the summary differs");
    let all: Vec<u64> = (1..=u64::from(EPOCHS)).collect();
    assert_eq!(recorded_epochs(directory), all, "each epoch once");
    let left: Vec<String> = names(directory)
        .into_iter()
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(left.is_empty(), "{left:?} were left behind");
}

/// Kills a run at 20 moments, most of them before it is complete. The moments scale with the time that
/// the run takes here, and a run that is complete before all kills are done begins anew, so that a slow
/// or busy machine sees the same kills.
fn killing_changes_nothing(settings: &[&str], seed: u64) {
    let place = Place::new();
    let epochs = EPOCHS.to_string();
    let settings = [settings, &["--epochs", &epochs]].concat();
    let start = Instant::now();
    let (_, expected) = crate::complete(&place, "uninterrupted", &settings);
    let whole = start.elapsed();

    let directory = place.at("killed");
    let full = small_in(&settings, &directory);
    let resume = ["vae", "--resume", "--out", text(&directory)];
    let mut moments = Moments(seed);
    let mut interrupted = 0;
    for kill in 0..KILLS {
        let recorded = complete_records(&directory);
        // A process that was killed at once leaves nothing to resume.
        let resumes = kill % 2 == 1 && directory.join("config.toml").exists();
        let arguments = if resumes { &resume[..] } else { &full };
        // While it begins, or in the epoch after the next one or two.
        let further = moments.below(3) as usize;
        let end = whole / if further == 0 { 8 } else { EPOCHS };
        let delay = moments.before(end);
        let was_running = killed(arguments, |child| {
            wait_for(lines(&recorded) + further, &directory, child);
            sleep(delay);
        });
        let kept = records(&directory).starts_with(&recorded);
        assert!(kept, "kill {kill}: a record was lost");
        interrupted += usize::from(was_running);
        if !was_running {
            check(&directory, &expected);
            fs::remove_dir_all(&directory).expect("removed");
        }
    }
    assert!(
        interrupted >= KILLS / 2,
        "only {interrupted} of {KILLS} kills came in time"
    );
    finish(&full, &directory);
    check(&directory, &expected);
}

#[test]
fn twenty_kills_change_no_bit_of_a_run_whose_estimator_has_state() {
    killing_changes_nothing(&["--estimator", "rebar"], 191_002_176);
}

#[test]
fn twenty_kills_change_no_bit_of_a_run_with_two_layers() {
    killing_changes_nothing(&["--arch", "two-layer"], 20_261_116);
}

/// 2,500 steps in an epoch, so there is a checkpoint in the middle of it, after 2,000.
#[test]
fn a_run_goes_on_in_the_middle_of_an_epoch() {
    let place = Place::new();
    let settings = [
        "vae",
        "--images",
        "2500",
        "--batch",
        "1",
        "--epochs",
        "1",
        "--bound-samples",
        "1",
        "--estimator",
        "reinforce:baseline=learned",
    ];
    let uninterrupted = place.at("uninterrupted");
    let arguments = [&settings[..], &["--out", text(&uninterrupted)]].concat();
    let expected = finish(&arguments, &uninterrupted);

    let directory = place.at("killed");
    let arguments = [&settings[..], &["--out", text(&directory)]].concat();
    // A test that is kept waiting for long may come too late; it tries again.
    let in_the_middle = (0..5).any(|_| {
        let _ = fs::remove_dir_all(&directory);
        let checkpoint = directory.join("checkpoint.bin");
        let was_running = killed(&arguments, |child| {
            wait_until(child, || checkpoint.exists());
        });
        was_running && records(&directory).is_empty()
    });
    assert!(in_the_middle, "no kill came before the end of the epoch");
    let summary = finish(&["vae", "--resume", "--out", text(&directory)], &directory);
    assert!(summary == expected, "the summary differs");
    let share = json(&directory.join("timing.json"))["share"].as_f64();
    let share = share.expect("a number");
    assert!(
        (0.1..0.25).contains(&share),
        "it was to do the last 500 of 2,500 steps, and did a share of {share}"
    );
}

/// The same run, asked to stop in the middle of its epoch, before the checkpoint that it makes by itself.
#[cfg(unix)]
#[test]
fn a_run_that_is_asked_to_stop_leaves_a_checkpoint() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let place = Place::new();
        let settings = ["--images", "2500", "--batch", "1", "--epochs", "1"];
        let arguments = |directory: &Path| -> Vec<String> {
            let words = ["vae", "--bound-samples", "1", "--out", text(directory)];
            let words = words.iter().chain(&settings);
            words.map(|word| (*word).to_owned()).collect()
        };
        let run = |directory: &Path| {
            let arguments = arguments(directory);
            finish(
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
                directory,
            )
        };
        let start = Instant::now();
        let expected = run(&place.at("uninterrupted"));
        let half = start.elapsed() / 2;

        let directory = place.at("interrupted");
        let words = arguments(&directory);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // A signal that comes too early or too late is sent again.
        let in_the_middle = (0..5).any(|_| {
            let _ = fs::remove_dir_all(&directory);
            let child = straightflow(&words).spawn().expect("the binary runs");
            sleep(half);
            signal(&child, name);
            let output = child.wait_with_output().expect("it ends");
            let message = errors(&output);
            if output.status.code() != Some(code) {
                return false;
            }
            let hint = "repeat the command to resume";
            assert!(message.contains(hint), "{message}");
            directory.join("checkpoint.bin").exists() && records(&directory).is_empty()
        });
        assert!(in_the_middle, "no signal came within the epoch");
        let files = ["checkpoint.bin", "config.toml", "metrics.jsonl"];
        assert_eq!(names(&directory), files);

        assert!(run(&directory) == expected, "the summary differs");
        let share = json(&directory.join("timing.json"))["share"].as_f64();
        let share = share.expect("a number");
        assert!(share > 0.0 && share < 1.0, "it went on: {share}");
    }
}
