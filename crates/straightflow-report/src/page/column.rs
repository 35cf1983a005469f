//! Columns: what they show and how.

use std::fmt;

use super::number;

/// How a number is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The shortest form; for text as well.
    Plain,
    /// A fixed number of decimals, for numbers of one size.
    Decimals(usize),
    /// A fixed number of significant digits, for numbers of any size.
    Significant(usize),
}

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A measured number.
    Number(f64),
    /// A counted number.
    Count(u64),
    /// Words.
    Text(String),
    /// There is no such value.
    Missing,
}

impl Value {
    /// The value as it is read; none if it is missing.
    pub fn show(&self, format: Format) -> Option<String> {
        match self {
            Self::Number(number) if number.is_finite() => Some(number::show(*number, format)),
            Self::Count(count) => match format {
                Format::Decimals(_) => Some(number::show(*count as f64, format)),
                _ => Some(count.to_string()),
            },
            Self::Text(text) => Some(text.clone()),
            Self::Number(_) | Self::Missing => None,
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::from(if yes { "yes" } else { "no" })
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, T::into)
    }
}

type Get<R, V> = Box<dyn Fn(&R) -> V>;

/// A column over rows of the type `R`: a name, a value, and how it is shown.
pub struct Column<R> {
    pub(super) key: String,
    pub(super) heading: String,
    pub(super) group: String,
    pub(super) unit: &'static str,
    pub(super) about: String,
    pub(super) format: Format,
    pub(super) value: Get<R, Value>,
    pub(super) paper: Option<(&'static str, Get<R, Option<f64>>)>,
    pub(super) compared: Option<Get<R, bool>>,
}

impl<R> fmt::Debug for Column<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column")
            .field("key", &self.key)
            .field("heading", &self.heading)
            .finish_non_exhaustive()
    }
}

impl<R> Column<R> {
    /// A column with its name in JSON, its heading, and what it shows of a row.
    pub fn new<V: Into<Value>>(
        key: impl Into<String>,
        heading: impl Into<String>,
        format: Format,
        value: impl Fn(&R) -> V + 'static,
    ) -> Self {
        Self {
            key: key.into(),
            heading: heading.into(),
            group: String::new(),
            unit: "",
            about: String::new(),
            format,
            value: Box::new(move |row| value(row).into()),
            paper: None,
            compared: None,
        }
    }

    /// Below a heading that neighbours of the same group share.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = group.into();
        self
    }

    /// In a unit.
    #[must_use]
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// With an explanation below the table.
    #[must_use]
    pub fn about(mut self, about: impl Into<String>) -> Self {
        self.about = about.into();
        self
    }

    /// Beside the number that the paper prints in one of its tables, and the difference to it.
    #[must_use]
    pub fn paper(
        mut self,
        table: &'static str,
        number: impl Fn(&R) -> Option<f64> + 'static,
    ) -> Self {
        self.paper = Some((table, Box::new(number)));
        self
    }

    /// With a difference to the paper's number only in rows for which this holds.
    #[must_use]
    pub fn compared_if(mut self, compared: impl Fn(&R) -> bool + 'static) -> Self {
        self.compared = Some(Box::new(compared));
        self
    }
}
