//! The page itself: what the template gets.

use askama::Template;
use serde_json::Value;

use super::GENERATOR;
use super::experiment::Experiment;
use super::figure::Figure;
use super::image::Image;
use super::load::{Object, Recorded};
use super::number;
use super::short_name;
use super::table::{Column, Format, Table, columns_of};
use crate::plot;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    generator: String,
    plot_style: String,
    sections: Vec<Section<'a>>,
}

/// A run on the page.
struct Section<'a> {
    /// Where links go.
    anchor: String,
    title: String,
    about: &'static str,
    /// The name of the directory.
    name: String,
    command: Option<&'a str>,
    config: &'a str,
    tables: Vec<Table>,
    /// Whether there are so many tables that they are folded.
    folded: bool,
    explanations: Vec<Explanation>,
    remarks: Vec<String>,
    facts: Vec<Fact>,
    timing: Vec<Fact>,
    figures: &'a [Figure],
    images: &'a [Image],
}

/// A heading of a table and what it means.
struct Explanation {
    heading: String,
    about: &'static str,
}

/// A single value.
struct Fact {
    name: String,
    value: String,
}

pub fn render(runs: &[Recorded]) -> String {
    let section = |(index, run)| Section::new(index, run);
    let page = Page {
        generator: format!("{GENERATOR} {}", env!("CARGO_PKG_VERSION")),
        plot_style: plot::style(),
        sections: runs.iter().enumerate().map(section).collect(),
    };
    page.render().expect("strings can be written to")
}

impl<'a> Section<'a> {
    fn new(index: usize, run: &'a Recorded) -> Self {
        let experiment = Experiment::of(run.experiment(), &run.rows);
        let lists = experiment.lists.iter().filter_map(|(key, columns)| {
            let rows: Vec<Object> = objects(run.summary.get(*key)?)?;
            Some(Table::new(Some(words(key)), columns, &rows))
        });
        let mut tables: Vec<Table> = lists.chain(tables(&experiment, &run.rows)).collect();
        let mut remarks = Vec::new();
        let mut facts = Vec::new();
        for (key, value) in &run.summary {
            match value {
                _ if experiment.lists.iter().any(|(list, _)| list == key) => {}
                _ if experiment.shown_elsewhere.contains(&key.as_str()) => {}
                // A sentence is read, not looked up.
                Value::String(text) if text.ends_with('.') => remarks.push(text.clone()),
                Value::Array(values) if values.iter().all(Value::is_string) => {
                    remarks.extend(values.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                Value::Array(values) if values.iter().all(Value::is_object) => {
                    let rows = objects(value).unwrap_or_default();
                    let caption = Some(words(key));
                    tables.push(Table::new(caption, &columns_of(&rows), &rows));
                }
                _ if key == "experiment" => {}
                _ => facts.extend(fact(key, value)),
            }
        }
        remarks.extend(experiment.remarks);
        Self {
            anchor: format!("run-{}", index + 1),
            title: experiment.title,
            about: experiment.about,
            name: short_name(&run.directory),
            command: run.command(),
            config: &run.config_text,
            folded: tables.len() > 3,
            tables,
            explanations: experiment
                .columns
                .iter()
                .filter(|column| column.occurs(&run.rows))
                .filter_map(explanation)
                .collect(),
            remarks,
            facts,
            timing: run
                .timing
                .iter()
                .filter(|(key, _)| *key != "command")
                .filter_map(|(key, value)| fact(key, value))
                .collect(),
            figures: &run.figures,
            images: &run.images,
        }
    }
}

/// The objects of an array, if it has nothing else.
fn objects(value: &Value) -> Option<Vec<Object>> {
    let values = value.as_array()?.iter();
    values.map(|value| value.as_object().cloned()).collect()
}

fn explanation(column: &Column) -> Option<Explanation> {
    (!column.about.is_empty()).then(|| Explanation {
        heading: match column.group.as_str() {
            "difference" => format!("difference {}", column.heading),
            _ => column.heading.clone(),
        },
        about: column.about,
    })
}

/// One table, or one for each combination of the fields that the experiment is split by.
fn tables(experiment: &Experiment, rows: &[Object]) -> Vec<Table> {
    if experiment.split_by.is_empty() {
        return vec![Table::new(None, &experiment.columns, rows)];
    }
    let caption = |row: &Object| {
        let parts = experiment
            .split_by
            .iter()
            .filter_map(|key| row.get(*key).and_then(Value::as_str));
        parts.collect::<Vec<_>>().join(", ")
    };
    let mut parts: Vec<(String, Vec<Object>)> = Vec::new();
    for row in rows {
        let caption = caption(row);
        match parts.iter_mut().find(|(known, _)| *known == caption) {
            Some((_, rows)) => rows.push(row.clone()),
            None => parts.push((caption, vec![row.clone()])),
        }
    }
    parts
        .into_iter()
        .map(|(caption, rows)| Table::new(Some(caption), &experiment.columns, &rows))
        .collect()
}

fn fact(key: &str, value: &Value) -> Option<Fact> {
    let value = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let values: Option<Vec<Fact>> = values.iter().map(|value| fact("", value)).collect();
            let values: Vec<String> = values?.into_iter().map(|fact| fact.value).collect();
            values.join(", ")
        }
        Value::Number(value) if value.is_f64() => {
            number::show(value.as_f64()?, Format::Significant(4))
        }
        other => other.to_string(),
    };
    Some(Fact {
        name: words(key),
        value,
    })
}

fn words(key: &str) -> String {
    key.replace('_', " ")
}
