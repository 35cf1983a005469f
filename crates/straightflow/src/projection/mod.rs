//! Discrepancies between a family of laws and a cloud of moved samples, and the projection onto
//! the family that each of them defines.
//!
//! A gradient flow moves the samples `z_n` of a law to `z_n - eps f'(z_n)`, which leave the
//! integers. The [`Discrepancy`] measures how far a law of the family is from them; its gradient by
//! the mean is an estimator of the gradient of `E f`, and its argmin is the projection:
//!
//! * [`MeanDifference`]: the squared difference of the means, whose gradient is the
//!   straight-through estimator;
//! * [`Mmd`]: the squared maximum mean discrepancy of a kernel;
//! * [`Wasserstein`]: the squared Wasserstein-2 distance, exact on the line.
//!
//! In several dimensions these are summed over the coordinates. For the Wasserstein distance of
//! factorised laws that is a theorem; for the maximum mean discrepancy it is a choice.

mod atoms;
mod batched;
pub mod categorical;
mod limit;
mod mean;
mod mmd;
mod project;
mod wasserstein;

use std::fmt::Debug;

use crate::distribution::CountLaw;

pub use atoms::Atoms;
pub use batched::Measure;
pub use mean::MeanDifference;
pub(crate) use mmd::LawResponses;
pub use mmd::{GainTable, Gains, Mmd, MmdLaw, SelfTerms};
pub use project::project;
pub use wasserstein::Wasserstein;

/// Why a discrepancy or a projection could not be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "a field is what the message says of it")]
pub enum ProjectionError {
    /// There are no samples.
    #[error("a discrepancy needs at least one sample")]
    NoSamples,
    /// A sample is infinite or not a number.
    #[error("samples must be finite, number {index} is {value}")]
    Sample { index: usize, value: f64 },
    /// Two clouds that belong together differ in size.
    #[error("expected {expected} entries, got {got}")]
    Length { expected: usize, got: usize },
    /// The parameters of a law are out of range.
    #[error("the parameters of {0:?} are not finite or out of range")]
    Law(CountLaw),
    /// A binomial law without trials cannot move.
    #[error("a binomial law without trials is a point mass and has no gradient")]
    PointMass,
    /// Weights must be positive, finite and not all zero.
    #[error("weights must be non-negative, finite and not all zero, number {index} is {value}")]
    Weight { index: usize, value: f64 },
    /// A kernel that is not defined for distances of vectors.
    #[error("one-hot vectors are compared by the Gaussian kernel only")]
    OneHotKernel,
    /// A law whose window is too wide to be visited integer by integer.
    #[error("the window of the law has {width} integers, more than the limit of {limit}")]
    TooWide { width: u64, limit: u64 },
    /// A kernel or a bandwidth was refused.
    #[error(transparent)]
    Kernel(#[from] crate::kernel::KernelError),
}

/// A squared discrepancy between a law and a cloud of samples or, more generally, of weighted
/// [`Atoms`].
pub trait Discrepancy: Debug + Send + Sync {
    /// `D(law, atoms)`.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Law`] for an unusable law.
    fn value_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError>;

    /// `dD / dm`, the gradient with respect to the mean of the law.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Law`] for an unusable law, [`ProjectionError::PointMass`] if its mean
    /// cannot move.
    fn mean_gradient_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError>;

    /// The mean of the law of the same shape that is nearest to the atoms. The mean of `shape` is
    /// where a search starts.
    ///
    /// # Errors
    ///
    /// As [`mean_gradient_to`](Self::mean_gradient_to).
    fn project_to(&self, shape: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError>;

    /// The gradient at the moved samples minus the gradient at the original ones.
    ///
    /// The second has (for the mean and for a kernel) expectation zero over the draws, so this has
    /// the same expectation as [`mean_gradient`](Self::mean_gradient) and far less variance. It is
    /// exactly 0 when nothing moved.
    ///
    /// # Errors
    ///
    /// As [`mean_gradient`](Self::mean_gradient), and [`ProjectionError::Length`] if the two clouds
    /// differ in size.
    fn control_variate_gradient(
        &self,
        law: &CountLaw,
        moved: &[f64],
        original: &[f64],
    ) -> Result<f64, ProjectionError>;

    /// [`value_to`](Self::value_to) for equally weighted samples.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::NoSamples`], [`ProjectionError::Sample`] and [`ProjectionError::Law`] for
    /// unusable arguments.
    fn value(&self, law: &CountLaw, samples: &[f64]) -> Result<f64, ProjectionError> {
        self.value_to(law, &Atoms::empirical(samples)?)
    }

    /// [`mean_gradient_to`](Self::mean_gradient_to) for equally weighted samples.
    ///
    /// # Errors
    ///
    /// As [`value`](Self::value), and [`ProjectionError::PointMass`] if the mean cannot move.
    fn mean_gradient(&self, law: &CountLaw, samples: &[f64]) -> Result<f64, ProjectionError> {
        self.mean_gradient_to(law, &Atoms::empirical(samples)?)
    }
}

/// Accepts samples that are finite, at least one.
fn check_samples(samples: &[f64]) -> Result<(), ProjectionError> {
    if samples.is_empty() {
        return Err(ProjectionError::NoSamples);
    }
    match samples.iter().position(|y| !y.is_finite()) {
        Some(index) => Err(ProjectionError::Sample {
            index,
            value: samples[index],
        }),
        None => Ok(()),
    }
}

/// Accepts two clouds of the same size.
fn check_pair(moved: &[f64], original: &[f64]) -> Result<(), ProjectionError> {
    check_samples(moved)?;
    check_samples(original)?;
    check_length(original.len(), moved.len())
}

fn check_length(expected: usize, got: usize) -> Result<(), ProjectionError> {
    match expected == got {
        true => Ok(()),
        false => Err(ProjectionError::Length { expected, got }),
    }
}

/// Accepts laws whose probabilities are defined.
fn check_law(law: &CountLaw) -> Result<(), ProjectionError> {
    let valid = match *law {
        CountLaw::Binomial { logit, .. } => !logit.is_nan(),
        CountLaw::Poisson { rate } => rate >= 0.0 && rate.is_finite(),
        CountLaw::NegativeBinomial { dispersion, mean } => {
            dispersion > 0.0 && dispersion.is_finite() && mean >= 0.0 && mean.is_finite()
        }
    };
    if valid {
        Ok(())
    } else {
        Err(ProjectionError::Law(*law))
    }
}

/// The largest mean of the family.
fn largest_mean(shape: &CountLaw) -> f64 {
    shape.maximum().map_or(f64::INFINITY, |last| last as f64)
}

fn average(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
