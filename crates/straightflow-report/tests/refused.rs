//! Run directories that a report does not take.

mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};

use straightflow_report::html::{self, ReportError};
use tempfile::TempDir;

fn runs() -> (TempDir, Vec<PathBuf>) {
    let parent = tempfile::tempdir().expect("a directory");
    let runs = synthetic::runs(parent.path());
    (parent, runs)
}

fn refused(path: &Path) -> ReportError {
    html::render(&[path], &synthetic::show::show).expect_err("bad input")
}

#[test]
fn pictures_that_are_none_or_too_large_are_refused() {
    let (_parent, runs) = runs();
    let file = runs[0].join("prior.png");
    for (bytes, words) in [
        (b"<svg/>".to_vec(), "not a PNG file"),
        (Vec::new(), "not a PNG file"),
        (vec![0; 5 << 20], "more than 4 MiB"),
    ] {
        fs::write(&file, bytes).expect("written");
        match refused(&runs[0]) {
            ReportError::Unexpected { path, reason } => {
                assert_eq!(path, file);
                assert!(reason.contains(words), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn directories_that_are_no_finished_runs_are_refused() {
    let (parent, runs) = runs();
    let missing = parent.path().join("missing");
    assert!(matches!(refused(&missing), ReportError::NoDirectory { path } if path == missing));
    assert!(matches!(
        refused(parent.path()),
        ReportError::NotARun { .. }
    ));
    let file = runs[0].join("config.toml");
    assert!(matches!(refused(&file), ReportError::NotARun { .. }));
    fs::remove_file(runs[0].join("summary.json")).expect("removed");
    assert!(matches!(refused(&runs[0]), ReportError::Unfinished { path } if path == runs[0]));
    let none: [&Path; 0] = [];
    assert!(matches!(
        html::render(&none, &synthetic::show::show),
        Err(ReportError::Nothing)
    ));
}

#[test]
fn broken_files_are_named_with_their_line() {
    let (_parent, runs) = runs();
    let cases = [
        ("summary.json", "{\n\"rows\": [\n{,}]}", 3),
        ("timing.json", "{\n\"wall\": }", 2),
        ("config.toml", "experiment = \"poisson\"\nseeds = = 3\n", 2),
        (
            "curves.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\">\n<g></svg>",
            2,
        ),
    ];
    for (name, text, line) in cases {
        let file = runs[0].join(name);
        let before = fs::read(&file).expect("a file");
        fs::write(&file, text).expect("written");
        match refused(&runs[0]) {
            ReportError::Broken {
                path, line: found, ..
            } => assert_eq!((path, found), (file.clone(), line)),
            other => panic!("{name}: {other:?}"),
        }
        fs::write(&file, before).expect("repaired");
    }
    html::render(&runs, &synthetic::show::show).expect("all is well again");

    fs::write(runs[0].join("metrics.jsonl"), "{}\n{\"a\": }\n{}\n").expect("written");
    let error = refused(&runs[0]).to_string();
    assert!(error.contains("metrics.jsonl, line 2"), "{error}");
    // A torn last line is what a kill leaves behind.
    fs::write(runs[0].join("metrics.jsonl"), "{}\n{\"a\": \"\u{e9}").expect("written");
    html::render(&runs, &synthetic::show::show).expect("a page");
}

#[test]
fn a_summary_of_another_form_is_refused() {
    let (_parent, runs) = runs();
    for (text, words) in [
        ("{\"experiment\": \"toy\"}", "no `rows`"),
        ("{\"rows\": 3}", "not an array"),
        ("{\"rows\": [3]}", "not an object"),
    ] {
        fs::write(runs[0].join("summary.json"), text).expect("written");
        let error = refused(&runs[0]).to_string();
        assert!(
            error.contains("summary.json") && error.contains(words),
            "{error}"
        );
    }
    fs::write(runs[0].join("summary.json"), b"{\"a\": \"\xff\"}").expect("written");
    assert!(matches!(refused(&runs[0]), ReportError::Unexpected { .. }));
}

#[test]
fn the_same_run_twice_is_refused() {
    let (parent, runs) = runs();
    let again = parent.path().join("toy").join("..").join("poisson");
    let error = html::render(&[&runs[0], &again], &synthetic::show::show).expect_err("twice");
    assert!(
        matches!(error, ReportError::Duplicate { first, second } if first == runs[0] && second == again)
    );
}
