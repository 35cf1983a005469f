//! The tables of the documentation against the records that they cite.
//!
//! A table that has a line `<!-- rows of ARCH in results/ONE results/TWO -->` before it is compared,
//! number by number, with the rows of those records. Its first column has the specification of an
//! estimator in back quotes.

use std::path::PathBuf;

use straightflow_experiments::table2::{TableRow, TableSummary};

const PAGES: [&str; 3] = [
    "docs/choosing.md",
    "docs/debiased-straight-through.md",
    "docs/experiments/bernoulli-vae.md",
];

fn read(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

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
        "f a step" => Some(row.evaluations),
        "df a step" => Some(row.gradients),
        "seeds" => Some(row.seeds as f64),
        "paper" => row.paper,
        _ => panic!("no such number in a record: `{column}`"),
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim()
        .trim_matches('|')
        .split('|')
        .map(str::trim)
        .collect()
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

/// Compares the table that begins at the first line; returns how many numbers it has.
fn compare(records: &str, arch: &str, lines: &[&str]) -> usize {
    let rows = rows(records);
    let columns = cells(lines[0]);
    let mut numbers = 0;
    for line in lines[2..].iter().take_while(|line| line.starts_with('|')) {
        let cells = cells(line);
        let spec = cells[0]
            .split('`')
            .nth(1)
            .expect("a specification in back quotes");
        let mut known = rows.iter();
        let found = known.find(|row| row.arch == arch && row.estimator == spec);
        let row = found.unwrap_or_else(|| panic!("{records}: no row {arch} {spec}"));
        for (column, text) in columns.iter().zip(&cells).skip(1) {
            if text.is_empty() {
                continue;
            }
            let shown: f64 = text.parse().unwrap_or_else(|_| panic!("{spec}: `{text}`"));
            let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
            let recorded = value(column, row).expect("a number that was recorded");
            // Half a unit of the last digit, and what is lost in decimal fractions.
            let within = 0.5 * 10f64.powi(-(digits as i32)) + 1e-9;
            assert!(
                (shown - recorded).abs() <= within,
                "{records}, {arch} {spec}, {column}: the page says {shown}, the record {recorded}"
            );
            numbers += 1;
        }
    }
    numbers
}

#[test]
fn tables_say_what_the_records_say() {
    for page in PAGES {
        let text = read(page);
        let lines: Vec<&str> = text.lines().collect();
        let mut numbers = 0;
        for (index, line) in lines.iter().enumerate() {
            let cited = line.strip_prefix("<!-- rows of ");
            let cited = cited.and_then(|cited| cited.strip_suffix(" -->"));
            let Some((arch, records)) = cited.and_then(|cited| cited.split_once(" in ")) else {
                continue;
            };
            let table = index
                + 1
                + lines[index + 1..]
                    .iter()
                    .take_while(|l| l.is_empty())
                    .count();
            numbers += compare(records, arch, &lines[table..]);
        }
        assert!(numbers > 20, "{page} cites only {numbers} numbers");
    }
}
