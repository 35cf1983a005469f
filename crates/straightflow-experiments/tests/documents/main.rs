//! The numbers of the documentation against the records that they cite.
//!
//! A comment before a table or a block says where its numbers come from:
//!
//! * `<!-- rows of ARCH in results/ONE results/TWO -->`: a table whose first column has the specification
//!   of an estimator in back quotes, and whose other columns are numbers of the rows of these tables;
//! * `<!-- text of results/ONE -->`: a block as `straightflow report results/ONE --text` prints it;
//! * `<!-- printed in results/FILE results/FILE -->`: every number is a word of one of the files, rounded;
//! * `<!-- seconds of ARCH in results/ONE by results/FILE -->`: a table of the seconds until the test negative
//!   ELBO is at most that of the column, from the curves and the times of a step that `bench` printed;
//! * `<!-- evaluations of ARCH in results/ONE -->`: the same in thousands of evaluations of the cost per image;
//! * `<!-- recommendations in results/ONE -->`: see `tests/list.rs`;
//! * `<!-- numbers below -->`: the numbers are listed in a comment after the table, as those of running text;
//! * `<!-- paper -->`, `<!-- settings -->`: numbers that we did not measure.
//!
//! After running text, a comment names the places of its numbers, one in a line:
//!
//! ```text
//! <!-- numbers in results/2026-11-16-table2-400
//! 110.30 = /rows/{estimator=arm}/test_nelbo
//! 4.3 = /rows/{estimator=disarm}/curve/{epoch=100}/test_nelbo - /rows/{estimator=debiased-st}/curve/{epoch=100}/test_nelbo
//! -->
//! ```

mod numbers;
mod printed;
mod rows;

use std::path::PathBuf;

/// The pages with numbers, and how many of them are compared at least.
const PAGES: [(&str, usize); 12] = [
    ("README.md", 10),
    ("docs/choosing.md", 20),
    ("docs/compare.md", 50),
    ("docs/debiased-straight-through.md", 150),
    ("docs/experiments/bernoulli-vae.md", 200),
    ("docs/experiments/lab.md", 500),
    ("docs/experiments/poisson.md", 150),
    ("docs/experiments/toy.md", 150),
    ("docs/findings.md", 30),
    ("docs/performance.md", 180),
    ("docs/quantisers.md", 13),
    ("docs/scaling.md", 7),
];

/// What stands before numbers that are compared elsewhere or are not ours.
const OTHERS: [&str; 4] = ["recommendations in ", "numbers below", "paper", "settings"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether a number as it is shown is the one that was recorded: within half a unit of the last digit, and
/// what is lost in decimal fractions.
fn is_shown(shown: &str, recorded: f64) -> bool {
    let plain = shown.replace('\u{2212}', "-").replace(',', "");
    let Ok(number) = plain.parse::<f64>() else {
        return false;
    };
    let digits = plain.split_once('.').map_or(0, |(_, digits)| digits.len());
    let within = 0.5 * 10f64.powi(-(digits as i32)) + 1e-9;
    (number - recorded).abs() <= within
}

fn assert_shown(shown: &str, recorded: f64, place: &str) {
    assert!(
        is_shown(shown, recorded),
        "{place}: the page says {shown}, the record {recorded}"
    );
}

/// The cells of a line of a table.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim().trim_matches('|');
    line.split('|').map(str::trim).collect()
}

fn is_decimal(word: &str) -> bool {
    let word = word.trim_matches(|c: char| "*`%~".contains(c) || c.is_whitespace());
    word.contains('.') && word.parse::<f64>().is_ok()
}

/// What a page says in a line: a comment of one line, without its brackets.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim().strip_prefix("<!-- ")?;
    line.strip_suffix(" -->")
}

/// Compares everything that a page marks; returns how many numbers that are.
fn compare(page: &str) -> usize {
    let text = read(page);
    let lines: Vec<&str> = text.lines().collect();
    let mut compared = numbers::compare(page, &text);
    for (index, line) in lines.iter().enumerate() {
        let Some(source) = comment(line) else {
            continue;
        };
        let next = index
            + 1
            + lines[index + 1..]
                .iter()
                .take_while(|l| l.is_empty())
                .count();
        let block = &lines[next..];
        if let Some((arch, records)) = source
            .strip_prefix("rows of ")
            .and_then(|cited| cited.split_once(" in "))
        {
            compared += rows::compare(page, records, arch, block);
        } else if let Some((arch, records)) = source
            .strip_prefix("evaluations of ")
            .and_then(|cited| cited.split_once(" in "))
        {
            compared += rows::compare_evaluations(page, records, arch, block);
        } else if let Some((arch, (record, times))) = source
            .strip_prefix("seconds of ")
            .and_then(|cited| cited.split_once(" in "))
            .and_then(|(arch, rest)| Some((arch, rest.split_once(" by ")?)))
        {
            compared += rows::compare_seconds(page, record, arch, times, block);
        } else if let Some(record) = source.strip_prefix("text of ") {
            compared += printed::compare_text(page, record, block);
        } else if let Some(file) = source.strip_prefix("printed in ") {
            compared += printed::compare_words(page, file, block);
        }
    }
    compared
}

#[test]
fn pages_say_what_the_records_say() {
    for (page, least) in PAGES {
        let compared = compare(page);
        assert!(
            compared >= least,
            "{page}: only {compared} numbers are compared"
        );
    }
}

/// No table and no block of output without a word about where its numbers come from.
#[test]
fn tables_with_numbers_cite_their_source() {
    for (page, _) in PAGES {
        let text = read(page);
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let table = line.trim_start().starts_with('|');
            let starts = (table && !lines[index - 1].trim_start().starts_with('|'))
                || line.trim() == "```text";
            if !starts {
                continue;
            }
            let body = lines[index + 1..]
                .iter()
                .take_while(|line| match table {
                    true => line.trim_start().starts_with('|'),
                    false => line.trim() != "```",
                })
                .flat_map(|line| match table {
                    true => cells(line),
                    false => line.split_whitespace().collect(),
                });
            if body.filter(|word| is_decimal(word)).count() < 2 {
                continue;
            }
            let above = lines[..index].iter().rev().find(|line| !line.is_empty());
            let source = above.and_then(|line| comment(line)).unwrap_or_default();
            let compared = [
                "rows of ",
                "seconds of ",
                "evaluations of ",
                "text of ",
                "printed in ",
            ];
            let known = compared.iter().chain(&OTHERS);
            assert!(
                known.clone().any(|start| source.starts_with(start)),
                "{page}, line {}: where do these numbers come from?",
                index + 1
            );
        }
    }
}
