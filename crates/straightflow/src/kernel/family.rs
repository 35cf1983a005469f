//! Kernels whose bandwidth is still open.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Energy, Kernel, KernelError, Laplace, Mixture, RationalQuadratic, Rbf};
use crate::text::as_text;

/// The kinds of kernels, each of which becomes a [`Kernel`] at a bandwidth.
///
/// Written as `rbf`, `laplace`, `energy`, `rational-quadratic:1` (with the exponent) or
/// `mixture:0.5+1+2` (with the factors of the bandwidth, equally weighted).
///
/// ```
/// use straightflow::kernel::KernelFamily;
///
/// let kernel = "mixture:0.5+2".parse::<KernelFamily>()?.at(3.0)?;
/// let direct = 0.5 * (-2.0_f64 / 9.0).exp() + 0.5 * (-0.125_f64 / 9.0).exp();
/// assert!((kernel.value(1.0) - direct).abs() < 1e-15);
/// # Ok::<(), straightflow::kernel::KernelError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KernelFamily {
    /// [`Rbf`].
    #[default]
    Rbf,
    /// [`Laplace`].
    Laplace,
    /// [`Energy`], which ignores the bandwidth.
    Energy,
    /// [`RationalQuadratic`].
    RationalQuadratic {
        /// The exponent `a`.
        exponent: f64,
    },
    /// [`Mixture`] of Gaussian kernels.
    Mixture {
        /// The bandwidth of each component in units of the bandwidth of the whole.
        factors: Vec<f64>,
    },
}

impl KernelFamily {
    /// The kernel of this kind with bandwidth `h`.
    ///
    /// # Errors
    ///
    /// The [`KernelError`] of the kernel's constructor.
    pub fn at(&self, bandwidth: f64) -> Result<Box<dyn Kernel>, KernelError> {
        Ok(match self {
            Self::Rbf => Box::new(Rbf::new(bandwidth)?),
            Self::Laplace => Box::new(Laplace::new(bandwidth)?),
            Self::Energy => Box::new(Energy),
            Self::RationalQuadratic { exponent } => {
                Box::new(RationalQuadratic::new(bandwidth, *exponent)?)
            }
            Self::Mixture { factors } => {
                let pairs: Vec<_> = factors.iter().map(|f| (1.0, f * bandwidth)).collect();
                Box::new(Mixture::new(&pairs)?)
            }
        })
    }
}

impl KernelFamily {
    /// Whether the kernels of this kind have a kink at 0.
    pub fn has_kink(&self) -> bool {
        matches!(self, Self::Laplace | Self::Energy)
    }
}

impl fmt::Display for KernelFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rbf => f.write_str("rbf"),
            Self::Laplace => f.write_str("laplace"),
            Self::Energy => f.write_str("energy"),
            Self::RationalQuadratic { exponent } => write!(f, "rational-quadratic:{exponent}"),
            Self::Mixture { factors } => {
                let factors: Vec<_> = factors.iter().map(f64::to_string).collect();
                write!(f, "mixture:{}", factors.join("+"))
            }
        }
    }
}

impl FromStr for KernelFamily {
    type Err = KernelError;

    fn from_str(text: &str) -> Result<Self, KernelError> {
        let unreadable = || KernelError::KernelText(text.to_owned());
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| unreadable());
        let family = match text.trim().split_once(':') {
            None => match text.trim() {
                "rbf" => Self::Rbf,
                "laplace" => Self::Laplace,
                "energy" => Self::Energy,
                "rational-quadratic" => Self::RationalQuadratic { exponent: 1.0 },
                _ => return Err(unreadable()),
            },
            Some(("rational-quadratic", exponent)) => Self::RationalQuadratic {
                exponent: number(exponent)?,
            },
            Some(("mixture", factors)) => Self::Mixture {
                factors: factors.split('+').map(number).collect::<Result<_, _>>()?,
            },
            Some(_) => return Err(unreadable()),
        };
        // Exponents and factors are checked by the kernels themselves.
        family.at(1.0)?;
        Ok(family)
    }
}

as_text!(KernelFamily);
