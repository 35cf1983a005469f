//! Rules that choose the bandwidth for a law.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{KernelError, check_bandwidth};
use crate::distribution::CountLaw;
use crate::text::as_text;

/// The bandwidth of a kernel: a number, or a number of standard deviations of the law.
///
/// Written as `1.5`, as `3sd` (at least 1, the distance of two integers) or as `3sd>0.5` with
/// another floor.
///
/// ```
/// use straightflow::distribution::CountLaw;
/// use straightflow::kernel::Bandwidth;
///
/// let rule: Bandwidth = "3sd".parse()?;
/// assert_eq!(rule.resolve(&CountLaw::Poisson { rate: 25.0 }), 15.0);
/// assert_eq!(rule.resolve(&CountLaw::Poisson { rate: 1e-4 }), 1.0);
/// assert_eq!(rule.to_string(), "3sd");
/// # Ok::<(), straightflow::kernel::KernelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Bandwidth {
    /// `h` itself.
    Fixed(f64),
    /// `h = max(floor, factor * sd)`.
    Deviations {
        /// The number of standard deviations.
        factor: f64,
        /// The smallest bandwidth. Below about 0.35 a Gaussian kernel no longer sees the
        /// neighbouring integer.
        floor: f64,
    },
}

impl Bandwidth {
    /// The floor of a rule written without one.
    pub const FLOOR: f64 = 1.0;

    /// A fixed bandwidth.
    ///
    /// # Errors
    ///
    /// [`KernelError::Bandwidth`] unless it is positive and finite.
    pub fn fixed(bandwidth: f64) -> Result<Self, KernelError> {
        check_bandwidth(bandwidth).map(Self::Fixed)
    }

    /// `factor` standard deviations, at least [`FLOOR`](Self::FLOOR).
    ///
    /// # Errors
    ///
    /// [`KernelError::Bandwidth`] unless the factor is positive and finite.
    pub fn deviations(factor: f64) -> Result<Self, KernelError> {
        let factor = check_bandwidth(factor)?;
        Ok(Self::Deviations {
            factor,
            floor: Self::FLOOR,
        })
    }

    /// The bandwidth for a law.
    pub fn resolve(&self, law: &CountLaw) -> f64 {
        match *self {
            Self::Fixed(bandwidth) => bandwidth,
            Self::Deviations { factor, floor } => (factor * law.variance().sqrt()).max(floor),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed(bandwidth) => write!(f, "{bandwidth}"),
            Self::Deviations { factor, floor } if floor == Self::FLOOR => write!(f, "{factor}sd"),
            Self::Deviations { factor, floor } => write!(f, "{factor}sd>{floor}"),
        }
    }
}

impl FromStr for Bandwidth {
    type Err = KernelError;

    fn from_str(text: &str) -> Result<Self, KernelError> {
        let number = |part: &str| {
            let parsed = part.trim().parse::<f64>();
            parsed.map_err(|_| KernelError::BandwidthText(text.to_owned()))
        };
        match text.trim().split_once("sd") {
            None => Self::fixed(number(text)?),
            Some((factor, rest)) => {
                let factor = check_bandwidth(number(factor)?)?;
                let floor = match rest.trim().strip_prefix('>') {
                    Some(floor) => check_bandwidth(number(floor)?)?,
                    None if rest.trim().is_empty() => Self::FLOOR,
                    None => return Err(KernelError::BandwidthText(text.to_owned())),
                };
                Ok(Self::Deviations { factor, floor })
            }
        }
    }
}

as_text!(Bandwidth);
