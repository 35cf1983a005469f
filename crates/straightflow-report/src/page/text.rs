//! Pages as a person reads them in a terminal.

use super::Page;
use super::table::{Heading, Row, Table};

/// The longest line of running text.
const WIDTH: usize = 105;

impl Page {
    /// What the terminal shows: the lead, the tables that are short enough, what their headings mean, and
    /// the remarks.
    pub fn text(&self) -> String {
        let mut blocks = vec![wrapped(&self.lead)];
        let shown = || self.tables.iter().filter(|table| !table.is_detail);
        blocks.extend(shown().map(Table::text));
        let mut legend: Vec<String> = Vec::new();
        for heading in shown().flat_map(|table| &table.headings) {
            let line = explanation(heading);
            if !line.is_empty() && !legend.contains(&line) {
                legend.push(line);
            }
        }
        blocks.push(legend.concat());
        blocks.extend(self.remarks.iter().map(|remark| wrapped(remark)));
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n")
    }
}

fn explanation(heading: &Heading) -> String {
    let unit = match heading.unit {
        "" => String::new(),
        unit => format!(" ({unit})"),
    };
    match heading.about.as_str() {
        "" => String::new(),
        about => wrapped(&format!("{}{unit}: {about}.", heading.text)),
    }
}

/// Lines of at most [`WIDTH`] characters; those after the first are indented if there is more than one.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let width = word.chars().count();
        if length > 0 && length + 1 + width > WIDTH {
            lines.push_str("\n  ");
            length = 2;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += width;
    }
    if !lines.is_empty() {
        lines.push('\n');
    }
    lines
}

impl Table {
    /// The table in columns of equal width, numbers on the right.
    pub fn text(&self) -> String {
        let names = self.names();
        let first = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let column = |index: usize| {
            let heading = &self.headings[index];
            let cells = self.rows.iter().map(|row| heading.cell(&row.values[index]));
            let cells: Vec<String> = cells.collect();
            let widest = cells.iter().map(|cell| width(cell)).max().unwrap_or(0);
            (widest.max(width(&heading.text)), cells)
        };
        let mut columns: Vec<(usize, Vec<String>)> = (0..self.headings.len()).map(column).collect();
        let groups = self.groups(&mut columns);
        let mut text = match &self.caption {
            Some(caption) => format!("{caption}\n"),
            None => String::new(),
        };
        text += &wrapped(self.look.as_deref().unwrap_or_default());
        let mut line = |name: &str, cells: Vec<String>| {
            text += &format!("{name:first$}{}", cells.concat());
            text.truncate(text.trim_end().len());
            text.push('\n');
        };
        if let Some(groups) = groups {
            line("", groups);
        }
        let padded = |index: usize, cell: &str| {
            let (width, heading) = (columns[index].0, &self.headings[index]);
            match heading.is_numeric() {
                true => format!("  {cell:>width$}"),
                false => format!("  {cell:width$}"),
            }
        };
        let headings = self.headings.iter().enumerate();
        line("", headings.map(|(i, one)| padded(i, &one.text)).collect());
        for (row, name) in names.iter().enumerate() {
            let cells = (0..columns.len()).map(|i| padded(i, &columns[i].1[row]));
            line(name, cells.collect());
        }
        text
    }

    /// The names of the rows; where two are the same, the specifications.
    fn names(&self) -> Vec<String> {
        let name = |row: &Row| row.label.name.clone();
        let mut names: Vec<String> = self.rows.iter().map(name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|two| two[0] == two[1]) {
            let spec = |row: &Row| row.label.spec.clone().unwrap_or_else(|| name(row));
            names = self.rows.iter().map(spec).collect();
        }
        names
    }

    /// The common headings, over columns that are made wide enough for them; none if there are none.
    fn groups(&self, columns: &mut [(usize, Vec<String>)]) -> Option<Vec<String>> {
        if self.headings.iter().all(|heading| heading.group.is_empty()) {
            return None;
        }
        let mut start = 0;
        let groups = self.headings.chunk_by(|a, b| a.group == b.group);
        let line = groups.map(|group| {
            let columns = &mut columns[start..start + group.len()];
            start += group.len();
            let (name, gaps) = (&group[0].group, 2 * columns.len());
            let total: usize = columns.iter().map(|(width, _)| width).sum::<usize>() + gaps;
            let missing = (width(name) + 2).saturating_sub(total);
            columns[0].0 += missing;
            let total = total + missing;
            format!("{name:>total$}")
        });
        Some(line.collect())
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::super::{Column, Format, Label};
    use super::*;

    #[test]
    fn a_table_is_aligned_and_grouped() {
        let columns = [
            Column::new("a", "mean", Format::Decimals(1), |x: &f64| *x).group("ours"),
            Column::new("b", "far", Format::Plain, |x: &f64| *x > 1.0).group("a longer heading"),
        ];
        let table = Table::new(&columns, &[1.0, 22.5], |x| {
            if *x > 1.0 {
                "long name".into()
            } else {
                "x".into()
            }
        });
        let expected = "             ours  a longer heading\n           mean  far\n\
                        x           1.0  no\nlong name  22.5  yes\n";
        let text = table.text();
        assert_eq!(text.lines().count(), expected.lines().count(), "{text}");
        assert!(text.ends_with("long name  22.5  yes\n"), "{text}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }

    #[test]
    fn rows_of_one_name_are_told_apart_by_their_specifications() {
        let column = [Column::new("n", "n", Format::Plain, |x: &&str| *x)];
        let table = Table::new(&column, &["r", "r:b=1"], |spec| Label::new("R", *spec));
        assert_eq!(table.names(), ["r", "r:b=1"]);
    }

    #[test]
    fn long_remarks_are_wrapped_and_details_left_out() {
        let column = [Column::new("n", "n", Format::Plain, |x: &u64| *x).about("a number")];
        let detail = Table::new(&column, &[1], |_| "hidden".into()).detail();
        let page = Page::new("t", "a")
            .table(detail)
            .remarks(["word ".repeat(40)]);
        let text = page.text();
        assert!(
            !text.contains("hidden") && !text.contains("a number"),
            "{text}"
        );
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.len() <= WIDTH));
    }
}
