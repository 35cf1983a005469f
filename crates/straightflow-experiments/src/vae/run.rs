//! A run from its first step, or from a checkpoint, to its results.

use super::config::Config;
use super::error::VaeError;
use super::evaluate::Pictures;
use super::protocol::Source;
use super::summary::{Epoch, Summary};
use super::trainer::Trainer;

/// Steps between checkpoints within an epoch; there is one after each epoch as well.
const CHECKPOINT_EVERY: u64 = 2000;
/// Steps between reports of progress; there is one after each epoch as well.
const REPORT_EVERY: u64 = 50;
/// Test images with their reconstructions.
const PICTURES: usize = 10;

/// Who watches a run.
pub trait Watcher {
    /// Why something could not be taken; errors of the run become this.
    type Error: From<VaeError> + Send;

    /// The share of the steps that is done, from 0 to 1.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn progress(&mut self, share: f64) -> Result<(), Self::Error>;

    /// An epoch is complete. After an interruption, those of before are told once more, with the same
    /// numbers.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn epoch(&mut self, epoch: &Epoch) -> Result<(), Self::Error>;

    /// A place to resume from.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn checkpoint(&mut self, bytes: Vec<u8>) -> Result<(), Self::Error>;

    /// Whether the run is to stop after the step that it is in.
    fn wants_to_stop(&self) -> bool {
        false
    }
}

/// What a run ends with.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The results.
    pub summary: Summary,
    /// What the model makes of images.
    pub pictures: Pictures,
}

/// Trains and evaluates a model, from a checkpoint if there is one, on one thread: the results are a
/// function of the configuration alone.
///
/// # Errors
///
/// Bad settings, a checkpoint that does not fit, a cost that is not finite, the watcher's own, and
/// [`VaeError::Stopped`] after a checkpoint if the watcher wants that.
pub fn run<W: Watcher + Send>(
    config: &Config,
    data: &Source,
    checkpoint: Option<Vec<u8>>,
    watcher: &mut W,
) -> Result<Finished, W::Error> {
    // Sums of products would otherwise depend on the number of threads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.map_err(VaeError::from)?.install(|| {
        let mut trainer = match checkpoint {
            Some(bytes) => Trainer::resume(config, data, &bytes)?,
            None => Trainer::new(config, data)?,
        };
        let (told, complete) = (trainer.place.epochs.len() as u64, trainer.epochs());
        if told != complete {
            let because = format!("has {complete} epochs and the measurements of {told}");
            return Err(VaeError::Checkpoint { because }.into());
        }
        // A checkpoint may be ahead of the records: after a power cut, those can be the older ones.
        for epoch in &trainer.place.epochs {
            watcher.epoch(epoch)?;
        }
        watcher.progress(trainer.share())?;
        while trainer.epochs() < config.epochs {
            trainer.step()?;
            trainer.bound_on_the_way()?;
            if trainer.at_epoch() {
                let epoch = trainer.measure()?;
                watcher.epoch(&epoch)?;
            }
            let (steps, stop) = (trainer.place.steps, watcher.wants_to_stop());
            if trainer.at_epoch() || steps.is_multiple_of(CHECKPOINT_EVERY) || stop {
                // The next step would find out, but then the last good checkpoint were gone.
                if !trainer.is_finite() {
                    let epoch = trainer.epochs() + u64::from(!trainer.at_epoch());
                    return Err(VaeError::Diverged { epoch, step: steps }.into());
                }
                watcher.checkpoint(trainer.checkpoint()?)?;
            }
            if stop {
                return Err(VaeError::Stopped.into());
            }
            if trainer.at_epoch() || steps.is_multiple_of(REPORT_EVERY) {
                watcher.progress(trainer.share())?;
            }
        }
        if watcher.wants_to_stop() {
            return Err(VaeError::Stopped.into());
        }
        Ok(Finished {
            summary: trainer.summary()?,
            pictures: trainer.pictures(PICTURES)?,
        })
    })
}
