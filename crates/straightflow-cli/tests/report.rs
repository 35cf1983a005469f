//! `straightflow report` as a user meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A finished run with made-up numbers.
fn run_directory(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    fs::create_dir(&path).expect("a directory");
    let files = [
        (
            "config.toml",
            format!("experiment = \"toy\"\nname = \"{name}\"\n"),
        ),
        (
            "timing.json",
            format!("{{\"command\": \"straightflow toy --seed {name}\"}}"),
        ),
        ("metrics.jsonl", "{\"seed\":0}\n{\"seed\":1}\n".to_owned()),
        (
            "summary.json",
            r#"{"experiment": "toy", "seeds": 2, "variance_p0": 0.499, "rows": [
                {"id": "arm", "label": "ARM", "spec": "arm", "unbiased": true, "steps": 900,
                 "runs": [{"p0": 0.49, "right": 2, "arrived": 2, "median_steps": 731, "end": 0.99,
                           "curve": [0.5, 0.99]}],
                 "variance": {"exact": 0.0005, "mean": 0.0005, "standard_error": 0.0001,
                              "log_variance": -13.5}}]}"#
                .to_owned(),
        ),
        (
            "curves.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><desc>A caption.</desc></svg>".to_owned(),
        ),
    ];
    for (file, text) in files {
        fs::write(path.join(file), text).expect("a file");
    }
    path
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Runs `straightflow report` with these arguments in the directory.
fn report(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_straightflow"));
    command.arg("report").args(arguments).current_dir(directory);
    command.output().expect("the binary runs")
}

/// The one line on standard error of a command that was refused because of its input.
fn refusal(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("text");
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty());
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    text
}

#[test]
fn runs_become_one_page() {
    let parent = directory();
    run_directory(parent.path(), "first");
    run_directory(parent.path(), "second");
    let output = report(parent.path(), &["first", "second"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"report.html\n");
    let page = fs::read_to_string(parent.path().join("report.html")).expect("the page");
    for text in [
        "straightflow toy --seed first",
        "straightflow toy --seed second",
        "p0 = 0.49",
        "731",
        "A caption.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains(&parent.path().display().to_string()));

    let output = report(parent.path(), &["second", "--out", "report.html"]);
    assert!(output.status.success(), "{output:?}");
    let replaced = fs::read_to_string(parent.path().join("report.html")).expect("the page");
    assert!(!replaced.contains("straightflow toy --seed first"));
}

#[test]
fn tables_are_printed_as_by_the_experiment() {
    let parent = directory();
    run_directory(parent.path(), "run");
    let output = report(parent.path(), &["run", "--text"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let row = text.lines().find(|line| line.starts_with("ARM "));
    let cells: Vec<&str> = row.expect("a row").split_whitespace().collect();
    assert_eq!(cells, ["ARM", "900", "2", "731", "−13.50", "0.0"], "{text}");
    assert_eq!(fs::read_dir(parent.path()).expect("entries").count(), 1);
}

#[test]
fn bad_runs_are_refused_in_one_sentence_and_nothing_is_written() {
    let parent = directory();
    fs::create_dir(parent.path().join("empty")).expect("a directory");
    // The name of the run, what is done to it, and what the sentence says.
    let cases = [
        ("unfinished", Some(("summary.json", "")), "summary.json"),
        (
            "summary",
            Some(("summary.json", "{\n\"rows\": [}")),
            "summary.json, line 2",
        ),
        (
            "metrics",
            Some(("metrics.jsonl", "{}\n{]\n{}\n")),
            "metrics.jsonl, line 2",
        ),
        ("plot", Some(("curves.svg", "<svg")), "curves.svg, line 1"),
        ("empty", None, "no config.toml"),
        ("nowhere", None, "there is no directory"),
    ];
    for (name, damage, words) in cases {
        if let Some((file, text)) = damage {
            let path = run_directory(parent.path(), name).join(file);
            match text {
                "" => fs::remove_file(path).expect("removed"),
                text => fs::write(path, text).expect("written"),
            }
        }
        let message = refusal(&report(parent.path(), &[name]));
        assert!(
            message.contains(name) && message.contains(words),
            "{message}"
        );
        assert!(!parent.path().join("report.html").exists());
    }
}

#[test]
fn the_same_run_twice_is_refused() {
    let parent = directory();
    run_directory(parent.path(), "run");
    let message = refusal(&report(parent.path(), &["run", "./run"]));
    assert!(message.contains("hold the same run"), "{message}");
}

#[test]
fn a_place_that_is_no_report_is_left_alone() {
    let parent = directory();
    run_directory(parent.path(), "run");
    fs::write(parent.path().join("thesis.html"), "precious").expect("a file");
    for out in [
        "thesis.html",
        "run",
        "thesis.html/report.html",
        "no/report.html",
    ] {
        let message = refusal(&report(parent.path(), &["run", "--out", out]));
        assert!(message.contains(out), "{message}");
    }
    let thesis = fs::read(parent.path().join("thesis.html")).expect("the file");
    assert_eq!(thesis, b"precious");
    assert_eq!(fs::read_dir(parent.path()).expect("entries").count(), 2);
}

#[test]
fn without_a_run_the_usage_is_shown() {
    let parent = directory();
    let output = report(parent.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("<DIR>"));
}
