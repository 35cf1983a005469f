//! Files with one JSON value per line.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::RecordError;

/// The part that ends with a newline: what follows was being written when the process ended.
pub fn complete(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    &bytes[..end.map_or(0, |newline| newline + 1)]
}

/// The values of complete lines. `file` is for the message.
pub fn parse<T: DeserializeOwned>(file: &Path, complete: &[u8]) -> Result<Vec<T>, RecordError> {
    let lines = complete.split_inclusive(|byte| *byte == b'\n');
    let value = |(index, line)| {
        serde_json::from_slice(line).map_err(|error| RecordError::Corrupt {
            path: file.to_owned(),
            line: index + 1,
            reason: reason(&error),
        })
    };
    lines.enumerate().map(value).collect()
}

/// serde_json counts lines from the start of the text it was given, which is always one line here.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} at column {}", error.column()),
        None => text,
    }
}
