//! Counts of rare events.

use burn::tensor::Tensor;

use super::divergence::Divergence;
use super::formulas::Formulas;
use super::loader::deviance;
use super::{CountLaw, Distribution, Family, Law, Numbers, wraps_law};
use crate::error::Result;

/// Independent counts `0, 1, 2, ..` with mean and variance `rate = exp(log-rate)`.
///
/// In `f32`, counts above 2^24 are rounded. Above a rate of 1e15 a sample is its own mean.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let q = Poisson::from_rates(Tensor::<2>::from_floats([[0.5, 5.0]], &Device::flex()))?;
/// let z = q.draw(Key::new(1));
/// assert_eq!(z.dims(), [1, 2]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Poisson<const R: usize = 2>(Law);

impl<const R: usize> Poisson<R>
where
    Tensor<R>: Numbers,
{
    /// From the logarithms of the rates, `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_log_rates(log_rates: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::Poisson, log_rates)
    }

    /// From positive rates `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_rates(rates: Tensor<R>) -> Result<Self> {
        Self::of_means(Family::Poisson, rates)
    }

    /// The logarithms of the rates, `[batch, ..]`.
    pub fn log_rates(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(Poisson, Numbers);

/// The formulas of Poisson counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed;

pub(super) fn formulas() -> Fixed {
    Fixed
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    [1.5, 0.06]
        .map(|rate: f64| (Family::Poisson, vec![rate.ln()]))
        .to_vec()
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "log-rate"
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        natural.exp()
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        natural.exp()
    }

    #[inline]
    fn count_law(&self, natural: f64) -> Option<CountLaw> {
        Some(CountLaw::Poisson {
            rate: natural.exp(),
        })
    }

    #[inline]
    fn divergence_of(&self, p: f64, q: f64) -> Divergence {
        let (a, b) = (p.exp(), q.exp());
        Divergence {
            value: if a == 0.0 { b } else { deviance(a, b) },
            first: a * (p - q),
            second: b - a,
        }
    }

    fn weight(&self, natural: Tensor<3>) -> Option<(Family, Tensor<3>)> {
        Some((Family::Poisson, natural))
    }

    fn step_weights(&self, natural: Tensor<4>, z: Tensor<4>) -> [Tensor<4>; 2] {
        [z, natural.exp()]
    }
}
