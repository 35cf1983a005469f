//! The page of an experiment that nothing is known about: every field that is text or a number.

use serde_json::Value as Json;

use super::load::Object;
use crate::page::{Column, Format, Label, Page, Table, Value};

pub fn page(experiment: &str, summary: &Object, rows: &[Object]) -> Page {
    let mut page = Page::new(experiment, "").table(table(rows));
    for (key, value) in summary {
        page = match value {
            // A sentence is read, not looked up.
            Json::String(text) if text.ends_with('.') => page.remarks([text.as_str()]),
            Json::Array(values) if values.iter().all(Json::is_string) => {
                page.remarks(values.iter().filter_map(Json::as_str))
            }
            Json::Array(values) if key != "rows" && values.iter().all(Json::is_object) => {
                let rows = values.iter().filter_map(Json::as_object).cloned();
                page.table(table(&rows.collect::<Vec<_>>()).with_caption(words(key)))
            }
            _ if key == "experiment" => page,
            value => page.fact(&words(key), plain(value)),
        };
    }
    page
}

fn table(rows: &[Object]) -> Table {
    let text = |row: &Object, key: &str| row.get(key).and_then(Json::as_str).map(str::to_owned);
    let label = |row: &Object| {
        let name = text(row, "label").or_else(|| text(row, "id"));
        let name = name.or_else(|| text(row, "family")).unwrap_or_default();
        let spec = text(row, "spec").or_else(|| text(row, "estimator"));
        Label { name, spec }
    };
    Table::new(&columns(rows), rows, label)
}

fn columns(rows: &[Object]) -> Vec<Column<Object>> {
    let mut keys: Vec<&String> = rows.iter().flat_map(Object::keys).collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| !["id", "label", "spec", "estimator"].contains(&key.as_str()));
    let column = |key: &String| {
        let mut values = rows.iter().filter_map(|row| row.get(key));
        // Curves and the like are for plots.
        if values
            .clone()
            .any(|value| value.is_array() || value.is_object())
        {
            return None;
        }
        let format = match values.any(Json::is_number) {
            true => Format::Significant(4),
            false => Format::Plain,
        };
        let own = key.clone();
        let value = move |row: &Object| row.get(&own).map(plain);
        Some(Column::new(key, words(key), format, value))
    };
    keys.into_iter().filter_map(column).collect()
}

fn plain(value: &Json) -> Value {
    match value {
        Json::Null | Json::Object(_) | Json::Array(_) => Value::Missing,
        Json::Bool(yes) => Value::from(*yes),
        Json::Number(number) => match number.as_u64() {
            Some(count) => Value::Count(count),
            None => number.as_f64().into(),
        },
        Json::String(text) => Value::Text(text.clone()),
    }
}

fn words(key: &str) -> String {
    key.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_show_their_plain_fields() {
        let rows = json!([
            {"label": "a", "loss": 0.5, "curve": [1, 2]},
            {"label": "b", "loss": null, "name": "x"},
        ]);
        let rows: Vec<Object> = serde_json::from_value(rows).expect("objects");
        let headings = table(&rows).headings;
        let headings: Vec<&str> = headings.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(headings, ["loss", "name"]);
    }
}
