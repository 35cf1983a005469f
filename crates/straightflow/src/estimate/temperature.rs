//! How soft a relaxation is: a constant, or a schedule that falls to a floor.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::facts::OptionValue;
use crate::text::as_text;

/// The temperature of a relaxation; as text `0.5`, or `1>0.1@1e-5` for a schedule that starts at 1,
/// falls by the factor `exp(-1e-5)` with every step, and stays at 0.1 from there on.
///
/// Estimators are values that do not change, so a schedule is a recipe for the estimator of each
/// step: one that was built with a schedule works at its start, and
/// [`Described::at_step`](super::Described::at_step) makes that of a later step, which costs next
/// to nothing.
///
/// ```
/// use straightflow::prelude::*;
///
/// let scheduled = estimator("gumbel-softmax:temperature=1>0.1@0.01")?;
/// for step in 0..3 {
///     let estimator = scheduled.at_step(step)?;
///     # let _ = estimator;
/// }
/// assert_eq!(scheduled.at_step(300)?.spec().to_string(), "gumbel-softmax:temperature=0.1");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Temperature {
    /// The same at every step.
    Constant(f64),
    /// `max(floor, start exp(-rate step))`.
    Exponential {
        /// The temperature of step 0.
        start: f64,
        /// The lowest temperature.
        floor: f64,
        /// The relative decrease of a step.
        rate: f64,
    },
}

impl Temperature {
    /// Lower ones are zero in single precision.
    const LOWEST: f64 = f32::MIN_POSITIVE as f64;

    /// The constant temperature of a step.
    pub fn at(self, step: u64) -> Self {
        match self {
            Self::Constant(_) => self,
            Self::Exponential { start, floor, rate } => {
                Self::Constant((start * (-rate * step as f64).exp()).max(floor))
            }
        }
    }

    /// The temperature of step 0.
    pub fn start(self) -> f64 {
        match self {
            Self::Constant(start) | Self::Exponential { start, .. } => start,
        }
    }

    /// The lowest temperature that is reached.
    pub fn floor(self) -> f64 {
        match self {
            Self::Constant(floor) | Self::Exponential { floor, .. } => floor,
        }
    }
}

impl OptionValue for Temperature {
    fn extremes(&self) -> (f64, f64) {
        (self.floor(), self.start())
    }

    fn check(&self) -> Result<(), String> {
        let positive = |x: f64| x.is_finite() && x >= Self::LOWEST;
        let valid = match *self {
            Self::Constant(start) => positive(start),
            Self::Exponential { start, floor, rate } => {
                positive(start)
                    && positive(floor)
                    && floor <= start
                    && rate.is_finite()
                    && rate >= 0.0
            }
        };
        if valid {
            return Ok(());
        }
        Err(format!(
            "the temperature must be positive and finite, and its schedule not rise, got `{self}`"
        ))
    }
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::Exponential { start, floor, rate } => write!(f, "{start}>{floor}@{rate:e}"),
        }
    }
}

impl FromStr for Temperature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim().parse::<f64>().map_err(|_| {
                format!("cannot read `{text}` in a temperature: write `0.5` or `1>0.1@1e-5`")
            })
        };
        let temperature = match text.split_once('>') {
            None => Self::Constant(number(text)?),
            Some((start, rest)) => {
                let (floor, rate) = rest.split_once('@').unwrap_or((rest, ""));
                Self::Exponential {
                    start: number(start)?,
                    floor: number(floor)?,
                    rate: number(rate)?,
                }
            }
        };
        temperature.check().map(|()| temperature)
    }
}

as_text!(Temperature);
