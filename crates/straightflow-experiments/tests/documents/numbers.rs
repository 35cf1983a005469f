//! Numbers in running text.

use serde_json::Value;

use crate::{assert_shown, read};

/// Compares the numbers that the comments of a page name; returns how many.
pub fn compare(page: &str, text: &str) -> usize {
    let mut compared = 0;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!-- numbers in ") {
        let (list, behind) = after.split_once("-->").expect("the end of a comment");
        rest = behind;
        // What the comment is about: the text since the last heading.
        let about = before
            .rsplit_once("\n#")
            .map_or(before, |(_, section)| section);
        let mut lines = list.lines();
        let record = lines.next().expect("a record").trim();
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let (shown, expression) = line.split_once(" = ").expect("NUMBER = PLACE");
            let shown = shown.trim();
            let occurs = about
                .split(|c: char| c.is_whitespace() || "()*;:[]|%`".contains(c))
                .any(|word| word.trim_end_matches(['.', ',']) == shown);
            assert!(
                occurs,
                "{page}: {shown} is not in the text above its comment"
            );
            let recorded = evaluate(record, expression.trim());
            assert_shown(shown, recorded, &format!("{page}, {expression}"));
            compared += 1;
        }
    }
    compared
}

/// A number, the difference of two or their ratio.
fn evaluate(record: &str, expression: &str) -> f64 {
    if let Some((a, b)) = expression.split_once(" - ") {
        return evaluate(record, a) - evaluate(record, b);
    }
    if let Some((a, b)) = expression.split_once(" / ") {
        return evaluate(record, a) / evaluate(record, b);
    }
    // A place of another record has its name before it.
    let (record, place) = match expression.split_once(":/") {
        Some((other, place)) => (other, place),
        None => (record, expression.trim_start_matches('/')),
    };
    let file = match record.ends_with(".json") {
        true => record.to_owned(),
        false => format!("{record}/summary.json"),
    };
    let whole: Value = serde_json::from_str(&read(&file)).expect("JSON");
    let found = place.split('/').fold(&whole, |value, step| {
        let next = match step.strip_prefix('{') {
            Some(conditions) => select(value, conditions),
            None => value.get(step),
        };
        next.unwrap_or_else(|| panic!("{file}: nothing at `{step}` of `{place}`"))
    });
    let number = found.as_f64();
    number.unwrap_or_else(|| panic!("{file}: `{place}` is not a number"))
}

/// The only element of an array that meets conditions `key=value}{key=value}`.
fn select<'a>(value: &'a Value, conditions: &str) -> Option<&'a Value> {
    let conditions: Vec<(&str, &str)> = conditions
        .trim_end_matches('}')
        .split("}{")
        .map(|one| one.split_once('=').expect("KEY=VALUE"))
        .collect();
    let meets = |element: &&Value| {
        conditions.iter().all(|(key, wanted)| match &element[*key] {
            Value::String(text) => text == wanted,
            other => other.to_string() == *wanted,
        })
    };
    let mut found = value.as_array()?.iter().filter(meets);
    found.next().filter(|_| found.next().is_none())
}
