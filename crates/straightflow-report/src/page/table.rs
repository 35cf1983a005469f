//! Tables: columns applied to rows.

use super::column::{Column, Format, Value};
use super::number;

/// A column as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Heading {
    /// The name in JSON.
    pub key: String,
    /// The heading.
    pub text: String,
    /// A common heading of neighbours; empty for none.
    pub group: String,
    /// The unit; empty for none.
    pub unit: &'static str,
    /// What the heading means; empty if that is clear.
    pub about: String,
    /// How its numbers are shown.
    pub format: Format,
    /// Whether its numbers have a sign in any case.
    pub signed: bool,
}

impl Heading {
    /// Whether the column has numbers, which stand on the right.
    pub fn is_numeric(&self) -> bool {
        self.format != Format::Plain
    }

    /// The text of a cell; a dash if there is no such value.
    pub fn cell(&self, value: &Value) -> String {
        let shown = match value {
            Value::Number(x) if self.signed && x.is_finite() => {
                Some(number::signed(*x, self.format))
            }
            value => value.show(self.format),
        };
        shown.unwrap_or_else(|| "–".to_owned())
    }
}

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// A name.
    pub name: String,
    /// How it is specified, for what has a specification.
    pub spec: Option<String>,
}

impl Label {
    /// A name with a specification.
    pub fn new(name: impl Into<String>, spec: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            spec: Some(spec.into()),
        }
    }

    /// The specification, if it says more than the name.
    pub fn more(&self) -> Option<&str> {
        let spec = self.spec.as_deref();
        spec.filter(|spec| !spec.eq_ignore_ascii_case(&self.name))
    }
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            spec: None,
        }
    }
}

/// A row as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is about.
    pub label: Label,
    /// A value for each heading.
    pub values: Vec<Value>,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What its rows have in common.
    pub caption: Option<String>,
    /// The columns.
    pub headings: Vec<Heading>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether it is too long for a terminal.
    pub is_detail: bool,
    /// What to look at, in a sentence.
    pub look: Option<String>,
    /// What several folded tables have in common.
    pub chapter: Option<String>,
}

impl Table {
    /// Applies columns to rows. Where columns of a group have numbers of the paper, those and the
    /// differences follow the group, if there is one at least.
    pub fn new<R>(columns: &[Column<R>], rows: &[R], label: impl Fn(&R) -> Label) -> Self {
        let mut table = Self {
            caption: None,
            headings: Vec::new(),
            rows: rows
                .iter()
                .map(|row| Row {
                    label: label(row),
                    values: Vec::new(),
                })
                .collect(),
            is_detail: false,
            look: None,
            chapter: None,
        };
        for group in columns.chunk_by(|a, b| a.group == b.group) {
            for column in group {
                table.push(heading(column), rows, &column.value);
            }
            table.push_paper(group, rows);
        }
        table
    }

    /// One table for each caption, in the order in which they come up.
    pub fn split<R: Clone>(
        columns: &[Column<R>],
        rows: &[R],
        caption: impl Fn(&R) -> String,
        label: impl Fn(&R) -> Label + Copy,
    ) -> Vec<Self> {
        let mut parts: Vec<(String, Vec<R>)> = Vec::new();
        for row in rows {
            let caption = caption(row);
            match parts.iter_mut().find(|(known, _)| *known == caption) {
                Some((_, rows)) => rows.push(row.clone()),
                None => parts.push((caption, vec![row.clone()])),
            }
        }
        let table = |(caption, rows): (String, Vec<R>)| {
            Self::new(columns, &rows, label).with_caption(caption)
        };
        parts.into_iter().map(table).collect()
    }

    /// With a caption.
    #[must_use]
    pub fn with_caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = Some(caption.into());
        self
    }

    /// For pages and JSON only.
    #[must_use]
    pub fn detail(mut self) -> Self {
        self.is_detail = true;
        self
    }

    /// With what to look at.
    #[must_use]
    pub fn look(mut self, look: impl Into<String>) -> Self {
        self.look = Some(look.into());
        self
    }

    /// Together with the other tables of a chapter.
    #[must_use]
    pub fn chapter(mut self, chapter: impl Into<String>) -> Self {
        self.chapter = Some(chapter.into());
        self
    }

    fn push<R>(&mut self, heading: Heading, rows: &[R], value: impl Fn(&R) -> Value) {
        self.headings.push(heading);
        for (shown, row) in self.rows.iter_mut().zip(rows) {
            shown.values.push(value(row));
        }
    }

    fn push_paper<R>(&mut self, group: &[Column<R>], rows: &[R]) {
        let printed = group.iter().filter_map(|column| {
            let (table, number) = column.paper.as_ref()?;
            let occurs = rows.iter().any(|row| number(row).is_some());
            occurs.then_some((column, *table, number))
        });
        for (column, table, number) in printed.clone() {
            let own = heading(column);
            let paper = Heading {
                key: format!("{}_paper", own.key),
                // A line must not begin with the number of the table.
                group: format!("paper, {}", table.replace(' ', "\u{a0}")),
                about: String::new(),
                ..own
            };
            self.push(paper, rows, |row| number(row).into());
        }
        for (column, _, number) in printed {
            let compared = |row: &R| {
                column
                    .compared
                    .as_ref()
                    .is_none_or(|compared| compared(row))
            };
            let both = |row: &R| compared(row) && number(row).is_some();
            if !rows.iter().any(both) {
                continue;
            }
            let own = heading(column);
            let difference = Heading {
                key: format!("{}_difference", own.key),
                text: format!("of {}", own.text),
                group: "difference".to_owned(),
                about: String::new(),
                signed: true,
                ..own
            };
            self.push(difference, rows, |row| match (column.value)(row) {
                Value::Number(ours) if compared(row) => {
                    number(row).map(|paper| ours - paper).into()
                }
                _ => Value::Missing,
            });
        }
    }
}

fn heading<R>(column: &Column<R>) -> Heading {
    Heading {
        key: column.key.clone(),
        text: column.heading.clone(),
        group: column.group.clone(),
        unit: column.unit,
        about: column.about.clone(),
        format: column.format,
        signed: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Measured {
        mean: f64,
        steps: Option<usize>,
        paper: Option<f64>,
    }

    fn columns() -> [Column<Measured>; 2] {
        [
            Column::new("mean", "mean", Format::Decimals(2), |row: &Measured| {
                row.mean
            })
            .group("ours")
            .paper("Table 1", |row| row.paper),
            Column::new(
                "steps",
                "steps",
                Format::Significant(4),
                |row: &Measured| row.steps,
            ),
        ]
    }

    fn rows(paper: Option<f64>) -> [Measured; 2] {
        let row = |mean, steps, paper| Measured { mean, steps, paper };
        [row(5.0, Some(18), paper), row(-0.25, None, None)]
    }

    fn cells(table: &Table, row: usize) -> Vec<String> {
        let values = table.headings.iter().zip(&table.rows[row].values);
        values.map(|(heading, value)| heading.cell(value)).collect()
    }

    #[test]
    fn numbers_of_the_paper_follow_their_group_with_the_differences() {
        let table = Table::new(&columns(), &rows(Some(5.1)), |_| "a".into());
        let keys: Vec<&str> = table.headings.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["mean", "mean_paper", "mean_difference", "steps"]);
        assert_eq!(cells(&table, 0), ["5.00", "5.10", "−0.10", "18"]);
        assert_eq!(cells(&table, 1), ["−0.25", "–", "–", "–"]);
        assert_eq!(table.headings[1].group, "paper, Table\u{a0}1");
        let without = Table::new(&columns(), &rows(None), |_| "a".into());
        assert_eq!(without.headings.len(), 2);
    }

    #[test]
    fn what_is_not_comparable_has_no_difference() {
        let long = |row: &Measured| row.steps.is_some();
        let [mean, steps] = columns();
        let table = Table::new(&[mean.compared_if(long), steps], &rows(Some(5.1)), |_| {
            "a".into()
        });
        assert_eq!(cells(&table, 0), ["5.00", "5.10", "−0.10", "18"]);
        let [mean, _] = columns();
        let table = Table::new(&[mean.compared_if(|_| false)], &rows(Some(5.1)), |_| {
            "a".into()
        });
        assert_eq!(cells(&table, 0), ["5.00", "5.10"]);
    }

    #[test]
    fn rows_are_split_by_their_captions() {
        let caption = |row: &u64| if row.is_multiple_of(2) { "even" } else { "odd" }.to_owned();
        let column = [Column::new("n", "n", Format::Plain, |row: &u64| *row)];
        let tables = Table::split(&column, &[2, 3, 4], caption, |_| "n".into());
        let found: Vec<(Option<&str>, usize)> = tables
            .iter()
            .map(|table| (table.caption.as_deref(), table.rows.len()))
            .collect();
        assert_eq!(found, [(Some("even"), 2), (Some("odd"), 1)]);
    }

    #[test]
    fn a_specification_that_is_the_name_says_no_more() {
        assert_eq!(Label::new("ARM", "arm").more(), None);
        let spec = "arm:samples=2";
        assert_eq!(Label::new("ARM", spec).more(), Some(spec));
    }
}
