//! Every experiment of the list: what is committed of it opens, and its columns have their numbers.

use std::path::{Path, PathBuf};

use serde_json::Value;
use straightflow_experiments::EXPERIMENTS;
use straightflow_report::html;

fn results() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../results")
}

/// All run directories below one, also those of cells.
fn runs(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(below).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.join("config.toml").exists() && path.join("summary.json").exists() {
            found.push(path.clone());
        }
        if path.is_dir() {
            found.extend(runs(&path));
        }
    }
    found
}

fn show(
    id: &str,
    summary: &Value,
) -> Option<Result<straightflow_report::page::Page, serde_json::Error>> {
    let entry = EXPERIMENTS.iter().find(|entry| entry.id == id)?;
    Some(entry.show(summary))
}

#[test]
fn every_committed_run_opens_in_a_report() {
    let runs = runs(&results());
    assert!(runs.len() > 15, "only {} runs", runs.len());
    for run in &runs {
        let page = html::render(&[run], &show);
        let page = page.unwrap_or_else(|error| panic!("{error}"));
        // The title of a description, not the id of an experiment that nothing is known about.
        for entry in EXPERIMENTS {
            assert!(
                !page.contains(&format!("<h2>{}</h2>", entry.id)),
                "{}",
                run.display()
            );
        }
    }
}

/// The numbers that a page shows are those of the summary, at the places that the keys of the columns name.
#[test]
fn keys_of_columns_are_places_in_the_rows() {
    let mut checked = 0;
    for name in [
        "2026-11-15-poisson",
        "2026-11-16-toy",
        "2026-11-16-table2-deep",
    ] {
        let path = results().join(name).join("summary.json");
        let bytes = std::fs::read(&path).expect("a summary");
        let summary: Value = serde_json::from_slice(&bytes).expect("JSON");
        let id = summary["experiment"].as_str().unwrap_or("table2");
        let page = show(id, &summary)
            .expect("a known experiment")
            .expect("a page");
        let rows = summary["rows"].as_array().expect("rows");
        let shown = page.tables.iter().filter(|table| !table.is_detail);
        let shown = shown.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        for ((table, row), recorded) in shown.zip(rows) {
            for (heading, value) in table.headings.iter().zip(&row.values) {
                let place = format!("/{}", heading.key.replace('.', "/"));
                let (Some(number), Ok(shown)) = (
                    recorded.pointer(&place).and_then(Value::as_f64),
                    serde_json::to_value(value),
                ) else {
                    continue;
                };
                // Games that did not settle are counted in words.
                if !shown.is_string() {
                    assert_eq!(shown.as_f64(), Some(number), "{name}, {}", heading.key);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 200, "only {checked} numbers");
}

#[test]
fn the_names_of_the_list_are_those_of_the_folders() {
    let folders = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = std::fs::read_dir(folders).expect("the sources");
    let mut with_experiments: Vec<String> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("experiment.rs").exists())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    with_experiments.sort();
    let mut listed: Vec<&str> = EXPERIMENTS.iter().map(|entry| entry.id).collect();
    listed.sort_unstable();
    assert_eq!(listed, with_experiments);
    for entry in EXPERIMENTS {
        entry.command().debug_assert();
        assert!(entry.about.ends_with('.') && entry.examples.starts_with("Examples:"));
    }
}
