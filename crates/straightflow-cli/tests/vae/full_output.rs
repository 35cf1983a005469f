//! Outputs that take nothing.

use std::fs::{self, File};
use std::process::Stdio;

use crate::common::{Place, failed, run, straightflow};
use crate::{SMALL, complete, json, recorded_epochs, small_in};

const EPOCHS: &[&str] = &["--epochs", "3"];

fn full() -> Stdio {
    let full = File::options().write(true).open("/dev/full");
    full.expect("a Linux kernel").into()
}

/// The results cannot be printed, but they are recorded.
#[test]
fn an_output_that_is_full_is_reported() {
    let place = Place::new();
    let directory = place.at("run");
    let one = &["--epochs", "1"];
    for arguments in [
        [SMALL, one].concat(),
        [SMALL, one, &["--json"]].concat(),
        small_in(one, &directory),
        [&small_in(one, &directory)[..], &["--json"]].concat(),
    ] {
        let output = straightflow(&arguments).stdout(full()).output();
        let sentence = failed(&output.expect("the binary runs"));
        let expected = "straightflow: the output cannot be written: No space left";
        assert!(sentence.starts_with(expected), "{arguments:?}: {sentence}");
    }
    let output = run(&[&small_in(one, &directory)[..], &["--json"]].concat());
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed, json(&directory.join("summary.json")));
}

/// Nobody reads the progress: that does not end a run.
#[test]
fn progress_that_cannot_be_shown_is_left_out() {
    let place = Place::new();
    let (_, expected) = complete(&place, "shown", EPOCHS);
    let directory = place.at("hidden");
    let output = straightflow(&small_in(EPOCHS, &directory))
        .stderr(full())
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", output.status);
    let summary = fs::read(directory.join("summary.json")).expect("a summary");
    assert!(summary == expected, "other bits");
    assert_eq!(recorded_epochs(&directory), [1, 2, 3]);
    // Neither is an error that cannot be shown another one.
    let output = straightflow(&["vae", "--epochs", "0"])
        .stderr(full())
        .output();
    assert_eq!(output.expect("the binary runs").status.code(), Some(2));
}
