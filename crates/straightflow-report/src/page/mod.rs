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
mod json;
mod number;
mod table;
mod text;

pub use column::{Column, Format, Value};
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
}
