//! What the page says about each experiment: one description each, and a general one for the rest.
//!
//! A new field of a row needs one line here, a new experiment one function.

mod lab;
mod poisson;
mod table2;
mod toy;
mod vae;

use super::load::Object;
use super::table::{Column, columns_of};

/// How the runs of an experiment are shown.
pub struct Experiment {
    pub title: String,
    /// What was done.
    pub about: &'static str,
    pub columns: Vec<Column>,
    /// One table for each combination of these fields; empty for one table.
    pub split_by: &'static [&'static str],
    /// Further lists of the summary, each with its columns, shown before the rows.
    pub lists: Vec<(&'static str, Vec<Column>)>,
    /// Fields of the summary that are in the rows or in plots as well.
    pub shown_elsewhere: &'static [&'static str],
    /// How to read the table, found from its rows.
    pub remarks: Vec<String>,
}

impl Experiment {
    pub fn of(id: &str, rows: &[Object]) -> Self {
        match id {
            "poisson" => poisson::describe(rows),
            "toy" => toy::describe(rows),
            "lab" => lab::describe(rows),
            "vae" => vae::describe(rows),
            "table2" => table2::describe(rows),
            other => Self {
                title: other.to_owned(),
                about: "",
                columns: columns_of(rows),
                split_by: &[],
                lists: Vec::new(),
                shown_elsewhere: &[],
                remarks: Vec::new(),
            },
        }
    }
}
