//! `straightflow toy` and `straightflow lab` as a user meets them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &[&str], threads: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_straightflow"));
    let output = command
        .args(arguments)
        .env("RAYON_NUM_THREADS", threads)
        .output();
    output.expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Small runs of both commands.
const TOY: &[&str] = &[
    "toy",
    "--estimators",
    "arm",
    "relax",
    "reinforce:baseline=loo,samples=2",
    "--seeds",
    "2",
    "--steps",
    "12",
    "--p0",
    "0.45",
];
const LAB: &[&str] = &[
    "lab",
    "--family",
    "binomial",
    "--budget",
    "2",
    "8",
    "--replicates",
    "200",
    "--estimators",
    "straight-through",
    "finite-difference",
    "reinforce:baseline=loo,samples=2",
];

fn with_out<'a>(arguments: &[&'a str], out: &'a Path) -> Vec<&'a str> {
    let out = ["--out", out.to_str().expect("a plain path")];
    arguments.iter().copied().chain(out).collect()
}

#[test]
fn summaries_have_the_same_bytes_on_any_number_of_threads_and_after_an_interruption() {
    for (arguments, plot) in [(TOY, "steps-0.45.svg"), (LAB, "pareto-binomial.svg")] {
        let parent = tempfile::tempdir().expect("a directory");
        let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
        let output = run(&with_out(arguments, &first), "1");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let summary = fs::read(first.join("summary.json")).expect("a summary");
        for name in ["config.toml", "metrics.jsonl", "timing.json", plot] {
            assert!(first.join(name).is_file(), "{name}");
        }
        let config = fs::read_to_string(first.join("config.toml")).expect("a configuration");
        assert!(config.starts_with(&format!("experiment = \"{}\"\n", arguments[0])));

        // Another number of threads, then a process that was killed while it wrote its second line.
        assert!(run(&with_out(arguments, &second), "2").status.success());
        assert_eq!(
            summary,
            fs::read(second.join("summary.json")).expect("a summary")
        );
        let metrics = second.join("metrics.jsonl");
        let lines = fs::read_to_string(&metrics).expect("records");
        let end = lines.find('\n').expect("a line") + 20;
        fs::write(&metrics, &lines[..end]).expect("a torn file");
        fs::remove_file(second.join("summary.json")).expect("it was there");
        assert!(run(&with_out(arguments, &second), "2").status.success());
        assert_eq!(
            summary,
            fs::read(second.join("summary.json")).expect("a summary")
        );
        assert_eq!(lines, fs::read_to_string(&metrics).expect("records"));

        // The configuration alone repeats the run.
        let third = parent.path().join("third");
        let config = first.join("config.toml");
        let again = [
            arguments[0],
            "--config",
            config.to_str().expect("a plain path"),
        ];
        let output = run(&with_out(&again, &third), "2");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(
            summary,
            fs::read(third.join("summary.json")).expect("a summary")
        );
    }
}

/// A file may be changed by what is given, and one with the spelling of before is the same.
#[test]
fn configurations_may_be_changed_and_old_ones_open() {
    for arguments in [TOY, LAB] {
        let parent = tempfile::tempdir().expect("a directory");
        let [first, second] = ["first", "second"].map(|name| parent.path().join(name));
        let output = run(&with_out(arguments, &first), "2");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let path = first.join("config.toml");
        let config = fs::read_to_string(&path).expect("a configuration");
        assert!(!config.contains('_'), "{config}");

        let old = ["state-learning-rate", "learning-rate", "budget-replicates"];
        let before = old.iter().fold(config.clone(), |config, key| {
            config.replace(key, &key.replace('-', "_"))
        });
        assert_ne!(before, config, "{config}");
        fs::write(&path, &before).expect("written");
        let summary = fs::read(first.join("summary.json")).expect("a summary");
        fs::remove_file(first.join("summary.json")).expect("removed");
        let output = run(&with_out(arguments, &first), "2");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let again = fs::read(first.join("summary.json")).expect("a summary");
        assert!(again == summary, "an old run does not resume");

        let path = path.to_str().expect("a plain path");
        let changed = [arguments[0], "--config", path, "--seed", "7"];
        let output = run(&with_out(&changed, &second), "2");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let expected = config.replace("\nseed = 1\n", "\nseed = 7\n");
        let second = fs::read_to_string(second.join("config.toml")).expect("a configuration");
        assert_eq!(second, expected);
    }
}

/// The file of another experiment, and one with a mistake, are told apart.
#[test]
fn bad_files_are_refused_with_their_reason() {
    let parent = tempfile::tempdir().expect("a directory");
    let (run_of, file) = (parent.path().join("run"), parent.path().join("bad.toml"));
    let output = run(&with_out(TOY, &run_of), "2");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let config = fs::read_to_string(run_of.join("config.toml")).expect("a configuration");
    for (changed, hint) in [
        (
            config.replace("\"toy\"", "\"vae\""),
            "is not a `toy` config: it is a `vae` config",
        ),
        (
            config.replace("seeds = 2", "seeds = \"two\""),
            "line 4, `seeds`: invalid type: string \"two\"",
        ),
    ] {
        fs::write(&file, changed).expect("written");
        let output = run(&["toy", "--config", file.to_str().expect("plain")], "2");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(hint), "{hint}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn the_summary_as_json_has_the_rows() {
    for arguments in [TOY, LAB] {
        let output = run(&[arguments, &["--json"]].concat(), "2");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["experiment"], arguments[0]);
        for row in summary["rows"].as_array().expect("rows") {
            for field in ["id", "label", "spec"] {
                assert!(row[field].is_string(), "{field} of {row}");
            }
        }
    }
}

#[test]
fn tables_name_estimators_failures_and_advice() {
    let output = run(TOY, "2");
    let table = text(&output.stdout);
    for word in [
        "RELAX",
        "how many of the 2 runs",
        "log variance",
        "p0 = 0.45",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let output = run(&[LAB, &["--unbiased"]].concat(), "2");
    let table = text(&output.stdout);
    // Straight-through on the aliased and on the step cost, and the two budgets.
    for word in ["!!", "/0!", "Recommendations\n"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let lines = table.lines();
    let advice: Vec<Vec<&str>> = lines
        .filter_map(|line| line.strip_prefix("binomial, one variable"))
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    let expected = [["2", "none"], ["8", "none"]];
    assert_eq!(advice, expected, "{table}");
}

#[test]
fn bad_input_exits_with_two_says_why_and_writes_nothing() {
    let parent = tempfile::tempdir().expect("a directory");
    let out = parent.path().join("run");
    for (arguments, hint) in [
        (&["toy", "--p0", "0.5"][..], "1/2"),
        (&["toy", "--learning-rate", "-1"], "learning rate"),
        (&["toy", "--seeds", "0"], "seeds"),
        (&["toy", "--estimators", "disarmm"], "disarm"),
        (&["toy", "--estimators", "vimco"], "leave it out"),
        (&["lab", "--family", "gaussian"], "poisson"),
        (
            &["lab", "--estimators", "arm", "--family", "poisson"],
            "none of the estimators",
        ),
        (&["lab", "--replicates", "1"], "replicates"),
        (
            &["lab", "--replicates", "18446744073709551615"],
            "the number of replicates must be at most 1000000",
        ),
        (
            &["lab", "--replicates", "100000000000"],
            "the number of replicates must be at most 1000000",
        ),
        (
            &["lab", "--budget", "18446744073709551615"],
            "the number of evaluations in a budget must be at most 1000000",
        ),
        (
            &["toy", "--steps", "18446744073709551615"],
            "the number of steps must be at most 1000000",
        ),
        (&["lab", "--budget", "0"], "budget"),
    ] {
        let output = run(&with_out(arguments, &out), "2");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
        assert!(!out.exists(), "{arguments:?}");
    }
}

/// A directory keeps its run: another configuration is refused and changes nothing.
#[test]
fn another_run_is_not_overwritten() {
    let parent = tempfile::tempdir().expect("a directory");
    let out = parent.path().join("run");
    assert!(run(&with_out(TOY, &out), "2").status.success());
    let before = fs::read(out.join("summary.json")).expect("a summary");
    let output = run(
        &with_out(&[TOY, &["--learning-rate", "0.1"]].concat(), &out),
        "2",
    );
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(
        before,
        fs::read(out.join("summary.json")).expect("a summary")
    );
}
