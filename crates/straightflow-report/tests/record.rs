//! Runs as experiments meet them: created, killed, resumed, and refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use straightflow_report::{RecordError, Run};
use tempfile::TempDir;

#[derive(Serialize)]
struct Config {
    experiment: &'static str,
    seeds: u64,
}

const CONFIG: Config = Config {
    experiment: "poisson",
    seeds: 3,
};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    seed: u64,
    rate: f64,
}

fn record(seed: u64) -> Record {
    Record {
        seed,
        rate: 5.0 + 0.1 * seed as f64,
    }
}

fn directory() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("a directory");
    let path = parent.path().join("runs").join("poisson");
    (parent, path)
}

/// A run with two records, closed again.
fn recorded(path: &Path) {
    let mut run = Run::open(path, &CONFIG).expect("a new run");
    run.append(&record(0)).expect("appended");
    run.append(&record(1)).expect("appended");
}

/// Every file with its content.
fn content(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(path).expect("a directory");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|file| (file.clone(), fs::read(&file).expect("a file")))
        .collect();
    files.sort();
    files
}

/// The message with its causes, as the command line prints it.
fn sentence(error: &RecordError) -> String {
    use std::error::Error;
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn a_new_run_has_its_configuration_and_no_records() {
    let (_parent, path) = directory();
    let run = Run::open(&path, &CONFIG).expect("a new run");
    assert!(!run.resumed());
    assert_eq!(run.path(), path);
    assert_eq!(run.metrics::<Record>().expect("none"), []);
    let config = fs::read_to_string(path.join("config.toml")).expect("config.toml");
    assert_eq!(config, "experiment = \"poisson\"\nseeds = 3\n");
}

#[test]
fn records_come_back_to_the_bit() {
    let (_parent, path) = directory();
    // The second and the third are among those that serde_json misreads by a bit unless its feature
    // `float_roundtrip` is on; a resumed run would then end elsewhere than an uninterrupted one.
    let values = [
        0.1 + 0.2,
        9.613985432555607e-4,
        3.0182818773927446e-13,
        f64::MAX,
        -0.0,
        5e-324,
    ];
    {
        let mut run = Run::open(&path, &CONFIG).expect("a new run");
        for rate in values {
            run.append(&Record { seed: 7, rate }).expect("appended");
        }
    }
    let run = Run::open(&path, &CONFIG).expect("the same run");
    assert!(run.resumed());
    let back = run.metrics::<Record>().expect("records");
    let bits: Vec<u64> = back.iter().map(|record| record.rate.to_bits()).collect();
    assert_eq!(bits, values.map(f64::to_bits));
}

#[test]
fn a_torn_last_line_is_cut_off_and_the_run_goes_on() {
    let (_parent, path) = directory();
    recorded(&path);
    let metrics = path.join("metrics.jsonl");
    let whole = fs::read_to_string(&metrics).expect("metrics");
    let second = whole.find('\n').expect("a line") + 1;
    // Killed after any number of bytes of the second record, also right before its newline.
    for length in second..whole.len() {
        fs::write(&metrics, &whole[..length]).expect("torn");
        let mut run = Run::open(&path, &CONFIG).expect("the same run");
        assert!(run.resumed());
        assert_eq!(run.metrics::<Record>().expect("records"), [record(0)]);
        run.append(&record(1)).expect("appended");
        drop(run);
        assert_eq!(fs::read_to_string(&metrics).expect("metrics"), whole);
    }
}

#[test]
fn a_torn_first_line_leaves_a_run_without_records() {
    let (_parent, path) = directory();
    recorded(&path);
    fs::write(path.join("metrics.jsonl"), "{\"seed\":").expect("torn");
    let run = Run::open(&path, &CONFIG).expect("the same run");
    assert!(!run.resumed());
    assert_eq!(fs::read(path.join("metrics.jsonl")).expect("metrics"), b"");
}

#[test]
fn a_corrupt_line_is_named_and_nothing_is_touched() {
    let (_parent, path) = directory();
    recorded(&path);
    let metrics = path.join("metrics.jsonl");
    fs::write(
        &metrics,
        "{\"seed\":0}\n{\"seed\":0,,}\n{\"seed\":1}\n{\"torn",
    )
    .expect("corrupt");
    let before = content(&path);
    let error = Run::open(&path, &CONFIG).expect_err("corrupt");
    assert!(matches!(error, RecordError::Corrupt { line: 2, .. }));
    assert!(error.is_bad_input());
    let text = sentence(&error);
    assert!(
        text.starts_with(&format!("{}, line 2: ", metrics.display())),
        "{text}"
    );
    assert!(text.contains("at column 11"), "{text}");
    assert_eq!(content(&path), before);
}

#[test]
fn a_record_of_another_kind_is_named() {
    let (_parent, path) = directory();
    recorded(&path);
    let metrics = path.join("metrics.jsonl");
    fs::write(&metrics, "{\"seed\":0,\"rate\":1.0}\n{\"seed\":1}\n").expect("written");
    let run = Run::open(&path, &CONFIG).expect("it is JSON");
    let error = run.metrics::<Record>().expect_err("a field is missing");
    assert!(matches!(&error, RecordError::Corrupt { line: 2, .. }));
    assert!(sentence(&error).contains("missing field `rate`"));
}

#[test]
fn another_configuration_is_refused_and_nothing_overwritten() {
    let (_parent, path) = directory();
    recorded(&path);
    let before = content(&path);
    let other = Config { seeds: 4, ..CONFIG };
    let error = Run::open(&path, &other).expect_err("another run");
    assert!(matches!(&error, RecordError::AnotherRun { line, .. } if line == "seeds = 3"));
    assert!(error.is_bad_input());
    assert!(sentence(&error).contains(&path.display().to_string()));
    assert_eq!(content(&path), before);
}

#[test]
fn a_directory_that_is_no_run_is_refused_and_left_alone() {
    let (_parent, path) = directory();
    fs::create_dir_all(&path).expect("a directory");
    fs::write(path.join("thesis.tex"), "precious").expect("a file");
    let before = content(&path);
    let error = Run::open(&path, &CONFIG).expect_err("not a run");
    assert!(matches!(error, RecordError::NotARun { .. }));
    assert!(error.is_bad_input());
    assert_eq!(content(&path), before);
}

#[test]
fn an_empty_directory_is_used() {
    let (_parent, path) = directory();
    fs::create_dir_all(&path).expect("a directory");
    Run::open(&path, &CONFIG).expect("a new run");
}

#[test]
fn what_a_killed_creation_leaves_behind_is_no_obstacle() {
    let (_parent, path) = directory();
    fs::create_dir_all(&path).expect("a directory");
    fs::write(path.join(".straightflow-Ab12cD"), "experi").expect("a file");
    let run = Run::open(&path, &CONFIG).expect("a new run");
    assert!(!run.resumed());
}

#[test]
fn what_a_killed_process_leaves_behind_is_removed() {
    let (_parent, path) = directory();
    recorded(&path);
    let before = content(&path);
    let left = path.join(".straightflow-Ab12cD");
    fs::write(&left, "half of a checkpoint").expect("a file");
    // Not by a process that is refused: the file may be in use.
    let other = Config { seeds: 4, ..CONFIG };
    Run::open(&path, &other).expect_err("another run");
    assert!(left.exists());
    let run = Run::open(&path, &CONFIG).expect("the same run");
    assert_eq!(content(&path), before);
    fs::write(&left, "half of a summary").expect("a file");
    Run::open(&path, &CONFIG).expect_err("it is open");
    assert!(left.exists());
    drop(run);
}

#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let (parent, _) = directory();
    let file = parent.path().join("file");
    fs::write(&file, "a regular file").expect("a file");
    for path in [file.clone(), file.join("below")] {
        let error = Run::open(&path, &CONFIG).expect_err("a file is in the way");
        assert!(matches!(error, RecordError::Unwritable { .. }));
        assert!(error.is_bad_input());
        assert!(sentence(&error).contains(&path.display().to_string()));
    }
    assert_eq!(fs::read(&file).expect("the file"), b"a regular file");
}

#[test]
fn a_directory_in_the_place_of_a_file_is_refused() {
    for name in ["config.toml", "metrics.jsonl"] {
        let (_parent, path) = directory();
        recorded(&path);
        fs::remove_file(path.join(name)).expect("removed");
        fs::create_dir(path.join(name)).expect("a directory in the way");
        let error = Run::open(&path, &CONFIG).expect_err(name);
        assert!(error.is_bad_input(), "{error}");
        assert!(sentence(&error).contains(name), "{error}");
    }
}

#[test]
fn a_run_is_open_once() {
    let (_parent, path) = directory();
    let first = Run::open(&path, &CONFIG).expect("a new run");
    let error = Run::open(&path, &CONFIG).expect_err("it is open");
    assert!(matches!(error, RecordError::Busy { .. }));
    drop(first);
    Run::open(&path, &CONFIG).expect("it is free again");
}

#[test]
fn files_are_replaced_as_a_whole() {
    let (_parent, path) = directory();
    let run = Run::open(&path, &CONFIG).expect("a new run");
    run.write_json("summary.json", &record(1)).expect("written");
    run.write_json("summary.json", &record(2)).expect("written");
    let text = fs::read_to_string(path.join("summary.json")).expect("summary");
    assert_eq!(text, "{\n  \"seed\": 2,\n  \"rate\": 5.2\n}\n");
    run.write_text("curves.svg", "<svg/>").expect("written");
    let text = fs::read_to_string(path.join("curves.svg")).expect("plot");
    assert_eq!(text, "<svg/>");
    // Not UTF-8, and shorter than what it replaces.
    run.write_bytes("prior.png", b"\x89PNG\0\xff")
        .expect("written");
    run.write_bytes("prior.png", b"\xff\0").expect("written");
    let bytes = fs::read(path.join("prior.png")).expect("picture");
    assert_eq!(bytes, b"\xff\0");
    // config.toml, metrics.jsonl and the three of above: no temporary file is left.
    assert_eq!(fs::read_dir(&path).expect("entries").count(), 5);
}

#[test]
fn a_file_that_cannot_be_replaced_stays_as_it_was() {
    let (_parent, path) = directory();
    let run = Run::open(&path, &CONFIG).expect("a new run");
    let obstacle = path.join("summary.json");
    fs::create_dir(&obstacle).expect("a directory in the way");
    fs::write(obstacle.join("inside"), "kept").expect("a file");
    for error in [
        run.write_json("summary.json", &record(1)),
        run.write_bytes("summary.json", b"\xff"),
    ] {
        let error = error.expect_err("a directory is in the way");
        assert!(matches!(&error, RecordError::Write { path, .. } if *path == obstacle));
        assert!(!error.is_bad_input());
    }
    assert_eq!(fs::read(obstacle.join("inside")).expect("kept"), b"kept");
    assert_eq!(fs::read_dir(&path).expect("entries").count(), 3);
}

#[test]
fn files_of_a_run_have_plain_names_that_are_not_taken() {
    let (_parent, path) = directory();
    let run = Run::open(&path, &CONFIG).expect("a new run");
    let before = content(&path);
    for name in [
        "",
        ".",
        "..",
        "a/b",
        "../x",
        "/tmp/x",
        "config.toml",
        "metrics.jsonl",
    ] {
        let error = run.write_text(name, "text").expect_err(name);
        assert!(matches!(error, RecordError::Name { .. }), "{name}");
        let error = run.write_bytes(name, b"\xff").expect_err(name);
        assert!(matches!(error, RecordError::Name { .. }), "{name}");
    }
    assert_eq!(content(&path), before);
}

#[test]
fn a_configuration_without_a_form_in_toml_creates_nothing() {
    let (_parent, path) = directory();
    let error = Run::open(&path, &5.0).expect_err("TOML is a table");
    assert!(matches!(error, RecordError::Config { .. }));
    assert!(!path.exists());
}
