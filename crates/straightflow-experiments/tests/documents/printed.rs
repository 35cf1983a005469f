//! Blocks and tables of what a command printed.

use straightflow_experiments::EXPERIMENTS;
use straightflow_report::html;

use crate::{cells, is_decimal, read, root};

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

/// Every number of the table that begins at the first line is a word of the file.
pub fn compare_words(page: &str, file: &str, lines: &[&str]) -> usize {
    let printed = read(file);
    let printed: Vec<f64> = printed
        .split(|c: char| c.is_whitespace() || ",;:%()".contains(c))
        .filter_map(|word| word.parse().ok())
        .collect();
    let mut numbers = 0;
    let table = lines
        .iter()
        .take_while(|line| line.trim_start().starts_with('|'));
    for cell in table.flat_map(|line| cells(line)) {
        for word in cell.split_whitespace().filter(|word| is_decimal(word)) {
            let number: f64 = word.parse().expect("a number");
            assert!(printed.contains(&number), "{page}: {word} is not in {file}");
            numbers += 1;
        }
    }
    numbers
}
