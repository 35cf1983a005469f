//! What a run leaves behind.

use std::fs;

use serde_json::Value;

use crate::common::{Place, errors, names, run, snapshot, straightflow, text};
use crate::{epochs, json};

const RUN: &[&str] = &[
    "vae",
    "--images",
    "200",
    "--epochs",
    "2",
    "--bound-samples",
    "5",
];
const FILES: [&str; 8] = [
    "checkpoint.bin",
    "config.toml",
    "curves.svg",
    "metrics.jsonl",
    "prior.png",
    "reconstructions.png",
    "summary.json",
    "timing.json",
    // No variance.svg: these are not steps enough to measure it twice.
];

#[test]
fn a_run_has_its_files_and_the_summary_its_fields() {
    let place = Place::new();
    let directory = place.at("run");
    let arguments = [RUN, &["--out", text(&directory)]].concat();
    let output = run(&arguments);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(names(&directory), FILES);

    let summary = json(&directory.join("summary.json"));
    for field in ["train_nelbo", "valid_nelbo", "test_nelbo", "test_bound_100"] {
        assert!(summary[field].is_f64(), "{field} of {summary}");
        assert_eq!(summary["rows"][0][field], summary[field], "{field}");
    }
    assert_eq!(summary["bound_samples"], 5);
    let rows = summary["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "a run is one row");
    assert_eq!(rows[0]["label"], "Straight-through");
    assert_eq!(rows[0]["steps"], 16, "8 steps of 25 images in each epoch");
    let curve = summary["curve"].as_array().expect("a curve");
    assert_eq!(*curve, epochs(&directory), "the curve is what was recorded");
    assert_eq!(curve.len(), 2, "a point for each epoch");
    // The bound of the first training images has a name of its own.
    assert!(curve[1]["train_part_nelbo"].is_f64(), "{summary}");
    assert!(curve[1]["train_nelbo"].is_null(), "{summary}");
    let bound = summary["test_bound_100"].as_f64().expect("a number");
    let nelbo = summary["test_nelbo"].as_f64().expect("a number");
    assert!(
        bound < nelbo,
        "a bound of 5 draws is tighter: {bound}, {nelbo}"
    );

    let timing = json(&directory.join("timing.json"));
    assert_eq!(timing["command"], format!("straightflow {}", RUN.join(" ")));
    assert_eq!(timing["share"], 1.0, "this process did all of it");
    for (name, signature) in [
        ("prior.png", &b"\x89PNG"[..]),
        ("reconstructions.png", b"\x89PNG"),
        ("curves.svg", b"<svg"),
    ] {
        let bytes = fs::read(directory.join(name)).expect("a picture");
        assert!(bytes.starts_with(signature), "{name}");
    }
}

#[test]
fn the_same_run_twice_has_the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    let directories = ["1", "3"].map(|threads| {
        let directory = place.at(threads);
        let arguments = [RUN, &["--out", text(&directory)]].concat();
        let output = straightflow(&arguments)
            .env("RAYON_NUM_THREADS", threads)
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{}", errors(&output));
        directory
    });
    // Checkpoints have the identifiers that burn gives to parameters, which are new in every process.
    let repeated = |name: &&str| !["timing.json", "checkpoint.bin"].contains(name);
    for name in FILES.into_iter().filter(repeated) {
        let [first, second] = directories.each_ref().map(|d| fs::read(d.join(name)));
        let same = first.expect("a file") == second.expect("a file");
        assert!(same, "{name} differs");
    }
}

#[test]
fn a_complete_run_is_only_read_and_printed_again() {
    let place = Place::new();
    let directory = place.at("run");
    let arguments = [RUN, &["--out", text(&directory)]].concat();
    let first = run(&arguments);
    assert!(first.status.success(), "{}", errors(&first));
    let before = snapshot(&directory);
    let resume = ["vae", "--resume", "--out", text(&directory)];
    for again in [&arguments[..], &resume] {
        let output = run(again);
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(
            output.stdout, first.stdout,
            "{again:?} prints something else"
        );
        assert!(snapshot(&directory) == before, "{again:?} changed a file");
    }
    let output = run(&[&resume[..], &["--json"]].concat());
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(printed, json(&directory.join("summary.json")));
    let words = String::from_utf8(first.stdout).expect("text");
    for word in ["Straight-through, linear", "5-sample bound", "Recorded in"] {
        assert!(words.contains(word), "{word}: {words}");
    }
}

#[test]
fn the_recorded_configuration_repeats_the_run() {
    let place = Place::new();
    let [first, second] = ["first", "second"].map(|name| place.at(name));
    let settings = [
        "--epochs",
        "1",
        "--estimator",
        "reinforce",
        "--samples",
        "2",
    ];
    let output = run(&crate::small_in(&settings, &first));
    assert!(output.status.success(), "{}", errors(&output));
    let config = first.join("config.toml");
    let again = ["vae", "--config", text(&config), "--out", text(&second)];
    let output = run(&again);
    assert!(output.status.success(), "{}", errors(&output));
    for name in ["config.toml", "summary.json", "metrics.jsonl"] {
        let [first, second] = [&first, &second].map(|d| fs::read(d.join(name)).expect("a file"));
        assert!(first == second, "{name} differs");
    }
}

/// What is given on the command line is in place of what the file says, and nothing else is.
#[test]
fn a_recorded_configuration_may_be_changed() {
    let place = Place::new();
    let [first, second, third] = ["first", "second", "third"].map(|name| place.at(name));
    let chosen = [
        "--epochs",
        "1",
        "--estimator",
        "rebar",
        "--state-learning-rate",
        "0.02",
        "--prior",
        "learned",
        "--prior-learning-rate",
        "0.5",
        "--inputs",
        "mean",
        "--latent-inputs",
        "none",
        "--output-bias",
        "true",
        "--slope",
        "0.25",
        "--validation",
        "last-7000",
        "--direct",
        "kept",
    ];
    let text_of = |directory: &std::path::Path| {
        fs::read_to_string(directory.join("config.toml")).expect("a configuration")
    };
    let output = run(&crate::small_in(&chosen, &first));
    assert!(output.status.success(), "{}", errors(&output));
    let config = first.join("config.toml");
    let from = ["vae", "--config", text(&config)];
    let again = [&from[..], &["--seed", "2", "--out", text(&second)]].concat();
    let output = run(&again);
    assert!(output.status.success(), "{}", errors(&output));
    let expected = text_of(&first).replace("seed = 1", "seed = 2");
    assert_eq!(text_of(&second), expected);
    for line in [
        "state-learning-rate = 0.02",
        "prior = \"learned\"",
        "prior-learning-rate = 0.5",
        "inputs = \"mean\"",
        "latent-inputs = \"none\"",
        "output-bias = true",
        "slope = 0.25",
        "partition = \"last-7000\"",
        "direct = \"kept\"",
    ] {
        assert!(expected.lines().any(|own| own == line), "{line}");
    }

    // What a file has from its protocol follows the protocol, and what was chosen stays.
    let plain = ["--epochs", "1", "--slope", "0.25"];
    let output = run(&crate::small_in(&plain, &place.at("plain")));
    assert!(output.status.success(), "{}", errors(&output));
    let config = place.at("plain").join("config.toml");
    let from = ["vae", "--config", text(&config), "--out", text(&third)];
    let output = run(&[&from[..], &["--arch", "nonlinear"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    for line in ["inputs = \"none\"", "slope = 0.25", "epochs = 1"] {
        assert!(text_of(&third).lines().any(|own| own == line), "{line}");
    }
    // The recorded command repeats it without the file.
    let command = json(&second.join("timing.json"))["command"].to_string();
    assert!(command.contains("--state-learning-rate 0.02"), "{command}");
    assert!(!command.contains("--config"), "{command}");
}

#[test]
fn without_a_directory_nothing_is_written() {
    let place = Place::new();
    let output = straightflow(&[crate::SMALL, &["--epochs", "1"]].concat())
        .current_dir(place.root.path())
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", errors(&output));
    let words = String::from_utf8(output.stdout).expect("text");
    assert!(words.contains("Nothing was recorded"), "{words}");
    assert!(names(place.root.path()).is_empty(), "a file was written");
}
