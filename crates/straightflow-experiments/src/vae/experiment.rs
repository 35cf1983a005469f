//! An autoencoder as an experiment of the list: a single cell, which resumes from its last checkpoint.

use std::path::Path;
use std::sync::Arc;

use straightflow_report::page::Page;
use straightflow_report::picture::{Picture, PictureError};
use straightflow_report::record::METRICS;

use super::arguments::{Arguments, EXAMPLES};
use super::checkpoint::epochs_begun;
use super::config::Config;
use super::error::VaeError;
use super::evaluate::Pictures;
use super::protocol::Source;
use super::run::{self, Finished, Watcher};
use super::summary::{Epoch, Summary};
use super::{plots, show};
use crate::experiment::{Ended, Experiment, File, Outcomes, Recalled};
use crate::runner::{CHECKPOINT, Desk, RunError, read_if_there};

/// The name of the picture of test images and what the model makes of them.
pub const RECONSTRUCTIONS: &str = "reconstructions.png";
/// The side of a pixel of the pictures.
const SCALE: usize = 2;

impl From<VaeError> for RunError {
    fn from(error: VaeError) -> Self {
        match error {
            VaeError::Stopped => Self::Stopped,
            error if error.is_bad_input() => Self::refused(error),
            error => Self::failed(error),
        }
    }
}

/// An autoencoder that is to be trained: a configuration that was looked at, and its images.
#[derive(Clone, Debug)]
pub struct VaeRun {
    config: Config,
    data: Arc<Source>,
}

impl VaeRun {
    /// A configuration that was made for these images.
    pub fn new(config: Config, data: Arc<Source>) -> Self {
        Self { config, data }
    }

    /// Refuses a number of epochs that is smaller than what the run of a directory has begun.
    ///
    /// # Errors
    ///
    /// If it is, or if that cannot be told.
    pub fn check_length(&self, directory: &Path) -> Result<(), RunError> {
        let records = read_if_there(&directory.join(METRICS))?.unwrap_or_default();
        let recorded = records.iter().filter(|byte| **byte == b'\n').count() as u64;
        let path = directory.join(CHECKPOINT);
        let trained = match read_if_there(&path)? {
            Some(bytes) => epochs_begun(&bytes).map_err(|error| unusable(error, &path))?,
            None => 0,
        };
        let (begun, asked) = (recorded.max(trained), self.config.epochs);
        match begun > asked {
            true => Err(VaeError::FewerEpochs { begun, asked }.into()),
            false => Ok(()),
        }
    }
}

/// Says which checkpoint it is that cannot be used.
fn unusable(error: VaeError, path: &Path) -> RunError {
    match error {
        VaeError::Checkpoint { .. } => RunError::Checkpoint {
            path: path.to_owned(),
            source: Box::new(error),
        },
        error => error.into(),
    }
}

/// Tells the desk of the cell what happens, and records it.
struct Scribe<'a, 'b> {
    desk: &'a Desk<'b>,
    /// The epochs that were recorded before.
    known: u64,
    epochs: u64,
}

impl Watcher for Scribe<'_, '_> {
    type Error = Halt;

    fn progress(&mut self, share: f64) -> Result<(), Halt> {
        self.desk.progress(share);
        Ok(())
    }

    fn epoch(&mut self, epoch: &Epoch) -> Result<(), Halt> {
        if epoch.epoch <= self.known {
            return Ok(());
        }
        self.known = epoch.epoch;
        self.desk.append(epoch)?;
        self.desk.finish_part();
        self.desk.note(format!(
            "epoch {} of {}, negative ELBO: training (subset) {:.2}, validation {:.2}, test {:.2}",
            epoch.epoch, self.epochs, epoch.train_part_nelbo, epoch.valid_nelbo, epoch.test_nelbo
        ));
        Ok(())
    }

    fn checkpoint(&mut self, bytes: Vec<u8>) -> Result<(), Halt> {
        Ok(self.desk.keep(&bytes)?)
    }

    fn wants_to_stop(&self) -> bool {
        self.desk.is_stopped()
    }
}

/// Why training ended before its time.
enum Halt {
    Training(VaeError),
    Elsewhere(RunError),
}

impl From<VaeError> for Halt {
    fn from(error: VaeError) -> Self {
        Self::Training(error)
    }
}

impl From<RunError> for Halt {
    fn from(error: RunError) -> Self {
        Self::Elsewhere(error)
    }
}

impl Experiment for VaeRun {
    const ID: &'static str = "vae";
    const ABOUT: &'static str =
        "A variational autoencoder with discrete latent variables, trained on MNIST.";
    const EXAMPLES: &'static str = EXAMPLES;
    const SMALL: &'static str = "--images 100 --bound-samples 2 --epochs 12 --estimator rebar";
    const GROWS: bool = true;
    const SUMMARY_SUFFICES: bool = true;

    type Arguments = Arguments;
    type Config = Config;
    type Record = Epoch;
    type Outcome = Finished;
    type Summary = Summary;

    fn prepare(arguments: &Arguments, recorded: Option<Config>) -> Result<Self, RunError> {
        let (config, data) = arguments.config(recorded)?;
        Ok(Self::new(config, Arc::new(data)))
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn cells(&self) -> Vec<String> {
        vec!["the training".to_owned()]
    }

    fn recall(&self, _place: usize, _epoch: Epoch) -> Result<Recalled<Finished>, RunError> {
        Ok(Recalled::Part)
    }

    fn run(&self, _cell: usize, desk: &Desk) -> Result<Finished, RunError> {
        let checkpoint = desk.checkpoint()?;
        let mut scribe = Scribe {
            known: desk.records::<Epoch>()?.len() as u64,
            desk,
            epochs: self.config.epochs,
        };
        let finished = run::run(&self.config, &self.data, checkpoint, &mut scribe);
        finished.map_err(|halt| match (halt, desk.place()) {
            (Halt::Training(error), Some(place)) => unusable(error, &place.join(CHECKPOINT)),
            (Halt::Training(error), None) => error.into(),
            (Halt::Elsewhere(error), _) => error,
        })
    }

    fn record(&self, _cell: usize, _finished: &Finished) -> Option<Epoch> {
        None
    }

    fn summarise(&self, outcomes: &Outcomes<Finished>) -> Summary {
        let finished = outcomes.iter().flatten().next();
        finished.expect("a cell that ended").summary.clone()
    }

    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError> {
        let plots = plots::draw(&self.config, &ended.summary.curve).into_iter();
        let mut files: Vec<File> = plots
            .map(|(name, svg)| (name.to_owned(), svg.into_bytes()))
            .collect();
        for finished in ended.outcomes.iter().flatten() {
            let pictures = pictures(&finished.pictures, &self.data);
            files.extend(pictures.map_err(RunError::failed)?);
        }
        Ok(files)
    }

    fn show(summary: &Summary) -> Page {
        show::page(summary)
    }

    fn may_become(from: &Config, to: &Config) -> bool {
        from.may_become(to)
    }

    fn check_growth(&self, directory: &Path) -> Result<(), RunError> {
        self.check_length(directory)
    }

    fn repeating(&self, arguments: &Arguments) -> Option<Vec<String>> {
        Some(arguments.repeating(&self.config))
    }
}

fn pictures(pictures: &Pictures, data: &Source) -> Result<Vec<File>, PictureError> {
    let Pictures {
        originals,
        reconstructions,
        dreams,
    } = pictures;
    let new = || Picture::new(data.height(), data.width());
    let mut pairs = new()?;
    pairs.push_row(originals)?;
    pairs.push_row(reconstructions)?;
    let mut prior = new()?;
    for row in dreams.chunks(originals.len()) {
        prior.push_row(row)?;
    }
    Ok(vec![
        (RECONSTRUCTIONS.to_owned(), pairs.png(SCALE)?),
        ("prior.png".to_owned(), prior.png(SCALE)?),
    ])
}
