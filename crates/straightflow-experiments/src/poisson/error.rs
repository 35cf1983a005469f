//! What can go wrong in the game.

/// Why a game could not be played.
#[derive(Debug, thiserror::Error)]
pub enum GameError {
    /// A setting is out of its range.
    #[error("the {setting} must be {allowed}, got {got}")]
    Setting {
        /// What was set.
        setting: &'static str,
        /// What it may be.
        allowed: &'static str,
        /// What it is.
        got: String,
    },
    /// There is nothing to compare.
    #[error("no estimator was given")]
    NoRows,
    /// Two rows would have the same name.
    #[error("the estimator `{0}` was given twice")]
    RepeatedRow(String),
    /// An estimator that learns: its state would be shared by the seeds of a block.
    #[error(
        "`{0}` learns state of its own, and the game keeps its seeds apart: choose an estimator \
         without state, such as `reinforce:baseline=loo`"
    )]
    Stateful(String),
    /// An estimator was refused.
    #[error(transparent)]
    Estimator(straightflow::Error),
    /// A recorded cell that does not belong to the configuration.
    #[error(
        "the records hold row `{row}` with seeds from {first_seed}, which is no part of this \
         configuration: choose another directory"
    )]
    ForeignCell {
        /// The row.
        row: String,
        /// The first seed of the cell.
        first_seed: usize,
    },
    /// A rate left the range of numbers.
    #[error(
        "the rate of `{row}`, seed {seed}, became {rate} in iteration {iteration}: lower the \
         learning rate"
    )]
    Diverged {
        /// The row.
        row: String,
        /// The seed.
        seed: usize,
        /// The iteration, from 1.
        iteration: usize,
        /// The rate.
        rate: f64,
    },
    /// An estimate failed while the game was played.
    #[error("`{row}` failed in iteration {iteration}")]
    Estimate {
        /// The row.
        row: String,
        /// The iteration, from 1.
        iteration: usize,
        /// Why.
        source: straightflow::Error,
    },
}

impl GameError {
    /// Whether the user's settings are to blame, and not the run.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Diverged { .. } | Self::Estimate { .. })
    }
}
