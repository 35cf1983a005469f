//! What is said about a run: tables of typed columns, facts, remarks. The terminal, the report and the JSON
//! of a summary all take them from here.
//!
//! ```
//! use straightflow_report::page::{Column, Format, Page, Table};
//!
//! struct Row { name: &'static str, rate: f64, paper: Option<f64> }
//! let rows = [Row { name: "pWGF", rate: 4.9931, paper: Some(5.0076) }];
//! let columns = [
//!     Column::new("rate", "mean", Format::Decimals(2), |row: &Row| row.rate)
//!         .about("over all seeds")
//!         .paper("Table 1", |row| row.paper),
//! ];
//! let table = Table::new(&columns, &rows, |row| row.name.into());
//! let page = Page::new("A game", "Two players.").table(table);
//! assert!(page.text().contains("4.99"));
//! ```

mod column;
mod finding;
mod json;
mod number;
mod table;
mod text;

pub use column::{Column, Format, Value};
pub use finding::{Finding, Glance, GlanceCell};
pub use table::{Heading, Label, Row, Table};

/// Everything that is said about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What the experiment is called.
    pub title: String,
    /// What was done, for someone who has never heard of it.
    pub about: String,
    /// What sets this run apart from others of the experiment, in a sentence or two.
    pub lead: String,
    /// The tables, in the order in which they are read.
    pub tables: Vec<Table>,
    /// Single values, each with its name.
    pub facts: Vec<(String, String)>,
    /// How to read the tables, and what they show.
    pub remarks: Vec<String>,
    /// Its place in the argument of a report: smaller numbers come first.
    pub place: usize,
    /// What was found, for the opening of a report.
    pub findings: Vec<Finding>,
    /// Its part of the table that a report opens with.
    pub glance: Option<Glance>,
    /// Plots as SVG with the names of their files. They replace the run's files whose names begin with the
    /// same word, such as `linear-steps.svg` and `linear-variance.svg`.
    pub figures: Vec<(String, String)>,
}

impl Page {
    /// A page without tables.
    pub fn new(title: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            about: about.into(),
            ..Self::default()
        }
    }

    /// With a sentence or two about this run.
    #[must_use]
    pub fn lead(mut self, lead: impl Into<String>) -> Self {
        self.lead = lead.into();
        self
    }

    /// With one more table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.tables([table])
    }

    /// With more tables.
    #[must_use]
    pub fn tables(mut self, tables: impl IntoIterator<Item = Table>) -> Self {
        self.tables.extend(tables);
        self
    }

    /// With one more value; one that is missing is left out.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        if let Some(value) = value.into().show(Format::Significant(4)) {
            self.facts.push((name.to_owned(), value));
        }
        self
    }

    /// With more remarks.
    #[must_use]
    pub fn remarks<T: Into<String>>(mut self, remarks: impl IntoIterator<Item = T>) -> Self {
        self.remarks.extend(remarks.into_iter().map(T::into));
        self
    }

    /// At a place in the argument of a report.
    #[must_use]
    pub fn at(mut self, place: usize) -> Self {
        self.place = place;
        self
    }

    /// With what was found.
    #[must_use]
    pub fn findings(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// With a part of the table that a report opens with.
    #[must_use]
    pub fn glance(mut self, glance: Glance) -> Self {
        self.glance = Some(glance);
        self
    }

    /// With plots that are drawn from the summary.
    #[must_use]
    pub fn figures(mut self, figures: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let text = |(name, svg): (String, Vec<u8>)| Some((name, String::from_utf8(svg).ok()?));
        self.figures.extend(figures.into_iter().filter_map(text));
        self
    }
}
