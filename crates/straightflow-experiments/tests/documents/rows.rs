//! Tables of rows of a table of autoencoders.

use straightflow_experiments::table2::{TableRow, TableSummary};
use straightflow_experiments::vae::Epoch;

use crate::{assert_shown, cells, read};

/// What a column of a table is called and what it shows; `N epochs` and `variance after N` are read
/// off the curve.
fn value(column: &str, row: &TableRow) -> Option<f64> {
    let at = |epoch: &str| {
        let epoch: usize = epoch.trim().parse().expect("a number of epochs");
        row.curve.get(epoch - 1).expect("an epoch of the curve")
    };
    if let Some(epoch) = column.strip_suffix("epochs") {
        return Some(at(epoch).test_nelbo);
    }
    if let Some(epoch) = column.strip_prefix("variance after") {
        return at(epoch).gradient_variance;
    }
    match column {
        "train" => Some(row.train_nelbo),
        "validation" => Some(row.valid_nelbo),
        "test" => Some(row.test_nelbo),
        "sd" => row.test_nelbo_sd,
        "100 draws" => Some(row.test_bound_100),
        "variance" => row.gradient_variance,
        "f per step" => Some(row.evaluations),
        "df per step" => Some(row.gradients),
        "seeds" => Some(row.seeds as f64),
        "paper" => row.paper,
        _ => panic!("no such number in a record: `{column}`"),
    }
}

/// The rows of all records that a table cites.
fn rows(records: &str) -> Vec<TableRow> {
    let each = records.split_whitespace().flat_map(|record| {
        let summary = read(&format!("{record}/summary.json"));
        let summary: TableSummary = serde_json::from_str(&summary).expect("a summary of a table");
        summary.rows
    });
    each.collect()
}

/// The specification in the first cell, and the other cells.
fn split(line: &str) -> (&str, Vec<&str>) {
    let cells = cells(line);
    let spec = cells[0].split('`').nth(1);
    let spec = spec.expect("a specification in back quotes");
    (spec, cells[1..].to_vec())
}

fn find<'a>(rows: &'a [TableRow], arch: &str, spec: &str) -> &'a TableRow {
    let mut known = rows.iter();
    let found = known.find(|row| row.arch == arch && row.estimator == spec);
    found.unwrap_or_else(|| panic!("no row {arch} {spec}"))
}

/// Compares the table that begins at the first line; returns how many numbers it has.
pub fn compare(page: &str, records: &str, arch: &str, lines: &[&str]) -> usize {
    let rows = rows(records);
    let columns = cells(lines[0]);
    let mut numbers = 0;
    for line in lines[2..].iter().take_while(|line| line.starts_with('|')) {
        let (spec, cells) = split(line);
        let row = find(&rows, arch, spec);
        let shown = columns[1..].iter().zip(&cells);
        for (column, text) in shown.filter(|(_, text)| !text.is_empty()) {
            let recorded = value(column, row).expect("a number that was recorded");
            let place = format!("{page}, {records}, {arch} {spec}, {column}");
            assert_shown(text, recorded, &place);
            numbers += 1;
        }
    }
    numbers
}

/// A table of what it takes until the test negative ELBO is at most that of the column: compares it with
/// what `taken` makes of the first epoch that gets there.
fn compare_reached(
    place: &str,
    records: &str,
    arch: &str,
    lines: &[&str],
    taken: impl Fn(&TableRow, &Epoch) -> f64,
) -> usize {
    let rows = rows(records);
    let bounds = cells(lines[0]);
    let mut numbers = 0;
    for line in lines[2..].iter().take_while(|line| line.starts_with('|')) {
        let (spec, cells) = split(line);
        let row = find(&rows, arch, spec);
        for (bound, text) in bounds[1..].iter().zip(cells) {
            let bound: f64 = bound.parse().expect("a bound");
            let mut curve = row.curve.iter();
            let place = format!("{place}, {records}, {arch} {spec}, {bound}");
            match curve.find(|epoch| epoch.test_nelbo <= bound) {
                Some(epoch) => {
                    assert_shown(text, taken(row, epoch), &place);
                    numbers += 1;
                }
                None => assert_eq!(text, "", "{place}: not reached"),
            }
        }
    }
    numbers
}

/// Evaluations of the cost for each image of a batch, in thousands.
pub fn compare_evaluations(page: &str, records: &str, arch: &str, lines: &[&str]) -> usize {
    compare_reached(page, records, arch, lines, |_, epoch| {
        epoch.evaluations as f64 / 1000.0
    })
}

/// Seconds of training, with the times of a step as `bench` printed them.
pub fn compare_seconds(
    page: &str,
    records: &str,
    arch: &str,
    times: &str,
    lines: &[&str],
) -> usize {
    let times = read(times);
    let least_ms = |spec: &str| {
        let words = times.lines().map(|line| line.split_whitespace());
        let mut words = words.map(Iterator::collect::<Vec<&str>>);
        let line = words.find(|words| words.len() >= 5 && words[0] == arch && words[1] == spec);
        let line = line.unwrap_or_else(|| panic!("no time of {arch} {spec}"));
        line[4].parse::<f64>().expect("a time")
    };
    compare_reached(page, records, arch, lines, |row, epoch| {
        epoch.step as f64 * least_ms(&row.estimator) / 1000.0
    })
}
