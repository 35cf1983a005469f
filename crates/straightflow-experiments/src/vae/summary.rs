//! What is recorded of a run: a line for each epoch, and the results.

use serde::{Deserialize, Serialize};
use straightflow_data::Split;

use super::config::Config;
use super::error::VaeError;
use super::trainer::Trainer;

/// The training images on which the negative ELBO is measured after each epoch.
pub const TRAIN_SAMPLE: usize = 10_000;

/// What was measured after an epoch. Negative ELBOs are means over images, in nats, with one hard
/// sample for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Complete epochs.
    pub epoch: u64,
    /// Steps so far.
    pub step: u64,
    /// Evaluations of the cost so far, for each image of a batch.
    pub evaluations: u64,
    /// Backward passes through the cost so far, for each image of a batch.
    pub gradients: u64,
    /// The mean over the epoch of what was minimised, at the samples of the estimator.
    pub objective: f64,
    /// The negative ELBO of the first [`TRAIN_SAMPLE`] training images; that of all of them is in the
    /// summary, as `train_nelbo`.
    #[serde(alias = "train_nelbo")]
    pub train_part_nelbo: f64,
    /// The negative ELBO of the validation images.
    pub valid_nelbo: f64,
    /// The negative ELBO of the test images.
    pub test_nelbo: f64,
    /// The running variance of the encoder's gradient, summed over its parameters.
    pub gradient_variance: Option<f64>,
}

/// The bound of the test images after some steps, with as many draws as the one at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepBound {
    /// Steps so far.
    pub step: u64,
    /// The mean bound over the test images.
    pub test_bound: f64,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The row of a table, one only.
    pub rows: Vec<Row>,
    /// The negative ELBO of all training images.
    pub train_nelbo: f64,
    /// The negative ELBO of the validation images.
    pub valid_nelbo: f64,
    /// The negative ELBO of the test images.
    pub test_nelbo: f64,
    /// The bound with many draws for the test images; how many, `bound_samples` says.
    pub test_bound_100: f64,
    /// The draws of the bound.
    pub bound_samples: usize,
    /// What was measured after each epoch.
    pub curve: Vec<Epoch>,
    /// The bounds of the test images on the way, if they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<StepBound>,
}

impl Summary {
    /// The epoch with the best validation value: its test value is the one that protocol B reports.
    /// The first one, if there are several; none if nothing was measured.
    pub fn selected(&self) -> Option<&Epoch> {
        let better = |a: &&Epoch, b: &&Epoch| a.valid_nelbo.total_cmp(&b.valid_nelbo);
        self.curve.iter().min_by(better)
    }
}

/// A run as the row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The name of the estimator.
    pub label: String,
    /// Its specification.
    pub estimator: String,
    /// The networks.
    pub arch: String,
    /// The latent variables.
    pub latent: String,
    /// The variables of a layer, if there are not as many as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<usize>,
    /// The protocol.
    pub protocol: String,
    /// The seed.
    pub seed: u64,
    /// The epochs.
    pub epochs: u64,
    /// The steps.
    pub steps: u64,
    /// As in [`Summary`].
    pub train_nelbo: f64,
    /// As in [`Summary`].
    pub valid_nelbo: f64,
    /// As in [`Summary`].
    pub test_nelbo: f64,
    /// As in [`Summary`].
    pub test_bound_100: f64,
    /// The running variance of the encoder's gradient at the end.
    pub gradient_variance: Option<f64>,
    /// Evaluations of the cost in a step, for each image.
    pub evaluations: f64,
    /// Backward passes through the cost in a step, for each image.
    pub gradients: f64,
}

/// The name of an estimator in tables: that of the registry, with the options if there are any.
pub fn label(config: &Config) -> String {
    let spec = config.estimator.to_string();
    let name = config.estimator.build().map(|e| e.entry().name);
    match (name, spec.split_once(':')) {
        (Ok(name), Some((_, options))) => format!("{name} ({})", options.replace(',', ", ")),
        (Ok(name), None) => name.to_owned(),
        (Err(_), _) => spec,
    }
}

impl Trainer<'_> {
    /// Measures the model after a complete epoch and takes note of it.
    pub(super) fn measure(&mut self) -> Result<Epoch, VaeError> {
        let one = |split, limit| self.bound(split, 1, limit);
        let place = &self.place;
        let epoch = Epoch {
            epoch: place.epoch,
            step: place.steps,
            evaluations: place.evaluations,
            gradients: place.gradients,
            objective: place.cost / place.images as f64,
            train_part_nelbo: one(Split::Train, TRAIN_SAMPLE)?,
            valid_nelbo: one(Split::Validation, usize::MAX)?,
            test_nelbo: one(Split::Test, usize::MAX)?,
            gradient_variance: self.moments.variance(),
        };
        let numbers = [epoch.train_part_nelbo, epoch.valid_nelbo, epoch.test_nelbo];
        if numbers.iter().any(|x| !x.is_finite()) {
            return Err(VaeError::Diverged {
                epoch: epoch.epoch,
                step: epoch.step,
            });
        }
        self.place.cost = 0.0;
        self.place.images = 0;
        self.place.epochs.push(epoch.clone());
        Ok(epoch)
    }

    /// The results, after the last epoch.
    pub(super) fn summary(&self) -> Result<Summary, VaeError> {
        let config = self.config;
        let last = self.place.epochs.last().expect("an epoch is complete");
        let train_nelbo = self.bound(Split::Train, 1, usize::MAX)?;
        let test_bound_100 = self.bound(Split::Test, config.bound_samples, usize::MAX)?;
        let row = Row {
            label: label(config),
            estimator: config.estimator.to_string(),
            arch: config.arch.name().to_owned(),
            latent: config.latent.name().to_owned(),
            units: config.units,
            protocol: config.protocol.name().to_owned(),
            seed: config.seed,
            epochs: config.epochs,
            steps: self.place.steps,
            train_nelbo,
            valid_nelbo: last.valid_nelbo,
            test_nelbo: last.test_nelbo,
            test_bound_100,
            gradient_variance: last.gradient_variance,
            evaluations: self.place.evaluations as f64 / self.place.steps as f64,
            gradients: self.place.gradients as f64 / self.place.steps as f64,
        };
        Ok(Summary {
            train_nelbo,
            valid_nelbo: row.valid_nelbo,
            test_nelbo: row.test_nelbo,
            test_bound_100,
            bound_samples: config.bound_samples,
            rows: vec![row],
            curve: self.place.epochs.clone(),
            bounds: self.place.bounds.clone(),
        })
    }
}
