//! `straightflow table2`, and reports of runs and tables.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{
    Moments, Place, complete_records, errors, failed, finish, lines, names, records, refused, run,
    snapshot, straightflow, text, wait_for,
};
use crate::kills::killed;
use crate::{complete, epochs, json};

const TABLE: &[&str] = &[
    "table2",
    "--arch",
    "linear",
    "two-layer",
    "--images",
    "100",
    "--epochs",
    "2",
    "--bound-samples",
    "2",
    "--seeds",
    "2",
    "--estimators",
];
const CELLS: [&str; 8] = [
    "linear-arm-1",
    "linear-arm-2",
    "linear-straight-through-1",
    "linear-straight-through-2",
    "two-layer-arm-1",
    "two-layer-arm-2",
    "two-layer-straight-through-1",
    "two-layer-straight-through-2",
];

fn table_in<'a>(estimators: &[&'a str], jobs: &'a str, directory: &'a Path) -> Vec<&'a str> {
    let rest = ["--jobs", jobs, "--out", text(directory)];
    [TABLE, estimators, &rest].concat()
}

/// Eight cells of two epochs.
pub fn small<'a>(jobs: &'a str, directory: &'a Path) -> Vec<&'a str> {
    table_in(&["straight-through", "arm"], jobs, directory)
}

/// The cells that are recorded, each once.
fn recorded_cells(directory: &Path) -> BTreeSet<String> {
    let records = epochs(directory);
    let cell = |record: &serde_json::Value| record["cell"].as_str().expect("a name").to_owned();
    let cells: BTreeSet<String> = records.iter().map(cell).collect();
    assert_eq!(cells.len(), records.len(), "a cell is there twice");
    cells
}

#[test]
fn a_table_has_its_rows_and_cells_and_the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    let [one, two] = ["1", "2"].map(|jobs| {
        let directory = place.at(jobs);
        (finish(&small(jobs, &directory), &directory), directory)
    });
    assert!(one.0 == two.0, "the summaries differ");
    let directory = two.1;
    assert_eq!(names(&directory.join("cells")), CELLS);
    let cells = recorded_cells(&directory);
    assert!(cells.iter().eq(CELLS.iter()), "{cells:?}");
    for cell in CELLS {
        let [one, two] = [&one.1, &directory].map(|d| d.join("cells").join(cell));
        for name in ["config.toml", "summary.json", "metrics.jsonl"] {
            let [one, two] = [one.join(name), two.join(name)].map(|p| fs::read(p).expect("a file"));
            assert!(one == two, "{name} of {cell} differs");
        }
    }

    let summary = json(&directory.join("summary.json"));
    let rows = summary["rows"].as_array().expect("rows");
    let rows: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            assert_eq!(row["seeds"], 2, "{row}");
            assert_eq!(row["curve"].as_array().map(Vec::len), Some(2), "{row}");
            assert!(
                row["paper"].is_null(),
                "a part of the images is no comparison: {row}"
            );
            let text = |field: &str| row[field].as_str().expect("text");
            (text("arch"), text("estimator"))
        })
        .collect();
    let expected = [
        ("linear", "straight-through"),
        ("linear", "arm"),
        ("two-layer", "straight-through"),
        ("two-layer", "arm"),
    ];
    assert_eq!(rows, expected);

    // A row is the mean of its cells, and a complete table is only read again.
    let cell = |name: &str| json(&directory.join("cells").join(name).join("summary.json"));
    let [a, b] = [cell("linear-arm-1"), cell("linear-arm-2")].map(|s| s["test_nelbo"].as_f64());
    let mean = (a.expect("a number") + b.expect("a number")) / 2.0;
    assert_eq!(summary["rows"][1]["test_nelbo"].as_f64(), Some(mean));
    let before = snapshot(&directory);
    let output = run(&small("1", &directory));
    assert!(output.status.success(), "{}", errors(&output));
    assert!(snapshot(&directory) == before, "a complete table changed");
    let table = String::from_utf8(output.stdout).expect("text");
    for word in ["linear, bernoulli", "Straight-through", "ARM"] {
        assert!(table.contains(word), "{word}: {table}");
    }
}

#[test]
fn a_killed_table_goes_on_and_ends_with_the_same_bits() {
    let place = Place::new();
    let start = Instant::now();
    let uninterrupted = place.at("uninterrupted");
    let expected = finish(&small("2", &uninterrupted), &uninterrupted);
    let whole = start.elapsed();

    let directory = place.at("killed");
    let mut moments = Moments(191_002_176);
    let mut interrupted = 0;
    for wanted in [0, 0, 1, 3, 5, 6] {
        let recorded = complete_records(&directory);
        let delay: Duration = moments.before(whole / 10);
        interrupted += usize::from(killed(&small("2", &directory), |child| {
            wait_for(wanted, &directory, child);
            sleep(delay);
        }));
        let kept = records(&directory).starts_with(&recorded);
        assert!(kept, "the record of a cell was lost");
    }
    assert!(interrupted >= 3, "the kills came too late: {interrupted}");
    let left = CELLS.len() - lines(&complete_records(&directory));
    assert!(finish(&small("1", &directory), &directory) == expected);
    let cells = recorded_cells(&directory);
    assert!(cells.iter().eq(CELLS.iter()), "{cells:?}");
    assert_eq!(names(&directory), names(&uninterrupted));
    // The notes say how much of the table the last process played, if it played any of it.
    if left > 0 {
        let share = json(&directory.join("timing.json"))["share"].as_f64();
        // Cells that were begun before count by what was left of their steps, which may be none.
        let (share, most) = (share.expect("a share"), left as f64 / CELLS.len() as f64);
        assert!(
            (0.0..=most + 1e-12).contains(&share),
            "{share}, {left} cells"
        );
    }
    for cell in CELLS {
        let [one, two] = [&uninterrupted, &directory].map(|d| d.join("cells").join(cell));
        assert_eq!(names(&one), names(&two), "{cell}");
        assert_eq!(crate::recorded_epochs(&two), [1, 2], "{cell}");
    }
}

#[test]
fn a_cell_that_fails_is_named_and_does_not_stop_the_others() {
    let place = Place::new();
    let directory = place.at("table");
    let arguments = small("2", &directory);
    finish(&arguments, &directory);
    // A file stands where two of the runs want their directories.
    let lost = ["linear-arm-1", "two-layer-straight-through-2"];
    for cell in lost {
        let cell = directory.join("cells").join(cell);
        fs::remove_dir_all(&cell).expect("removed");
        fs::write(&cell, "in the way").expect("written");
    }
    let mut summaries = Vec::new();
    for _ in 0..2 {
        let output = run(&arguments);
        let sentence = failed(&output);
        for words in ["linear-arm-1 failed", "and 1 more, see summary.json"] {
            assert!(sentence.contains(words), "{words}: {sentence}");
        }
        let table = String::from_utf8(output.stdout).expect("text");
        assert!(table.contains("ARM"), "{table}");
        summaries.push(fs::read(directory.join("summary.json")).expect("a summary"));
    }
    assert!(summaries[0] == summaries[1], "another summary");
    let summary = json(&directory.join("summary.json"));
    let failures = summary["failures"].as_array().expect("failures");
    let failures: Vec<&str> = failures.iter().filter_map(|f| f[0].as_str()).collect();
    assert_eq!(failures, lost);
    let rows = summary["rows"].as_array().expect("rows").iter();
    let counts = rows.map(|row| (row["seeds"].as_u64(), row["unfinished"].as_u64()));
    let (whole, half) = ((Some(2), Some(0)), (Some(1), Some(1)));
    assert!(counts.eq([whole, half, half, whole]), "{summary}");
}

#[test]
fn bad_tables_exit_with_two_and_write_nothing() {
    let place = Place::new();
    let out = place.at("out");
    for (flags, hint) in [
        (&["--estimators", "amr"][..], "there is no estimator `amr`"),
        (
            &["--estimators", "arm", "arm"],
            "`arm` is in the table twice",
        ),
        (&["--seeds", "0"], "the table has no cells"),
        (
            &["--latent", "poisson", "--estimators", "arm"],
            "does not support poisson variables",
        ),
        (&["--protocol", "dynamic"], "--data DIR"),
        (&["--config", "no-such-file.toml"], "cannot be read"),
        (&["--resume"], "has no run to resume"),
        (
            &["--images", "0"],
            "the number of images must be at least 1",
        ),
        (
            &["--epochs", "0"],
            "the number of epochs must be at least 1",
        ),
    ] {
        let arguments = [&["table2", "--out", text(&out)], flags].concat();
        refused(&arguments, hint, place.root.path());
        assert!(!out.exists(), "{flags:?} made a directory");
    }
    for flags in [&["--epochs", "-1"][..], &["--jobs", "0"]] {
        let output = run(&[&["table2", "--out", text(&out)], flags].concat());
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    }
    assert_eq!(run(&["table2"]).status.code(), Some(2), "--out is needed");
}

#[test]
fn a_report_shows_a_run_and_a_table() {
    let place = Place::new();
    let table = place.at("table");
    finish(&small("2", &table), &table);
    complete(&place, "run", &["--epochs", "2"]);
    let page = |name: &str| {
        let output = straightflow(&["report", name, "--out", "page.html"])
            .current_dir(place.root.path())
            .output()
            .expect("the binary runs");
        assert!(output.status.success(), "{name}: {}", errors(&output));
        fs::read_to_string(place.at("page.html")).expect("a page")
    };
    let has = |page: &str, words: &str| assert!(page.contains(words), "no {words} in the page");

    let run = page("run");
    let pictures = run.matches("src=\"data:image/png;base64,").count();
    assert_eq!(pictures, 2, "reconstructions and samples");
    has(&run, "Straight-through");
    has(&run, "<title>Negative ELBO, Straight-through</title>");
    has(&run, "straightflow vae --images 100");
    has(
        &run,
        "straightflow vae --config run/config.toml --out runs/run",
    );
    let table = page("table");
    for words in ["Straight-through", ">ARM<", "two-layer"] {
        has(&table, words);
    }
    has(
        &table,
        "<title>Test negative ELBO against steps, two-layer</title>",
    );
    for page in [run, table] {
        let own = page.replace("http://www.w3.org", "");
        assert!(!own.contains("src=\"http"), "a page loads nothing");
    }
    assert_eq!(lines(&records(&place.at("run"))), 2, "a report only reads");
}
