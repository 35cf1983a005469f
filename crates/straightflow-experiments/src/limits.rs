//! Numbers that are too small, too large or no numbers.

/// The largest number of anything that is counted.
const MOST: usize = 1_000_000;

/// What is wrong with a number of a configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A learning rate that is no step.
    #[error("a learning rate must be positive and finite, got {0}")]
    LearningRate(f64),
    /// A number that has to be larger.
    #[error("the number of {0} must be at least {1}")]
    TooFew(&'static str, usize),
    /// A number that has to be smaller: all runs and estimates are in memory at once.
    #[error("the number of {0} must be at most {1}")]
    TooMany(&'static str, usize),
}

/// Checks the step of an optimiser.
pub(crate) fn learning_rate(rate: f64) -> Result<(), LimitError> {
    match rate.is_finite() && rate > 0.0 {
        true => Ok(()),
        false => Err(LimitError::LearningRate(rate)),
    }
}

/// Checks a number of something, which has to be at least so many.
pub(crate) fn number(name: &'static str, got: usize, least: usize) -> Result<(), LimitError> {
    match got {
        got if got < least => Err(LimitError::TooFew(name, least)),
        got if got > MOST => Err(LimitError::TooMany(name, MOST)),
        _ => Ok(()),
    }
}
