//! How far the flow goes before it is projected.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::as_text;

/// The step `eps` of `z - eps f'(z)`; as text `limit`, `relative(0.05)` or `fixed(1)`.
///
/// ```
/// use straightflow::estimator::PwgfStep;
///
/// assert_eq!("relative(0.05)".parse(), Ok(PwgfStep::Relative(0.05)));
/// assert_eq!(PwgfStep::Fixed(1.0).to_string(), "fixed(1)");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PwgfStep {
    /// Infinitely small.
    #[default]
    Limit,
    /// In units of the bandwidth, for a gradient of root mean square 1.
    Relative(f64),
    /// A number.
    Fixed(f64),
}

impl PwgfStep {
    pub(super) fn check(self) -> Result<(), String> {
        match self {
            Self::Relative(size) | Self::Fixed(size) if !(size.is_finite() && size > 0.0) => Err(
                format!("the step must be positive and finite, got `{self}`"),
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for PwgfStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str("limit"),
            Self::Relative(delta) => write!(f, "relative({delta})"),
            Self::Fixed(eps) => write!(f, "fixed({eps})"),
        }
    }
}

impl FromStr for PwgfStep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unreadable = || {
            format!("cannot read `{text}` as a step: write `limit`, `relative(0.05)` or `fixed(1)`")
        };
        if text == "limit" {
            return Ok(Self::Limit);
        }
        let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let (kind, size) = inner.ok_or_else(unreadable)?;
        let size = size.trim().parse().map_err(|_| unreadable())?;
        let step = match kind {
            "relative" => Self::Relative(size),
            "fixed" => Self::Fixed(size),
            _ => return Err(unreadable()),
        };
        step.check().map(|()| step)
    }
}

as_text!(PwgfStep);
