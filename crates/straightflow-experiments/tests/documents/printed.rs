//! Blocks and tables of what a command printed.

use straightflow_experiments::EXPERIMENTS;
use straightflow_report::html;

use crate::{cells, is_decimal, is_shown, read, root};

/// What the terminal shows of a record.
fn text(record: &str) -> String {
    let show = |id: &str, summary: &serde_json::Value| {
        let entry = EXPERIMENTS.iter().find(|entry| entry.id == id)?;
        Some(entry.show(summary))
    };
    let text = html::text(&[root().join(record)], &show);
    text.unwrap_or_else(|error| panic!("{record}: {error}"))
}

/// The block that begins at the first line has the lines that are printed, in their order; some may be
/// left out.
pub fn compare_text(page: &str, record: &str, lines: &[&str]) -> usize {
    assert_eq!(
        lines[0], "```text",
        "{page}: a block after `text of {record}`"
    );
    let printed = text(record);
    let mut printed = printed.lines();
    let mut numbers = 0;
    for line in lines[1..].iter().take_while(|line| **line != "```") {
        let found = line.is_empty() || printed.any(|one| one == *line);
        assert!(found, "{page}: not as printed of {record}:\n{line}");
        let words = line.split_whitespace();
        numbers += words.filter(|word| word.parse::<f64>().is_ok()).count();
    }
    numbers
}

/// Every number of the table or block that begins at the first line is a word of one of the files, which may
/// have more digits of it.
pub fn compare_words(page: &str, files: &str, lines: &[&str]) -> usize {
    let printed: Vec<f64> = files
        .split_whitespace()
        .flat_map(|file| numbers_of(&read(file)))
        .collect();
    let is_block = lines[0].trim() == "```text";
    let body = lines[usize::from(is_block)..].iter();
    let body = body.take_while(|line| match is_block {
        true => line.trim() != "```",
        false => line.trim_start().starts_with('|'),
    });
    let mut numbers = 0;
    for cell in body.flat_map(|line| cells(line)) {
        for word in cell.split_whitespace().filter(|word| is_decimal(word)) {
            let found = printed.iter().any(|printed| is_shown(word, *printed));
            assert!(found, "{page}: {word} is not in {files}");
            numbers += 1;
        }
    }
    numbers
}

fn numbers_of(text: &str) -> Vec<f64> {
    text.split(|c: char| c.is_whitespace() || ",;:%()[]{}|\"`".contains(c))
        .filter_map(|word| word.parse().ok())
        .collect()
}
