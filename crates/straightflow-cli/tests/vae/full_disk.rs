//! Files that cannot be written.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{BINARY, Place, errors, failed, finish, names, records, snapshot, text};
use crate::{complete, part_of, recorded_epochs, small_in, table2};

const EPOCHS: &[&str] = &["--epochs", "3"];

/// Runs with files of at most so many blocks of 512 bytes. A write beyond that writes what fits, and the
/// next one is an error ("File too large").
fn limited(blocks: u64, arguments: &[&str]) -> Output {
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f \"$0\" && exec \"$@\"";
    command.args(["-c", script, &blocks.to_string(), BINARY]);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    output.expect("a shell")
}

/// The run failed because this file could not be written, and says so.
fn failed_at(output: &Output, file: &Path) {
    let sentence = failed(output);
    let expected = format!("straightflow: {} cannot be written: ", file.display());
    assert!(sentence.starts_with(&expected), "{expected}: {sentence}");
    assert!(sentence.contains("too large"), "{sentence}");
    assert!(output.stdout.is_empty(), "a failed run printed results");
}

/// The most blocks that a file does not fit in.
fn too_few_for(file: &Path) -> u64 {
    (fs::metadata(file).expect("a file").len() - 1) / 512
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_one_before() {
    let place = Place::new();
    let epochs = ["--epochs", "24"];
    let (uninterrupted, expected) = complete(&place, "uninterrupted", &epochs);
    let directory = place.at("limited");
    let arguments = small_in(&epochs, &directory);
    let checkpoint = directory.join("checkpoint.bin");

    // Each epoch adds about 200 bytes to the checkpoint, and its size varies by as much from process to
    // process. So the last one does not fit, and the first one does.
    let limit = too_few_for(&uninterrupted.join("checkpoint.bin")) - 4;
    failed_at(&limited(limit, &arguments), &checkpoint);
    let files = ["checkpoint.bin", "config.toml", "metrics.jsonl"];
    assert_eq!(names(&directory), files, "after the first failure");
    let before = snapshot(&directory);
    let recorded = recorded_epochs(&directory).len();
    assert!(recorded > 1, "a first checkpoint was to be written");

    // The record of the epoch is there, its checkpoint is not, whatever the limit.
    for blocks in [0, 1, 4, 1000, 9000] {
        for again in [
            &arguments[..],
            &["vae", "--resume", "--out", text(&directory)],
        ] {
            failed_at(&limited(blocks, again), &checkpoint);
            assert!(snapshot(&directory) == before, "{blocks} blocks");
        }
    }
    assert!(finish(&arguments, &directory) == expected, "other bits");
    assert!(recorded_epochs(&directory).into_iter().eq(1..=24));
}

#[test]
fn a_record_that_cannot_be_written_is_no_part_of_the_run() {
    let place = Place::new();
    let (uninterrupted, expected) = complete(&place, "uninterrupted", EPOCHS);
    let directory = place.at("limited");
    part_of(&uninterrupted, &["config.toml"], &directory);
    let arguments = small_in(EPOCHS, &directory);
    failed_at(&limited(0, &arguments), &directory.join("metrics.jsonl"));
    assert_eq!(names(&directory), ["config.toml", "metrics.jsonl"]);
    assert!(records(&directory).is_empty(), "a part of a record");

    // The first record fits, its checkpoint does not.
    failed_at(&limited(1, &arguments), &directory.join("checkpoint.bin"));
    assert_eq!(names(&directory), ["config.toml", "metrics.jsonl"]);
    assert_eq!(recorded_epochs(&directory), [1]);
    assert!(finish(&arguments, &directory) == expected, "other bits");
    assert_eq!(recorded_epochs(&directory), [1, 2, 3]);
}

/// Also where the runner records whole cells.
#[test]
fn a_cell_that_cannot_be_recorded_ends_the_run() {
    let place = Place::new();
    let directory = place.at("limited");
    let settings = "poisson --seeds 2 --epochs 4 --samples 20 --estimators pwgf muprop --out";
    let arguments: Vec<&str> = settings.split(' ').chain([text(&directory)]).collect();
    let expected = finish(&arguments, &directory);
    for name in names(&directory) {
        if name != "config.toml" {
            fs::remove_file(directory.join(name)).expect("removed");
        }
    }
    failed_at(&limited(0, &arguments), &directory.join("metrics.jsonl"));
    assert_eq!(names(&directory), ["config.toml", "metrics.jsonl"]);
    assert!(records(&directory).is_empty(), "a part of a record");
    assert!(finish(&arguments, &directory) == expected, "other bits");
}

#[test]
fn a_record_that_was_written_in_part_is_taken_back() {
    let place = Place::new();
    let (uninterrupted, expected) = complete(&place, "uninterrupted", EPOCHS);
    let directory = place.at("limited");
    part_of(&uninterrupted, &["config.toml"], &directory);
    // Blanks before the first record let the second one cross a limit that checkpoints do not reach.
    let limit = 2 * too_few_for(&uninterrupted.join("checkpoint.bin"));
    let all = records(&uninterrupted);
    let first = all.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    let mut padded = vec![b' '; limit as usize * 512 - first - 100];
    padded.extend_from_slice(&all[..first]);
    let metrics = directory.join("metrics.jsonl");
    fs::write(&metrics, &padded).expect("written");

    let arguments = small_in(EPOCHS, &directory);
    failed_at(&limited(limit, &arguments), &metrics);
    assert!(records(&directory) == padded, "a part of a record stayed");
    let files = ["checkpoint.bin", "config.toml", "metrics.jsonl"];
    assert_eq!(names(&directory), files);
    assert!(finish(&arguments, &directory) == expected, "other bits");
    assert_eq!(recorded_epochs(&directory), [1, 2, 3]);
}

#[test]
fn results_that_cannot_be_written_are_computed_again() {
    let place = Place::new();
    let (uninterrupted, expected) = complete(&place, "uninterrupted", EPOCHS);
    let directory = place.at("limited");
    let made = ["config.toml", "metrics.jsonl", "checkpoint.bin"];
    part_of(&uninterrupted, &made, &directory);
    let arguments = small_in(EPOCHS, &directory);
    let before = snapshot(&directory);
    for name in ["curves.svg", "reconstructions.png", "prior.png"] {
        let limit = too_few_for(&uninterrupted.join(name));
        failed_at(&limited(limit, &arguments), &directory.join(name));
        let after = snapshot(&directory);
        let kept = before.iter().all(|file| after.contains(file));
        assert!(kept, "{name}: a file of the run changed");
        for absent in [name, "summary.json", "timing.json"] {
            assert!(!directory.join(absent).exists(), "{absent} without {name}");
        }
        let hidden = names(&directory).iter().any(|name| name.starts_with('.'));
        assert!(!hidden, "{name}: a temporary file was left behind");
    }
    assert!(finish(&arguments, &directory) == expected, "other bits");
    assert_eq!(names(&directory), names(&uninterrupted));

    // A complete run is only read, so no limit matters.
    let before = snapshot(&directory);
    let output = limited(0, &arguments);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(snapshot(&directory) == before, "a complete run was changed");
}

#[test]
fn a_directory_without_room_for_a_configuration_is_refused() {
    let place = Place::new();
    let directory = place.at("limited");
    let output = limited(0, &small_in(EPOCHS, &directory));
    let message = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    let expected = format!("{} cannot be used for a run", directory.display());
    assert!(message.contains(&expected), "{message}");
    assert!(snapshot(place.root.path()).is_empty(), "a file was left");
}

#[test]
fn a_table_goes_on_when_there_is_room_again() {
    let place = Place::new();
    let [uninterrupted, directory] = ["uninterrupted", "limited"].map(|name| place.at(name));
    let expected = finish(&table2::small("2", &uninterrupted), &uninterrupted);
    let arguments = table2::small("2", &directory);
    // Room for records, not for checkpoints.
    let sentence = failed(&limited(4, &arguments));
    for words in [
        "linear-straight-through-1 failed (and 7 more",
        "checkpoint.bin cannot be written",
    ] {
        assert!(sentence.contains(words), "{words}: {sentence}");
    }
    assert!(finish(&arguments, &directory) == expected, "other bits");
    assert_eq!(names(&directory), names(&uninterrupted));
}
