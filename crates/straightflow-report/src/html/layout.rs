//! The page itself: what the template gets.

use askama::Template;
use serde_json::Value as Json;

use super::GENERATOR;
use super::figure::Figure;
use super::image::{self, Image};
use super::load::Recorded;
use super::{opening, short_name};
use crate::page::{Format, Heading, Label, Table, Value};
use crate::plot;

#[derive(Template)]
#[template(path = "report.html")]
struct Report<'a> {
    generator: String,
    plot_style: String,
    /// What was found, in sentences.
    findings: Vec<&'a str>,
    glance: Option<Grid<'a>>,
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
    command: Option<String>,
    config: &'a str,
    tables: Vec<Grid<'a>>,
    /// Whether there are so many tables that they are folded.
    folded: bool,
    /// Long tables, folded by chapters.
    chapters: Vec<Chapter<'a>>,
    explanations: Vec<Explanation<'a>>,
    /// The section that explains the other columns.
    explained: Option<String>,
    remarks: Vec<&'a str>,
    facts: &'a [(String, String)],
    timing: Vec<(String, String)>,
    figures: &'a [Figure],
    images: Vec<&'a Image>,
    /// Reconstructions of several methods, in one grid for each kind of model.
    grids: Vec<Vec<&'a Image>>,
}

/// Tables that are folded together.
struct Chapter<'a> {
    name: &'a str,
    tables: Vec<Grid<'a>>,
}

/// A table on the page.
struct Grid<'a> {
    caption: Option<&'a str>,
    look: Option<&'a str>,
    /// Whether it has more columns than fit in the usual size.
    wide: bool,
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
    /// The parts of the specification, between which a line may break.
    spec: Vec<&'a str>,
    cells: Vec<String>,
}

/// A heading of a table and what it means.
#[derive(Clone, PartialEq)]
struct Explanation<'a> {
    heading: String,
    about: &'a str,
}

/// Tables with more columns are set in smaller type.
const WIDE: usize = 8;

/// How many lines of a plot can be hidden.
const SWITCHES: usize = 16;

/// A box that is not checked hides the groups of its class, in the figure that it belongs to.
fn switches() -> String {
    let rule = |k| format!("figure:has(.legend .k{k}:not(:checked)) svg .k{k}{{display:none}}");
    (0..SWITCHES).map(rule).collect()
}

/// What several runs of an experiment have in common is said once, where it comes up first.
fn say_once<'a>(sections: &mut [Section<'a>]) {
    let mut said: Vec<&'a str> = Vec::new();
    let mut explained: Vec<(Explanation<'a>, String)> = Vec::new();
    for section in sections {
        if said.contains(&section.about) {
            section.about = "";
        }
        section.remarks.retain(|remark| !said.contains(remark));
        said.push(section.about);
        said.extend(&section.remarks);
        section.explanations.retain(|one| {
            let mut known = explained.iter();
            let first = known.find(|(known, _)| known == one);
            if let Some((_, anchor)) = first {
                section.explained = Some(anchor.clone());
            }
            first.is_none()
        });
        let new = section.explanations.iter().cloned();
        explained.extend(new.map(|one| (one, section.anchor.clone())));
    }
}

pub fn render(runs: &[Recorded]) -> String {
    let section = |(index, run)| Section::new(index, run);
    let mut sections: Vec<Section> = runs.iter().enumerate().map(section).collect();
    say_once(&mut sections);
    let glance = opening::glance(runs);
    let report = Report {
        generator: format!("{GENERATOR} {}", env!("CARGO_PKG_VERSION")),
        plot_style: plot::style() + &switches(),
        findings: opening::findings(runs),
        glance: glance.as_ref().map(Grid::new),
        sections,
    };
    report.render().expect("strings can be written to")
}

impl<'a> Section<'a> {
    fn new(index: usize, run: &'a Recorded) -> Self {
        let page = &run.page;
        let shown = || page.tables.iter().filter(|table| table.chapter.is_none());
        let (grids, images) = image::grids(&run.images);
        Self {
            anchor: format!("run-{}", index + 1),
            title: &page.title,
            about: &page.about,
            lead: &page.lead,
            name: short_name(&run.directory),
            command: run.repeat(),
            config: &run.config_text,
            folded: shown().count() > 3,
            tables: shown().map(Grid::new).collect(),
            chapters: chapters(&page.tables),
            explanations: explanations(&page.tables),
            explained: None,
            remarks: page.remarks.iter().map(String::as_str).collect(),
            facts: &page.facts,
            timing: run
                .timing
                .iter()
                // That a process did all of the work goes without saying.
                .filter(|(key, value)| *key != "share" || value.as_f64() != Some(1.0))
                .filter_map(|(key, value)| note(key, value))
                .collect(),
            figures: &run.figures,
            images,
            grids,
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
            let spec = row.label.more().unwrap_or_default();
            Line {
                label: &row.label,
                spec: spec.split_inclusive([':', ',', '=']).collect(),
                cells: cells.map(|(heading, value)| heading.cell(value)).collect(),
            }
        });
        Self {
            caption: table.caption.as_deref(),
            look: table.look.as_deref(),
            wide: table.headings.len() > WIDE,
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

/// The tables with chapters, together.
fn chapters(tables: &[Table]) -> Vec<Chapter<'_>> {
    let mut chapters: Vec<Chapter> = Vec::new();
    for table in tables {
        let Some(name) = table.chapter.as_deref() else {
            continue;
        };
        match chapters.iter_mut().find(|chapter| chapter.name == name) {
            Some(chapter) => chapter.tables.push(Grid::new(table)),
            None => chapters.push(Chapter {
                name,
                tables: vec![Grid::new(table)],
            }),
        }
    }
    chapters
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
