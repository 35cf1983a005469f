//! Runs that become longer than they were meant to be.

use std::fs;
use std::path::Path;

use crate::common::{Place, finish, names, refused, snapshot, straightflow, text, wait_for};
use crate::{complete, json, part_of, recorded_epochs, small_in};

const TABLE: &[&str] = &[
    "table2",
    "--arch",
    "linear",
    "--images",
    "100",
    "--bound-samples",
    "2",
    "--estimators",
    "straight-through",
    "rebar",
];

/// What a run leaves behind that does not depend on when and where it was.
const SAME: [&str; 7] = [
    "config.toml",
    "curves.svg",
    "metrics.jsonl",
    "prior.png",
    "reconstructions.png",
    "summary.json",
    "variance.svg",
];

fn grow<'a>(directory: &'a Path, epochs: &'a str) -> [&'a str; 6] {
    let out = text(directory);
    ["vae", "--resume", "--out", out, "--epochs", epochs]
}

fn assert_same_files(one: &Path, other: &Path) {
    assert_eq!(names(one), names(other));
    for name in SAME {
        let [one, other] = [one, other].map(|d| fs::read(d.join(name)).expect(name));
        assert!(one == other, "{name} differs");
    }
}

#[test]
fn a_longer_run_is_the_one_that_was_long_from_the_start() {
    let place = Place::new();
    // State, a schedule, and steps enough that the gradient's variance is measured.
    let schedule = "gumbel-softmax:temperature=1>0.1@0.01";
    for (name, estimator) in [("state", "rebar"), ("schedule", schedule)] {
        let of = |epochs| ["--estimator", estimator, "--batch", "5", "--epochs", epochs];
        let named = |part: &str| format!("{name}-{part}");
        let (long, expected) = complete(&place, &named("long"), &of("5"));

        // From its end.
        let (finished, _) = complete(&place, &named("finished"), &of("2"));
        assert!(finish(&grow(&finished, "5"), &finished) == expected);
        assert_same_files(&finished, &long);
        let share = json(&finished.join("timing.json"))["share"].as_f64();
        assert!((share.expect("a number") - 0.6).abs() < 1e-12, "{share:?}");

        // After a kill, in two steps.
        let unfinished = place.at(&named("unfinished"));
        let settings = of("3");
        let arguments = small_in(&settings, &unfinished);
        let mut child = straightflow(&arguments).spawn().expect("the binary runs");
        wait_for(1, &unfinished, &mut child);
        child.kill().expect("it was running");
        child.wait_with_output().expect("it ends");
        finish(&grow(&unfinished, "4"), &unfinished);
        assert!(finish(&grow(&unfinished, "5"), &unfinished) == expected);
        assert_same_files(&unfinished, &long);
    }
}

#[test]
fn a_run_that_was_killed_while_it_grew_goes_on() {
    let place = Place::new();
    let (long, expected) = complete(&place, "long", &["--epochs", "4"]);
    let (short, _) = complete(&place, "short", &["--epochs", "2"]);
    let kept = ["metrics.jsonl", "checkpoint.bin"];
    // After the summary was removed, and after the new configuration was written.
    for (name, config) in [("before", &short), ("after", &long)] {
        let directory = place.at(name);
        part_of(&short, &kept, &directory);
        let config = config.join("config.toml");
        fs::copy(config, directory.join("config.toml")).expect("copied");
        assert!(
            finish(&grow(&directory, "4"), &directory) == expected,
            "{name}"
        );
        assert_eq!(recorded_epochs(&directory), [1, 2, 3, 4], "{name}");
    }
}

#[test]
fn a_run_does_not_become_shorter_than_it_is() {
    let place = Place::new();
    let (finished, expected) = complete(&place, "finished", &["--epochs", "3"]);
    let root = place.root.path();
    let hint = "the run has begun 3 epochs and cannot end after 2: ask for 3 at least";
    refused(&grow(&finished, "2"), hint, root);
    refused(&grow(&finished, "0"), "must be at least 1", root);
    // Without the word that says so, another number of epochs is another run.
    let arguments = small_in(&["--epochs", "4"], &finished);
    refused(&arguments, "holds a different run", root);
    let before = snapshot(&finished);
    assert!(finish(&grow(&finished, "3"), &finished) == expected);
    assert!(snapshot(&finished) == before, "a complete run changed");

    // An unfinished one may end where it is.
    let (long, _) = complete(&place, "long", &["--epochs", "5"]);
    let directory = place.at("unfinished");
    part_of(&finished, &["metrics.jsonl", "checkpoint.bin"], &directory);
    fs::copy(long.join("config.toml"), directory.join("config.toml")).expect("copied");
    assert!(finish(&grow(&directory, "3"), &directory) == expected);
}

#[test]
fn a_table_grows_with_all_of_its_runs() {
    let place = Place::new();
    let table = |name: &str, epochs: &str| {
        let directory = place.at(name);
        let rest = ["--epochs", epochs, "--out", text(&directory)];
        let summary = finish(&[TABLE, &rest].concat(), &directory);
        (directory, summary)
    };
    let (long, expected) = table("long", "3");
    let (short, _) = table("short", "2");
    let out = text(&short);
    let resume = ["table2", "--resume", "--out", out];
    let root = place.root.path();
    let fewer = [&resume[..], &["--epochs", "1"]].concat();
    refused(&fewer, "cannot end after 1", root);
    let other = [&resume[..], &["--epochs", "3", "--estimators", "rebar"]].concat();
    refused(&other, "holds a different run", root);

    // A table whose cells did not all grow before it was killed.
    let cell = short.join("cells").join("linear-rebar-1");
    finish(&grow(&cell, "3"), &cell);
    let longer = [&resume[..], &["--epochs", "3"]].concat();
    assert!(finish(&longer, &short) == expected, "other bits");
    assert_eq!(names(&short), names(&long));
    let sorted = |directory: &Path| {
        let records = fs::read_to_string(directory.join("metrics.jsonl")).expect("records");
        let mut lines: Vec<String> = records.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&short), sorted(&long));
    for name in names(&long.join("cells")) {
        let [one, other] = [&short, &long].map(|d| d.join("cells").join(&name));
        assert_eq!(recorded_epochs(&one), [1, 2, 3], "{name}");
        for file in ["config.toml", "summary.json", "metrics.jsonl"] {
            let [one, other] = [&one, &other].map(|d| fs::read(d.join(file)).expect(file));
            assert!(one == other, "{file} of {name} differs");
        }
    }
    let before = snapshot(&short);
    finish(&resume, &short);
    assert!(snapshot(&short) == before, "a complete table changed");
}

#[test]
fn a_table_gets_more_rows_and_seeds() {
    let place = Place::new();
    let small = ["--images", "100", "--bound-samples", "2", "--epochs", "2"];
    let table = |directory: &Path, settings: &[&str]| {
        let out = ["table2", "--arch", "linear", "--out", text(directory)];
        finish(&[&out[..], &small, settings].concat(), directory)
    };
    let all = ["--seeds", "2", "--estimators", "arm", "straight-through"];
    let (whole, grown) = (place.at("whole"), place.at("grown"));
    let expected = table(&whole, &all);
    table(&grown, &["--estimators", "straight-through"]);
    let first = grown.join("cells/linear-straight-through-1/summary.json");
    let before = fs::metadata(&first)
        .expect("a run")
        .modified()
        .expect("a time");
    assert!(table(&grown, &[&all[..], &["--resume"]].concat()) == expected);
    let after = fs::metadata(&first)
        .expect("a run")
        .modified()
        .expect("a time");
    assert_eq!(before, after, "a finished run was repeated");
}
