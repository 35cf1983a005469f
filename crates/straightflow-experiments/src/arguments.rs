//! Words and numbers on the command line.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

/// Words and what they mean.
pub type Words = [(&'static str, &'static str)];

/// A parser of the words that a type has in records.
pub fn word<T>(words: &'static Words) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = words
        .iter()
        .map(|(word, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).try_map(|word| {
        let word: StringDeserializer<serde::de::value::Error> = word.into_deserializer();
        T::deserialize(word)
    })
}

/// A whole number that is not negative.
///
/// # Errors
///
/// What is wrong with the text.
pub fn count<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, &'static str> {
    text.parse()
        .map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large",
            _ => "expected a non-negative whole number",
        })
}

/// A whole number that has to be positive; what is made of it refuses 0.
///
/// # Errors
///
/// What is wrong with the text.
pub fn positive<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, &'static str> {
    text.parse()
        .map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large",
            _ => "expected a whole number of at least 1",
        })
}

/// A whole number from 1 on, where nothing that is made of it says so.
///
/// # Errors
///
/// What is wrong with the text.
pub fn at_least_one<T>(text: &str) -> Result<T, &'static str>
where
    T: FromStr<Err = ParseIntError> + Default + PartialEq,
{
    let number = positive(text)?;
    match number == T::default() {
        true => Err("expected a whole number of at least 1"),
        false => Ok(number),
    }
}

/// A number.
///
/// # Errors
///
/// If the text is none.
pub fn number(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| "expected a number")
}

/// What was given, or else what was there.
pub(crate) fn given<T: Clone>(given: &[T], before: Vec<T>) -> Vec<T> {
    match given.is_empty() {
        true => before,
        false => given.to_vec(),
    }
}

/// Every word of the command line is one of the records.
#[cfg(test)]
pub(crate) fn assert_known<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: &'static Words,
) {
    let argument = clap::Arg::new("x").value_parser(word::<T>(words));
    let command = clap::Command::new("x").arg(argument);
    for (word, _) in words {
        let parsed = command.clone().try_get_matches_from(["x", word]);
        assert!(parsed.is_ok(), "{word}: {parsed:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_no_counts_are_told_so() {
        assert_eq!(count::<u64>("12"), Ok(12));
        for (text, hint) in [
            ("-1", "non-negative"),
            ("1.5", "whole number"),
            ("18446744073709551616", "too large"),
        ] {
            let message = count::<u64>(text).expect_err("no count");
            assert!(message.contains(hint), "{text}: {message}");
        }
    }
}
