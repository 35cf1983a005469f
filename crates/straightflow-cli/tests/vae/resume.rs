//! What may resume, and what must not.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    Place, errors, failed, finish, names, refused, run, snapshot, straightflow, text, wait_for,
};
use crate::{complete, json, part_of, recorded_epochs, small_in};

/// A run that was killed after its last checkpoint, and the summary that it would have had.
fn interrupted(place: &Place, settings: &[&str]) -> (PathBuf, Vec<u8>) {
    let (whole, expected) = complete(place, "whole", settings);
    let directory = place.at("interrupted");
    let made = ["config.toml", "metrics.jsonl", "checkpoint.bin"];
    part_of(&whole, &made, &directory);
    (directory, expected)
}

#[test]
fn another_configuration_is_refused_and_changes_nothing() {
    let place = Place::new();
    let settings = ["--epochs", "2"];
    let (directory, expected) = interrupted(&place, &settings);
    let (root, whole) = (place.root.path(), place.at("whole"));
    for changed in [
        ["--arch", "two-layer"],
        ["--estimator", "arm"],
        ["--latent", "categorical"],
        ["--protocol", "static"],
        ["--learning-rate", "0.01"],
        ["--batch", "50"],
        ["--direct", "kept"],
        ["--samples", "2"],
        ["--seed", "2"],
        ["--images", "150"],
        ["--bound-samples", "3"],
    ] {
        for out in [&directory, &whole] {
            let resume = [&["vae", "--resume", "--out", text(out)], &changed[..]].concat();
            refused(&resume, "holds a different run", root);
        }
        let plain = match changed[0] {
            "--images" | "--bound-samples" => continue,
            _ => [&small_in(&settings, &directory)[..], &changed].concat(),
        };
        refused(&plain, "holds a different run", root);
    }
    let resume = ["vae", "--resume", "--out", text(&directory)];
    assert!(finish(&resume, &directory) == expected, "other bits");
}

#[test]
fn settings_that_agree_may_be_repeated() {
    let place = Place::new();
    let settings = [
        "--epochs",
        "1",
        "--estimator",
        "reinforce",
        "--samples",
        "2",
    ];
    let (directory, expected) = interrupted(&place, &settings);
    let resume = ["vae", "--resume", "--out", text(&directory)];
    let all = [&small_in(&settings, &directory)[..], &["--resume"]].concat();
    for again in [
        [&resume[..], &["--samples", "2"]].concat(),
        [&resume[..], &["--estimator", "reinforce:samples=2"]].concat(),
        all,
    ] {
        assert!(finish(&again, &directory) == expected, "{again:?}");
        fs::remove_file(directory.join("summary.json")).expect("it was there");
    }
    let other = [&resume[..], &["--samples", "3"]].concat();
    refused(&other, "holds a different run", place.root.path());
}

/// The page of a report says how to repeat its numbers: not by going on with a run that only we have.
#[test]
fn the_recorded_command_of_a_resumed_run_repeats_it() {
    let place = Place::new();
    let temperature = "gumbel-softmax:temperature=1>0.1@1e-5";
    let settings = ["--epochs", "1", "--seed", "3", "--estimator", temperature];
    let (directory, expected) = interrupted(&place, &settings);
    let resume = ["vae", "--resume", "--out", text(&directory)];
    assert!(finish(&resume, &directory) == expected, "other bits");
    let timing = json(&directory.join("timing.json"));
    let command = timing["command"].as_str().expect("text").to_owned();
    assert!(command.contains(&format!("'{temperature}'")), "{command}");
    let words: Vec<&str> = command
        .split(' ')
        .map(|word| word.trim_matches('\''))
        .collect();
    assert_eq!(words[0], "straightflow");
    let again = place.at("again");
    let words = [&words[1..], &["--out", text(&again)]].concat();
    assert!(finish(&words, &again) == expected, "{command}");
}

#[test]
fn where_there_is_no_run_there_is_nothing_to_resume() {
    let place = Place::new();
    let root = place.root.path();
    let nowhere = place.at("nowhere");
    let resume = ["vae", "--resume", "--out", text(&nowhere)];
    refused(&resume, "nowhere has no run to resume", root);
    assert!(!nowhere.exists(), "a directory was made");

    let empty = place.at("empty");
    fs::create_dir(&empty).expect("a directory");
    let resume = ["vae", "--resume", "--out", text(&empty)];
    refused(&resume, "empty has no run to resume", root);

    let poisson = place.at("poisson");
    fs::create_dir(&poisson).expect("a directory");
    let config = "experiment = \"poisson\"\nversion = \"0.1.0\"\nrate = 5.0\n";
    fs::write(poisson.join("config.toml"), config).expect("written");
    let resume = ["vae", "--resume", "--out", text(&poisson)];
    let hint = "is not a `vae` config: it is a `poisson` config";
    refused(&resume, hint, root);

    let output = run(&["vae", "--resume"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors(&output).contains("--out <DIR>"),
        "{}",
        errors(&output)
    );
}

/// Exit code 1, a sentence with what is wrong and what to do, and nothing changed.
fn unusable(directory: &Path, checkpoint: &[u8], because: &str) {
    let path = directory.join("checkpoint.bin");
    fs::write(&path, checkpoint).expect("written");
    let before = snapshot(directory);
    for arguments in [
        &["vae", "--resume", "--out", text(directory)][..],
        &small_in(&["--epochs", "2"], directory),
    ] {
        let output = run(arguments);
        let sentence = failed(&output);
        let expected = format!(
            "straightflow: {} cannot be used; move it away to start over: the checkpoint {because}",
            path.display()
        );
        assert!(sentence.starts_with(&expected), "{expected}: {sentence}");
        assert!(output.stdout.is_empty(), "{because}: results were printed");
        assert!(snapshot(directory) == before, "{because}: a file changed");
    }
}

#[test]
fn a_damaged_checkpoint_is_refused_and_stays_as_it_is() {
    let place = Place::new();
    let (directory, expected) = interrupted(&place, &["--epochs", "2"]);
    let path = directory.join("checkpoint.bin");
    let good = fs::read(&path).expect("a checkpoint");

    let damaged = "is damaged: its checksum does not fit";
    let other = "is not one, or of another version";
    unusable(&directory, &[], other);
    unusable(&directory, b"garbage", other);
    unusable(&directory, &good[1..], other);
    unusable(&directory, &good.repeat(2), damaged);
    for length in [26, 60, 100, good.len() / 2, good.len() - 1] {
        unusable(&directory, &good[..length], "is ");
    }
    for place in [30, good.len() / 3, good.len() / 2, good.len() - 1] {
        for bit in [0, 7] {
            let mut flipped = good.clone();
            flipped[place] ^= 1 << bit;
            unusable(&directory, &flipped, damaged);
        }
    }
    let (foreign, _) = complete(&place, "foreign", &["--epochs", "2", "--seed", "2"]);
    let foreign = fs::read(foreign.join("checkpoint.bin")).expect("a checkpoint");
    unusable(&directory, &foreign, "is of another configuration");

    // What the sentence says to do.
    fs::rename(&path, place.at("moved away")).expect("moved");
    let resume = ["vae", "--resume", "--out", text(&directory)];
    assert!(finish(&resume, &directory) == expected, "other bits");
    assert_eq!(recorded_epochs(&directory), [1, 2], "an epoch was doubled");
    assert!(path.exists(), "there is no new checkpoint");
}

#[test]
fn a_torn_last_record_is_written_again() {
    let place = Place::new();
    let (whole, expected) = complete(&place, "whole", &["--epochs", "2"]);
    // Killed while it wrote its second record, before the second checkpoint.
    let directory = place.at("torn");
    part_of(&whole, &["config.toml"], &directory);
    let records = fs::read(whole.join("metrics.jsonl")).expect("records");
    let metrics = directory.join("metrics.jsonl");
    fs::write(&metrics, &records[..records.len() - 40]).expect("written");
    assert!(finish(&small_in(&["--epochs", "2"], &directory), &directory) == expected);
    assert!(fs::read(&metrics).expect("records") == records);
    assert_eq!(names(&directory), names(&whole));
}

#[test]
fn a_run_that_another_process_works_on_is_refused() {
    let place = Place::new();
    let directory = place.at("run");
    let arguments = small_in(&["--epochs", "300"], &directory);
    let mut first = straightflow(&arguments).spawn().expect("the binary runs");
    wait_for(1, &directory, &mut first);
    let second = run(&arguments);
    first.kill().expect("it was running");
    let first = first.wait_with_output().expect("it ends");
    let message = errors(&second);
    assert_eq!(second.status.code(), Some(2), "{message}");
    assert!(
        message.contains("is in use by another process"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    let message = errors(&first);
    assert!(
        !message.contains("straightflow: "),
        "the first one failed: {message}"
    );
}
