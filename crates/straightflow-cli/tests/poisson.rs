//! `straightflow poisson` as a user meets it: kills, threads, bad input.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use common::{
    Place, complete_records, finish, lines, names, records, refused, run, straightflow, text,
    wait_for,
};
use serde_json::Value;

/// A run of a fraction of a second: six cells.
const SMALL: &[&str] = &[
    "poisson",
    "--seeds",
    "30",
    "--epochs",
    "6",
    "--samples",
    "20",
    "--estimators",
    "pwgf:preset=paper",
    "straight-through",
];

fn small_in(directory: &Path) -> Vec<&str> {
    [SMALL, &["--out", text(directory)]].concat()
}

/// A complete run, and the bytes of its summary.
fn complete(place: &Place, name: &str) -> (PathBuf, Vec<u8>) {
    let directory = place.at(name);
    let summary = finish(&small_in(&directory), &directory);
    (directory, summary)
}

#[test]
fn killing_and_resuming_changes_no_bit_of_the_summary() {
    let place = Place::new();
    let (_, expected) = complete(&place, "uninterrupted");
    let directory = place.at("killed");
    // Killed while it opens, and each time some more cells are there, a varying moment later.
    let mut interrupted = 0;
    for (wanted, delay) in [
        (0, 1),
        (0, 4),
        (0, 11),
        (1, 0),
        (2, 7),
        (3, 13),
        (4, 3),
        (5, 1),
    ] {
        let child = straightflow(&small_in(&directory)).spawn();
        let mut child = child.expect("the binary runs");
        let before = complete_records(&directory);
        wait_for(wanted, &directory, &mut child);
        sleep(Duration::from_millis(delay));
        // On Unix this is `kill -9`.
        child.kill().expect("killed or ended");
        let status = child.wait().expect("it ends");
        interrupted += usize::from(!status.success());
        assert!(
            records(&directory).starts_with(&before),
            "a record was lost"
        );
    }
    assert!(interrupted >= 4, "the kills came too late: {interrupted}");
    let summary = finish(&small_in(&directory), &directory);
    assert!(summary == expected);
    assert_eq!(lines(&records(&directory)), 6, "a cell was played twice");
    // A finished run is only read again.
    let timing = fs::read(directory.join("timing.json")).expect("a file");
    assert!(finish(&small_in(&directory), &directory) == expected);
    assert!(fs::read(directory.join("timing.json")).expect("a file") == timing);
}

#[test]
fn a_torn_last_line_is_played_again() {
    let place = Place::new();
    let (directory, expected) = complete(&place, "run");
    let bytes = records(&directory);
    fs::write(directory.join("metrics.jsonl"), &bytes[..bytes.len() - 40]).expect("written");
    assert!(finish(&small_in(&directory), &directory) == expected);
}

#[test]
fn threads_change_no_bit_of_the_summary() {
    let place = Place::new();
    let summaries = ["1", "2"].map(|threads| {
        let directory = place.at(threads);
        let arguments = [&small_in(&directory)[..], &["--jobs", threads]].concat();
        let status = straightflow(&arguments)
            .env("RAYON_NUM_THREADS", threads)
            .status();
        assert!(status.expect("the binary runs").success());
        fs::read(directory.join("summary.json")).expect("a summary")
    });
    assert!(summaries[0] == summaries[1]);
}

#[test]
fn the_recorded_configuration_repeats_the_run() {
    let place = Place::new();
    let (first, expected) = complete(&place, "first");
    let (config, second) = (first.join("config.toml"), place.at("second"));
    let arguments = ["poisson", "--config", text(&config), "--out", text(&second)];
    assert!(finish(&arguments, &second) == expected);
    let recorded = fs::read_to_string(&config).expect("a configuration");
    assert!(
        recorded.starts_with("experiment = \"poisson\"\nversion = "),
        "{recorded}"
    );
    assert!(fs::read_to_string(second.join("config.toml")).expect("a file") == recorded);
}

#[test]
fn a_run_has_its_files_and_the_summary_its_fields() {
    let place = Place::new();
    let (directory, bytes) = complete(&place, "run");
    let expected = [
        "config.toml",
        "curves.svg",
        "distance.svg",
        "flow.svg",
        "metrics.jsonl",
        "summary.json",
        "timing.json",
        "weights.svg",
    ];
    assert_eq!(names(&directory), expected);
    let summary: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(summary["experiment"], "poisson");
    let row = &summary["rows"][0];
    for field in ["id", "label", "spec"] {
        assert!(row[field].is_string(), "{field}");
    }
    for field in [
        "mean",
        "time_std",
        "seed_std",
        "settle",
        "paper_mean",
        "paper_std",
    ] {
        assert!(row[field].is_f64(), "{field}");
    }
    // The same on stdout.
    let output = run(&[&small_in(&directory)[..], &["--json"]].concat());
    assert_eq!(
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON"),
        summary
    );
}

#[test]
fn the_table_stands_beside_the_paper_s_numbers() {
    let output = run(SMALL);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).expect("text");
    for word in [
        "straight-through",
        "paper, Table\u{a0}1",
        "5.1049  0.1610",
        "5.0076  0.0130",
        "Nothing was recorded",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
}

#[test]
fn bad_settings_exit_with_two_and_write_nothing() {
    let place = Place::new();
    let out = place.at("out");
    for (flags, hint) in [
        (&["--rate", "0"][..], "the rate must be positive"),
        (&["--rate", "-3"], "the rate must be positive"),
        (&["--rate", "nan"], "the rate must be positive"),
        (&["--init", "0"], "the initial rate must be positive"),
        (
            &["--learning-rate", "inf"],
            "the learning rate must be positive",
        ),
        (&["--seeds", "0"], "the number of seeds must be at least 1"),
        (
            &["--epochs", "0"],
            "the number of epochs must be at least 1",
        ),
        (&["--samples", "0"], "at least 1"),
        (&["--tail", "500"], "the tail must be between"),
        (&["--estimators", "straight-thru"], "straight-through"),
        (&["--estimators", "pwgf:bandwith=2"], "bandwidth"),
        (
            &["--estimators", "matched:nonsense"],
            "there is no estimator `nonsense`",
        ),
        (
            &["--estimators", "arm"],
            "does not support poisson variables",
        ),
        (
            &["--estimators", "reinforce:baseline=learned"],
            "learns state of its own",
        ),
        (
            &["--config", "no-such-file.toml"],
            "no-such-file.toml cannot be read",
        ),
    ] {
        let arguments = [&["poisson", "--out", text(&out)], flags].concat();
        refused(&arguments, hint, place.root.path());
        assert!(!out.exists());
    }
}

#[test]
fn directories_that_do_not_fit_exit_with_two_and_stay_as_they_are() {
    let place = Place::new();
    let root = place.root.path();
    let (directory, _) = complete(&place, "run");
    let other = [&small_in(&directory)[..], &["--learning-rate", "1"]].concat();
    refused(&other, "holds a different run", root);

    let stranger = place.at("stranger");
    fs::create_dir(&stranger).expect("a directory");
    fs::write(stranger.join("thesis.tex"), "important").expect("written");
    refused(&small_in(&stranger), "is neither empty nor a run", root);

    let file = place.at("file");
    fs::write(&file, "important").expect("written");
    refused(&small_in(&file), "cannot be used for a run", root);
    refused(
        &small_in(&file.join("below")),
        "cannot be used for a run",
        root,
    );

    let config = directory.join("config.toml");
    let toml = fs::read_to_string(&config).expect("a configuration");
    for (name, changed, hint) in [
        (
            "a.toml",
            toml.replace("\"poisson\"", "\"toy\""),
            "it is a `toy` config",
        ),
        (
            "b.toml",
            toml.replace("version = \"", "version = \"9."),
            "was written by version 9.",
        ),
        (
            "c.toml",
            toml.replace("rate = 5.0", "rate = -5.0"),
            "the rate must be positive",
        ),
        (
            "d.toml",
            toml.replace("rate = 5.0", "rat = 5.0"),
            "unknown field `rat`",
        ),
        ("e.toml", "rate = ".to_owned(), "is not a `poisson` config"),
    ] {
        let path = place.at(name);
        fs::write(&path, changed).expect("written");
        refused(&["poisson", "--config", text(&path)], hint, root);
    }

    let metrics = directory.join("metrics.jsonl");
    let good = String::from_utf8(records(&directory)).expect("text");
    let (first, rest) = good.split_once('\n').expect("lines");
    for (records, hint) in [
        (
            format!("{first}\n{{\"row\": 12\n{rest}"),
            "metrics.jsonl, line 2",
        ),
        (
            format!("{first}\n{{\"epoch\": 3}}\n{rest}"),
            "metrics.jsonl, line 2",
        ),
        (
            good.replace("straight-through", "crooked-through"),
            "no part of this configuration",
        ),
    ] {
        fs::write(&metrics, records).expect("written");
        refused(&small_in(&directory), hint, root);
    }
}

#[test]
fn a_run_that_diverges_exits_with_one() {
    let flags = ["--parametrisation", "log-rate", "--learning-rate", "1e6"];
    let output = run(&[SMALL, &flags].concat());
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("lower the learning rate"), "{message}");
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).expect("text");
        assert!(
            script.contains("poisson") && script.contains("estimators"),
            "{shell}"
        );
    }
    assert_eq!(run(&["completions", "csh"]).status.code(), Some(2));
}
