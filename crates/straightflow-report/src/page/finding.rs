//! What a report opens with: sentences, and one table over all runs.

use super::Label;

/// A sentence with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is about. Of several findings about one thing the one with the most weight is shown.
    pub about: &'static str,
    /// Where it stands among the others: smaller numbers come first.
    pub place: usize,
    /// How much it rests on, for example epochs times seeds.
    pub weight: f64,
    /// The sentence.
    pub text: String,
}

/// A run's part of a table over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance {
    /// What the table shows.
    pub caption: String,
    /// What to look at.
    pub look: String,
    /// The numbers, in the order of the rows.
    pub cells: Vec<GlanceCell>,
}

/// A number with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct GlanceCell {
    /// The row.
    pub row: Label,
    /// The group of columns.
    pub column: String,
    /// Our number, if there is one.
    pub value: Option<f64>,
    /// How long the run was; 0 without one. Of several runs of one cell the longest is shown.
    pub epochs: u64,
    /// The runs behind it. Of equally long ones the one with the most is shown.
    pub seeds: usize,
    /// The paper's number.
    pub paper: Option<f64>,
}
