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
        "2026-11-18-toy",
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

/// Copies of recorded plots in the documentation.
const COPIES: [(&str, &str); 9] = [
    (
        "bernoulli-vae-linear.svg",
        "2026-11-16-table2-linear/linear-steps.svg",
    ),
    (
        "debiased-linear-steps.svg",
        "2026-11-16-table2-unbiased/linear-steps.svg",
    ),
    (
        "debiased-linear-evaluations.svg",
        "2026-11-16-table2-unbiased/linear-evaluations.svg",
    ),
    (
        "debiased-linear-variance.svg",
        "2026-11-16-table2-unbiased/linear-variance.svg",
    ),
    (
        "nonlinear-400.svg",
        "2026-11-16-table2-400-nonlinear/nonlinear-steps.svg",
    ),
    (
        "two-layer-400.svg",
        "2026-11-18-table2-400-two-layer/two-layer-steps.svg",
    ),
    (
        "uncentred.svg",
        "2026-11-18-table2-uncentred/nonlinear-steps.svg",
    ),
    ("poisson-curves.svg", "2026-11-15-poisson/curves.svg"),
    ("poisson-distance.svg", "2026-11-15-poisson/distance.svg"),
];

/// Plots that are drawn from a summary are committed as they are drawn today. With
/// `STRAIGHTFLOW_REDRAW=1` they are written instead of compared.
#[test]
fn committed_plots_are_those_of_the_summaries() {
    let redraw = std::env::var_os("STRAIGHTFLOW_REDRAW").is_some();
    let mut compared = 0;
    let mut check = |path: &Path, expected: &[u8]| {
        if redraw {
            std::fs::write(path, expected).expect("a plot");
        }
        let found = std::fs::read(path).unwrap_or_default();
        assert!(found == expected, "{} is not as drawn", path.display());
        compared += 1;
    };
    for entry in std::fs::read_dir(results()).expect("the results") {
        let directory = entry.expect("an entry").path();
        let Ok(summary) = std::fs::read(directory.join("summary.json")) else {
            continue;
        };
        let summary: Value = serde_json::from_slice(&summary).expect("JSON");
        let id = summary["experiment"].as_str().unwrap_or("table2");
        let page = show(id, &summary).expect("known").expect("a page");
        let files = std::fs::read_dir(&directory).expect("a run");
        let mut names = files.map(|file| file.expect("a file").path());
        // Short runs are recorded without plots.
        if names.any(|name| name.extension().is_some_and(|found| found == "svg")) {
            for (name, svg) in &page.figures {
                check(&directory.join(name), svg.as_bytes());
            }
        }
    }
    for (copy, original) in COPIES {
        let original = std::fs::read(results().join(original)).expect("a plot");
        check(&results().join("../docs/experiments").join(copy), &original);
    }
    assert!(compared > 30, "only {compared} plots");
}

/// What tables of short runs show beside them is the longest run that is recorded.
#[test]
fn recorded_rows_are_those_of_the_longest_runs() {
    use straightflow_experiments::table2::{TableSummary, recorded};
    let mut longest = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(results()).expect("the results") {
        let directory = entry.expect("an entry").path();
        let name = directory
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let Ok(summary) = std::fs::read(directory.join("summary.json")) else {
            continue;
        };
        let Ok(summary) = serde_json::from_slice::<TableSummary>(&summary) else {
            continue;
        };
        for row in summary.rows {
            if row.latent != "bernoulli" || row.protocol != "threshold" {
                continue;
            }
            let rank = (row.epochs, row.seeds, name.clone());
            let place = (row.arch.clone(), row.estimator.clone());
            let known = longest
                .entry(place)
                .or_insert_with(|| (rank.clone(), row.clone()));
            if known.0 < rank {
                *known = (rank, row);
            }
        }
    }
    assert_eq!(recorded().len(), longest.len());
    for one in recorded() {
        let place = (one.arch.clone(), one.estimator.clone());
        let (_, row) = &longest[&place];
        let found = (row.epochs, row.seeds, row.test_nelbo, row.paper, &row.label);
        let shown = (one.epochs, one.seeds, one.test_nelbo, one.paper, &one.label);
        assert_eq!(shown, found, "{place:?}");
    }
}

fn recorded_page(run: &str) -> straightflow_report::page::Page {
    let summary = std::fs::read(results().join(run).join("summary.json")).expect("a record");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    show("table2", &summary).expect("known").expect("a page")
}

/// A page of the linear networks also shows what is recorded of the others, and of other methods.
#[test]
fn pages_show_recorded_runs_of_other_networks() {
    let page = recorded_page("2026-11-16-table2-linear");
    let cells = page.glance.expect("a table").cells;
    let is_there = |column: &str, row: &str| {
        let mut cells = cells.iter().filter(|cell| cell.value.is_some());
        cells.any(|cell| cell.column == column && format!("{:?}", cell.row).contains(row))
    };
    assert!(is_there("two-layer", "Straight-through"));
    assert!(is_there("linear", "DisARM"));
    let about: Vec<&str> = page.findings.iter().map(|found| found.about).collect();
    assert!(about.contains(&"second order") && about.contains(&"debiased"));
    // Runs of counts cannot be compared with them.
    assert!(recorded_page("2026-11-16-table2-counts").glance.is_none());
}

/// Plots that would show the same or nothing to compare are not drawn.
#[test]
fn one_method_has_one_plot() {
    let names = |run| {
        let figures = recorded_page(run).figures.into_iter();
        figures.map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names("2026-11-16-table2-pwgf"), ["linear-steps.svg"]);
    assert_eq!(
        names("2026-11-16-table2-debiased"),
        ["linear-steps.svg", "linear-variance.svg"]
    );
    assert_eq!(names("2026-11-16-table2-unbiased").len(), 3);
}

/// The table of recommendations in `docs/choosing.md` is that of the recorded laboratory.
#[test]
fn documented_recommendations_are_those_of_the_record() {
    use straightflow_experiments::lab::{Recommendation, Summary, recommendations};
    use straightflow_report::page;
    let text = std::fs::read_to_string(results().join("../docs/choosing.md")).expect("a page");
    let (_, after) = text
        .split_once("<!-- recommendations in results/2026-11-16-lab -->")
        .expect("a table");
    let table = after.trim_start().lines().skip(2);
    let shown: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    let record = std::fs::read(results().join("2026-11-16-lab/summary.json")).expect("a record");
    let summary: Summary = serde_json::from_slice(&record).expect("a summary");
    let found = recommendations(&summary.rows, &summary.budgets);
    let cells = |one: &Recommendation| {
        let error = page::Value::from(one.best.error).show(page::Format::Significant(3));
        format!("`{}` | {}", one.best.spec, error.expect("a number"))
    };
    // With and without bias stand side by side.
    let lines: Vec<String> = found
        .chunks(2)
        .map(|pair| {
            let [any, unbiased] = pair else {
                panic!("a need without an answer")
            };
            let place = format!("{} | {} | {}", any.family, any.variables, any.budget);
            format!("| {place} | {} | {} |", cells(any), cells(unbiased))
        })
        .collect();
    assert_eq!(shown, lines);
}
