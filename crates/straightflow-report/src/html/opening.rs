//! What the page opens with: what was found, and one table over all runs.

use std::cmp::Reverse;

use super::load::Recorded;
use crate::page::{Column, Finding, Format, GlanceCell, Label, Table};

/// The findings of all runs, one for each thing that they are about.
pub fn findings(runs: &[Recorded]) -> Vec<&str> {
    let mut kept: Vec<&Finding> = Vec::new();
    for finding in runs.iter().flat_map(|run| &run.page.findings) {
        match kept.iter_mut().find(|known| known.about == finding.about) {
            Some(known) if known.weight < finding.weight => *known = finding,
            Some(_) => {}
            None => kept.push(finding),
        }
    }
    kept.sort_by_key(|finding| finding.place);
    kept.iter().map(|finding| finding.text.as_str()).collect()
}

/// A row of the table: one number for each group of columns.
struct Line<'a> {
    label: &'a Label,
    cells: Vec<Option<&'a GlanceCell>>,
}

/// The table over all runs; none if no run has a part of it.
pub fn glance(runs: &[Recorded]) -> Option<Table> {
    let glances = || runs.iter().filter_map(|run| run.page.glance.as_ref());
    let first = glances().next()?;
    let all: Vec<&GlanceCell> = glances().flat_map(|glance| &glance.cells).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for cell in &all {
        if !names.contains(&cell.column.as_str()) {
            names.push(&cell.column);
        }
        if lines.iter().all(|line| *line.label != cell.row) {
            let label = &cell.row;
            let cells = Vec::new();
            lines.push(Line { label, cells });
        }
    }
    for line in &mut lines {
        line.cells = names
            .iter()
            .map(|name| longest(&all, line.label, name))
            .collect();
    }
    // The rows of the paper first; the others by their first number.
    let paper = |line: &Line| line.cells.iter().flatten().any(|cell| cell.paper.is_some());
    lines.sort_by_key(|line| !paper(line));
    // Columns own what they show.
    let rows: Vec<(Label, Vec<Option<GlanceCell>>)> = lines
        .iter()
        .map(|line| {
            let cells = line.cells.iter().map(|cell| cell.cloned()).collect();
            (line.label.clone(), cells)
        })
        .collect();
    let columns: Vec<_> = names.iter().enumerate().flat_map(columns).collect();
    let table = Table::new(&columns, &rows, |row| row.0.clone());
    Some(table.with_caption(&first.caption).look(&first.look))
}

/// The number of a cell that rests on the most; of equals the first.
fn longest<'a>(all: &[&'a GlanceCell], row: &Label, column: &str) -> Option<&'a GlanceCell> {
    let cells = all
        .iter()
        .filter(|cell| cell.row == *row && cell.column == column);
    cells
        .copied()
        .min_by_key(|cell| Reverse((cell.epochs, cell.seeds)))
}

type Row = (Label, Vec<Option<GlanceCell>>);

fn columns((index, name): (usize, &&str)) -> [Column<Row>; 3] {
    fn of<T>(row: &Row, index: usize, value: impl Fn(&GlanceCell) -> T) -> Option<T> {
        row.1[index].as_ref().map(value)
    }
    let key = |of: &str| format!("{name}.{of}");
    let decimals = Format::Decimals(1);
    let ours = Column::new(key("ours"), "ours", decimals, move |row: &Row| {
        of(row, index, |cell| cell.value).flatten()
    });
    let length = |cell: &GlanceCell| match (cell.value, cell.seeds) {
        (None, _) => None,
        (Some(_), 1) => Some(cell.epochs.to_string()),
        (Some(_), seeds) => Some(format!("{}\u{a0}×\u{a0}{seeds}", cell.epochs)),
    };
    let epochs = Column::new(key("epochs"), "epochs", Format::Plain, move |row: &Row| {
        of(row, index, length).flatten()
    });
    let paper = Column::new(key("paper"), "paper", decimals, move |row: &Row| {
        of(row, index, |cell| cell.paper).flatten()
    });
    [ours, epochs, paper].map(|column| column.group(*name))
}
