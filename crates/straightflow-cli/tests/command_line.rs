//! The binary as a user meets it.

use std::io::Read;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use straightflow::estimator::REGISTRY;

fn straightflow() -> Command {
    Command::new(env!("CARGO_BIN_EXE_straightflow"))
}

fn run(arguments: &[&str]) -> Output {
    let output = straightflow().args(arguments).output();
    output.expect("the binary runs")
}

#[test]
fn the_list_as_json_has_every_estimator_and_field() {
    let output = run(&["list", "--json"]);
    assert!(output.status.success());
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    let known: Vec<&str> = REGISTRY.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, known);
    for row in &rows {
        for field in ["name", "bias", "price", "draw", "reference"] {
            assert!(row[field].as_str().is_some_and(|text| !text.is_empty()));
        }
        for field in ["families", "needs"] {
            assert!(row[field].as_array().is_some_and(|list| !list.is_empty()));
        }
    }
}

#[test]
fn the_table_names_every_estimator() {
    let output = run(&["list"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    for entry in REGISTRY {
        assert!(
            text.lines().any(|line| line.starts_with(entry.id)),
            "{}",
            entry.id
        );
    }
}

#[test]
fn bad_input_exits_with_two_and_says_what_was_meant() {
    for (arguments, hint) in [
        (&["lst"][..], "'list'"),
        (&["vea"], "'vae'"),
        (&["tabel2"], "'table2'"),
        (&["toy", "--seeds", "-3"], "for '--seeds <N>'"),
        (&["poisson", "--epochs", "-1"], "for '--epochs <N>'"),
        (
            &["lab", "--replicates", "1.5"],
            "expected a non-negative whole number",
        ),
        (
            &["lab", "--replicates", "18446744073709551616"],
            "too large",
        ),
        (&["list", "--jsn"], "'--json'"),
        (&["list", "--json", "--markdown"], "cannot be used with"),
        (
            &["compare", "--family", "poisson", "--cost", "coupled"],
            "choose from aliased, cos1.3",
        ),
        (
            &["compare", "--family", "poisson", "--estimators", "disram"],
            "did you mean",
        ),
        (
            &["compare", "--family", "poisson", "--replicates", "3"],
            "at least 10",
        ),
        (
            &[
                "compare",
                "--family",
                "bernoulli",
                "--estimators",
                "arm,disarm",
            ],
            "separate names by spaces: arm disarm",
        ),
        (
            &["vae", "--estimator", "reinforce:baseline=mean"],
            "`baseline` cannot be `mean`, expected one of `none`",
        ),
        (
            &["vae", "--estimator", "reinforce:baseline=loo"],
            "at least 2 samples with these options, got 1; set `samples=2`",
        ),
        (&["bench", "--steps", "0"], "a whole number of at least 1"),
        (
            &["compare", "--family", "bernoulli", "--budget", "0"],
            "a whole number of at least 1",
        ),
        (&["vae", "--learning-rate", "fast"], "expected a number"),
        (&["toy", "--learning-rate", "fast"], "expected a number"),
        (
            &["cell", ".", "first"],
            "expected a non-negative whole number",
        ),
        (&[], "Usage"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(hint), "{arguments:?}: {message}");
    }
}

#[test]
fn a_comparison_has_a_row_for_each_estimator() {
    let mut words = vec!["compare", "--family", "bernoulli", "--cost", "coupled"];
    words.extend(["--replicates", "50", "--estimators", "disarm", "carms"]);
    let output = run(&words);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("10 bits, coupled = s + s^2 / 2"), "{text}");
    assert!(text.contains("`disarm:samples=4` has the smallest error"));
    // Enumeration has no error, and a budget of one evaluation buys nothing.
    let exact = [
        "compare",
        "--family",
        "bernoulli",
        "--cost",
        "coupled",
        "--replicates",
        "50",
    ];
    let exact = [
        &exact[..],
        &["--budget", "1024", "--estimators", "disarm", "enumerate"],
    ]
    .concat();
    let output = run(&exact);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("`enumerate` is exact here"), "{text}");
    let nothing = ["compare", "--family", "categorical", "--estimators", "arm"];
    assert_eq!(run(&nothing).status.code(), Some(2));
    words.push("--json");
    let output = run(&words);
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let [table] = tables.as_slice() else {
        panic!("one variable has this cost: {tables:?}");
    };
    assert_eq!(table["variable"], "bits-10");
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(table["best"], 0);
    assert_eq!(table["truth"]["enumeration"]["states"], 1024);
}

/// `straightflow list --json | head -1` is no failure.
#[cfg(unix)]
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let child = straightflow()
        .args(["list", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("the binary runs");
    // Closed before anything is read, as a pipe to a program that has ended.
    drop(child.stdout.take());
    let status = child.wait().expect("it ends");
    let mut message = String::new();
    let errors = child.stderr.take().expect("piped");
    std::io::BufReader::new(errors)
        .read_to_string(&mut message)
        .expect("text");
    assert!(status.success(), "{message}");
    assert!(message.is_empty(), "{message}");
}

/// A full disk is.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    let output = straightflow()
        .arg("list")
        .stdout(full.expect("a Linux kernel"))
        .stderr(Stdio::piped())
        .output();
    let output = output.expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.starts_with("straightflow: "), "{message}");
}

/// A file where the directory should be: said before anything is computed, and the file stays.
#[test]
fn reproduce_refuses_a_place_that_it_cannot_use() {
    let parent = tempfile::tempdir().expect("a directory");
    let file = parent.path().join("taken");
    std::fs::write(&file, "mine").expect("a file");
    let output = run(&["reproduce", "--out", file.to_str().expect("a plain path")]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(std::fs::read_to_string(&file).expect("it stays"), "mine");
    let output = run(&["reproduce", "--quick", "--full"]);
    assert_eq!(output.status.code(), Some(2));
}
