//! Tables as JSON: the columns with all that explains them, and the values in full precision.

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use super::column::Value;
use super::table::{Heading, Row, Table};

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Missing => serializer.serialize_none(),
        }
    }
}

impl Serialize for Heading {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.key)?;
        map.serialize_entry("heading", &self.text)?;
        for (name, text) in [
            ("group", self.group.as_str()),
            ("unit", self.unit),
            ("about", &self.about),
        ] {
            if !text.is_empty() {
                map.serialize_entry(name, text)?;
            }
        }
        map.end()
    }
}

/// A row as an object: its label, and the values by the keys of their columns.
struct Keyed<'a>(&'a [Heading], &'a Row);

impl Serialize for Keyed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(headings, row) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("label", &row.label.name)?;
        if let Some(spec) = &row.label.spec {
            map.serialize_entry("spec", spec)?;
        }
        for (heading, value) in headings.iter().zip(&row.values) {
            map.serialize_entry(&heading.key, value)?;
        }
        map.end()
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rows = self.rows.iter().map(|row| Keyed(&self.headings, row));
        let mut table = serializer.serialize_struct("Table", 3)?;
        table.serialize_field("caption", &self.caption)?;
        table.serialize_field("columns", &self.headings)?;
        table.serialize_field("rows", &rows.collect::<Vec<_>>())?;
        table.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Column, Format};
    use super::*;

    #[test]
    fn a_table_explains_itself_and_keeps_every_digit() {
        let columns = [
            Column::new("rate", "mean", Format::Decimals(1), |x: &f64| *x)
                .unit("nats")
                .about("over seeds"),
            Column::new("best", "best", Format::Plain, |x: &f64| {
                (*x > 1.0).then_some("yes")
            }),
        ];
        let table = Table::new(&columns, &[0.1 + 0.2], |_| "a".into());
        let expected = json!({
            "caption": null,
            "columns": [
                {"key": "rate", "heading": "mean", "unit": "nats", "about": "over seeds"},
                {"key": "best", "heading": "best"},
            ],
            "rows": [{"label": "a", "rate": 0.1 + 0.2, "best": null}],
        });
        assert_eq!(serde_json::to_value(&table).expect("JSON"), expected);
    }
}
