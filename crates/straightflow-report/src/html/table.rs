//! Rows of JSON objects as tables.

use serde_json::Value;

use super::load::Object;
use super::number;

/// How a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As it is.
    Text,
    /// A fixed number of decimals, for numbers of one size.
    Decimals(usize),
    /// A fixed number of significant digits, for numbers of any size.
    Significant(usize),
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// The field of this name. Fields of objects and elements of arrays stand after a dot:
    /// `runs.0.right`.
    Field(String),
    /// The first field less the second.
    Difference(&'static str, &'static str),
}

/// The value of a field, see [`Source::Field`].
fn field<'a>(row: &'a Object, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = row.get(parts.next()?)?;
    parts.try_fold(first, |value, part| match value {
        Value::Object(fields) => fields.get(part),
        Value::Array(values) => values.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A column: what it shows and how.
#[derive(Debug, Clone)]
pub struct Column {
    pub source: Source,
    pub heading: String,
    /// Neighbouring columns of one group stand below a common heading.
    pub group: String,
    pub format: Format,
    /// Explains the heading below the table.
    pub about: &'static str,
}

impl Column {
    pub fn new(field: &str, heading: &str, format: Format) -> Self {
        Self::of(Source::Field(field.to_owned()), heading, format)
    }

    pub fn of(source: Source, heading: &str, format: Format) -> Self {
        Self {
            source,
            heading: heading.to_owned(),
            group: String::new(),
            format,
            about: "",
        }
    }

    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }

    pub fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// Whether some row has what the column needs, be it `null`.
    pub fn occurs(&self, rows: &[Object]) -> bool {
        let has = |path: &str| rows.iter().any(|row| field(row, path).is_some());
        match &self.source {
            Source::Field(path) => has(path),
            Source::Difference(a, b) => has(a) && has(b),
        }
    }

    fn cell(&self, row: &Object) -> String {
        let value = match &self.source {
            Source::Field(path) => field(row, path).and_then(|value| self.show(value)),
            Source::Difference(a, b) => number_of(row, a)
                .zip(number_of(row, b))
                .map(|(a, b)| number::signed(a - b, self.format)),
        };
        value.unwrap_or_else(|| "–".to_owned())
    }

    fn show(&self, value: &Value) -> Option<String> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            Value::Bool(value) => Some(if *value { "yes" } else { "no" }.to_owned()),
            Value::Number(value)
                if value.is_u64() && !matches!(self.format, Format::Decimals(_)) =>
            {
                Some(value.to_string())
            }
            Value::Number(value) => value.as_f64().map(|value| number::show(value, self.format)),
            // Curves and the like are for plots.
            Value::Array(_) | Value::Object(_) => None,
        }
    }
}

fn number_of(row: &Object, key: &str) -> Option<f64> {
    row.get(key).and_then(Value::as_f64)
}

/// A heading over several columns.
pub struct Group {
    pub heading: String,
    pub columns: usize,
}

/// A column as the page shows it.
pub struct Heading {
    pub text: String,
    pub numeric: bool,
}

/// A row as the page shows it.
pub struct Row {
    /// What the row is about.
    pub label: String,
    /// How it is specified, if that says more than the label.
    pub spec: Option<String>,
    pub cells: Vec<String>,
}

/// A table as the page shows it.
pub struct Table {
    pub caption: Option<String>,
    /// Empty if no column has one.
    pub groups: Vec<Group>,
    pub headings: Vec<Heading>,
    pub rows: Vec<Row>,
}

impl Table {
    /// The columns that occur in the rows; the label comes first.
    pub fn new(caption: Option<String>, columns: &[Column], rows: &[Object]) -> Self {
        let columns: Vec<&Column> = columns
            .iter()
            .filter(|column| column.occurs(rows))
            .collect();
        let grouped = columns.iter().any(|column| !column.group.is_empty());
        let groups = columns
            .chunk_by(|a, b| a.group == b.group)
            .map(|chunk| Group {
                heading: chunk[0].group.clone(),
                columns: chunk.len(),
            });
        let text =
            |row: &Object, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
        let row = |row: &Object| {
            let label = text(row, "label")
                .or_else(|| text(row, "id"))
                .or_else(|| text(row, "family"))
                .unwrap_or_default();
            let spec = text(row, "spec").or_else(|| text(row, "estimator"));
            Row {
                spec: spec.filter(|spec| !spec.eq_ignore_ascii_case(&label)),
                cells: columns.iter().map(|column| column.cell(row)).collect(),
                label,
            }
        };
        Self {
            caption,
            groups: if grouped {
                groups.collect()
            } else {
                Vec::new()
            },
            headings: columns
                .iter()
                .map(|column| Heading {
                    text: column.heading.clone(),
                    numeric: column.format != Format::Text,
                })
                .collect(),
            rows: rows.iter().map(row).collect(),
        }
    }
}

/// Columns for rows that nothing is known about: every field that is text or a number.
pub fn columns_of(rows: &[Object]) -> Vec<Column> {
    let mut keys: Vec<&String> = rows.iter().flat_map(Object::keys).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| !["id", "label", "spec", "estimator"].contains(&key.as_str()));
    keys.retain(|key| {
        let values = rows.iter().filter_map(|row| row.get(*key));
        values
            .clone()
            .all(|value| !value.is_array() && !value.is_object())
    });
    keys.into_iter()
        .map(|key| {
            let values = rows.iter().filter_map(|row| row.get(key));
            let numeric = values.clone().any(Value::is_number);
            let format = if numeric {
                Format::Significant(4)
            } else {
                Format::Text
            };
            Column::new(key, &key.replace('_', " "), format)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(value: Value) -> Vec<Object> {
        serde_json::from_value(value).expect("objects")
    }

    #[test]
    fn values_are_formatted_and_missing_ones_are_dashes() {
        let rows = rows(json!([
            {"label": "a", "mean": 5, "paper": 5.1, "runs": [{"right": 18}]},
            {"label": "b", "mean": -0.25, "paper": null},
        ]));
        let columns = [
            Column::new("mean", "mean", Format::Decimals(3)),
            Column::of(
                Source::Difference("mean", "paper"),
                "difference",
                Format::Decimals(2),
            ),
            Column::new("runs.0.right", "right", Format::Text),
            Column::new("gone", "gone", Format::Text),
        ];
        let table = Table::new(None, &columns, &rows);
        assert_eq!(table.headings.len(), 3);
        assert_eq!(table.rows[0].cells, ["5.000", "−0.10", "18"]);
        assert_eq!(table.rows[1].cells, ["−0.250", "–", "–"]);
    }

    #[test]
    fn groups_span_their_columns() {
        let rows = rows(json!([{"a": 1, "b": 2, "c": 3}]));
        let column = |key: &str| Column::new(key, key, Format::Text);
        let columns = [
            column("a").group("ours"),
            column("b").group("ours"),
            column("c"),
        ];
        let table = Table::new(None, &columns, &rows);
        let groups: Vec<_> = table
            .groups
            .iter()
            .map(|group| (group.heading.as_str(), group.columns))
            .collect();
        assert_eq!(groups, [("ours", 2), ("", 1)]);
        assert!(Table::new(None, &columns[2..], &rows).groups.is_empty());
    }

    #[test]
    fn unknown_rows_show_their_plain_fields() {
        let rows = rows(json!([
            {"label": "a", "loss": 0.5, "curve": [1, 2]},
            {"label": "b", "loss": null, "name": "x"},
        ]));
        let headings: Vec<String> = columns_of(&rows)
            .into_iter()
            .map(|column| column.heading)
            .collect();
        assert_eq!(headings, ["loss", "name"]);
    }
}
