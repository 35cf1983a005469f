//! What can go wrong in a run.

use crate::device::ProcessorError;

/// Why a model could not be trained.
#[derive(Debug, thiserror::Error)]
pub enum VaeError {
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
    /// The number of draws was given in two places.
    #[error("the number of samples was given twice: as --samples and in `{0}`")]
    SamplesTwice(String),
    /// A protocol of greyscale images without any; its name.
    #[error(
        "the {0} protocol needs greyscale images, but these are binary: name a directory with MNIST's IDX \
         files with --data DIR"
    )]
    NoGreyImages(&'static str),
    /// The threshold protocol with images that are binary already.
    #[error(
        "the threshold protocol makes greyscale images binary, but these are already binary: use \
         --protocol static"
    )]
    BinaryImages,
    /// A split without images.
    #[error("the training, validation and test sets need at least one image each")]
    EmptySplit,
    /// The estimator was refused.
    #[error(transparent)]
    Estimator(straightflow::Error),
    /// The images could not be loaded.
    #[error(transparent)]
    Data(#[from] straightflow_data::Error),
    /// The images differ from those of the configuration.
    #[error(
        "the images are not those that were recorded as `{0}`: give the same directory with --data"
    )]
    OtherData(String),
    /// What tensors are to be computed on is not there.
    #[error(transparent)]
    Device(#[from] ProcessorError),
    /// Two cells of a table would be the same run.
    #[error("`{0}` is in the table twice")]
    CellTwice(String),
    /// A table without cells.
    #[error(
        "the table has no cells: it needs at least one architecture, one estimator and one seed"
    )]
    EmptyTable,
    /// A step failed.
    #[error("training failed in epoch {epoch}, step {step}; earlier checkpoints are kept")]
    Step {
        /// The epoch, from 1.
        epoch: u64,
        /// The step of the run, from 1.
        step: u64,
        /// Why.
        source: straightflow::Error,
    },
    /// A parameter or a cost left the range of numbers.
    #[error(
        "the model is not finite in epoch {epoch}, after step {step}: lower the learning rate; earlier \
         checkpoints are kept"
    )]
    Diverged {
        /// The epoch, from 1.
        epoch: u64,
        /// The step of the run, from 1.
        step: u64,
    },
    /// An evaluation of the model failed.
    #[error("the model could not be evaluated after epoch {epoch}")]
    Evaluation {
        /// The epoch, from 1.
        epoch: u64,
        /// Why.
        source: straightflow::Error,
    },
    /// A checkpoint that cannot be read.
    #[error("the checkpoint {because}")]
    Checkpoint {
        /// What is wrong with it.
        because: String,
    },
    /// A run that has begun more epochs than it is to have.
    #[error(
        "the run has begun {begun} epochs and cannot end after {asked}: ask for {begun} at least, or \
         choose another directory"
    )]
    FewerEpochs {
        /// The epochs that have begun.
        begun: u64,
        /// The number that was asked for.
        asked: u64,
    },
    /// It was asked to stop, and has left a checkpoint if it had begun.
    #[error("the run was stopped")]
    Stopped,
    /// The threads could not be made.
    #[error("no thread could be started")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

impl VaeError {
    /// Whether the user's settings are to blame, and not the run.
    pub fn is_bad_input(&self) -> bool {
        !matches!(
            self,
            Self::Step { .. }
                | Self::Diverged { .. }
                | Self::Evaluation { .. }
                | Self::Checkpoint { .. }
                | Self::Stopped
                | Self::Threads(_)
        )
    }
}
