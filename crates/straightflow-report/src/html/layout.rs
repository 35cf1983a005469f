//! The page itself: what the template gets.

use askama::Template;
use serde_json::Value as Json;

use super::GENERATOR;
use super::figure::Figure;
use super::image::Image;
use super::load::Recorded;
use super::short_name;
use crate::page::{Format, Heading, Label, Table, Value};
use crate::plot;

#[derive(Template)]
#[template(path = "report.html")]
struct Report<'a> {
    generator: String,
    plot_style: String,
    sections: Vec<Section<'a>>,
}

/// A run on the page.
struct Section<'a> {
    /// Where links go.
    anchor: String,
    title: &'a str,
    about: &'a str,
    lead: &'a str,
    /// The name of the directory.
    name: String,
    command: Option<&'a str>,
    config: &'a str,
    tables: Vec<Grid<'a>>,
    /// Whether there are so many tables that they are folded.
    folded: bool,
    explanations: Vec<Explanation<'a>>,
    remarks: &'a [String],
    facts: &'a [(String, String)],
    timing: Vec<(String, String)>,
    figures: &'a [Figure],
    images: &'a [Image],
}

/// A table on the page.
struct Grid<'a> {
    caption: Option<&'a str>,
    /// Empty if no column has one.
    groups: Vec<Group<'a>>,
    headings: &'a [Heading],
    rows: Vec<Line<'a>>,
}

/// A heading over several columns.
struct Group<'a> {
    heading: &'a str,
    columns: usize,
}

/// A row on the page.
struct Line<'a> {
    label: &'a Label,
    cells: Vec<String>,
}

/// A heading of a table and what it means.
#[derive(PartialEq)]
struct Explanation<'a> {
    heading: String,
    about: &'a str,
}

pub fn render(runs: &[Recorded]) -> String {
    let section = |(index, run)| Section::new(index, run);
    let report = Report {
        generator: format!("{GENERATOR} {}", env!("CARGO_PKG_VERSION")),
        plot_style: plot::style(),
        sections: runs.iter().enumerate().map(section).collect(),
    };
    report.render().expect("strings can be written to")
}

impl<'a> Section<'a> {
    fn new(index: usize, run: &'a Recorded) -> Self {
        let page = &run.page;
        Self {
            anchor: format!("run-{}", index + 1),
            title: &page.title,
            about: &page.about,
            lead: &page.lead,
            name: short_name(&run.directory),
            command: run.command(),
            config: &run.config_text,
            folded: page.tables.len() > 3,
            tables: page.tables.iter().map(Grid::new).collect(),
            explanations: explanations(&page.tables),
            remarks: &page.remarks,
            facts: &page.facts,
            timing: run
                .timing
                .iter()
                .filter(|(key, _)| *key != "command")
                .filter_map(|(key, value)| note(key, value))
                .collect(),
            figures: &run.figures,
            images: &run.images,
        }
    }
}

impl<'a> Grid<'a> {
    fn new(table: &'a Table) -> Self {
        let grouped = table.headings.iter().any(|one| !one.group.is_empty());
        let groups = table.headings.chunk_by(|a, b| a.group == b.group);
        let groups = groups.map(|chunk| Group {
            heading: &chunk[0].group,
            columns: chunk.len(),
        });
        let rows = table.rows.iter().map(|row| {
            let cells = table.headings.iter().zip(&row.values);
            Line {
                label: &row.label,
                cells: cells.map(|(heading, value)| heading.cell(value)).collect(),
            }
        });
        Self {
            caption: table.caption.as_deref(),
            groups: if grouped {
                groups.collect()
            } else {
                Vec::new()
            },
            headings: &table.headings,
            rows: rows.collect(),
        }
    }
}

/// What the headings mean, each once.
fn explanations(tables: &[Table]) -> Vec<Explanation<'_>> {
    let mut found: Vec<Explanation> = Vec::new();
    for heading in tables.iter().flat_map(|table| &table.headings) {
        let explanation = Explanation {
            heading: match heading.unit {
                "" => heading.text.clone(),
                unit => format!("{} ({unit})", heading.text),
            },
            about: &heading.about,
        };
        if !heading.about.is_empty() && !found.contains(&explanation) {
            found.push(explanation);
        }
    }
    found
}

/// A note about time and machine.
fn note(key: &str, value: &Json) -> Option<(String, String)> {
    let value = match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        Json::Number(number) if number.is_f64() => {
            Value::from(number.as_f64()).show(Format::Significant(4))
        }
        other => Some(other.to_string()),
    };
    value.map(|value| (key.replace('_', " "), value))
}
