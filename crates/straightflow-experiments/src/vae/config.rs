//! The settings of a run: everything that decides its bits.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::{Spec, Stacking};
use straightflow_data::{Partition, Split};

use super::error::VaeError;
use super::protocol::{Centring, Preset, Prior, Protocol, Source};
use crate::device::Processor;

/// The units of a hidden layer and the default number of latent variables.
pub(super) const WIDTH: usize = 200;

/// Which networks stand around which layers of latent variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// `784-[200]-784`, no hidden layer.
    Linear,
    /// `784-[200]-[200]`, each conditional linear.
    TwoLayer,
    /// `784-200-200-[200]-200-200-784` with leaky rectifiers.
    Nonlinear,
    /// `784-[200]-[200]-[200]-[200]`, each conditional linear; the deep model of protocol D.
    FourLayer,
}

impl Architecture {
    /// The architectures of the paper's table, in its order.
    pub const ALL: [Self; 3] = [Self::Linear, Self::TwoLayer, Self::Nonlinear];

    /// The layers of latent variables.
    pub fn layers(self) -> usize {
        match self {
            Self::TwoLayer => 2,
            Self::FourLayer => 4,
            Self::Linear | Self::Nonlinear => 1,
        }
    }

    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::TwoLayer => "two-layer",
            Self::Nonlinear => "nonlinear",
            Self::FourLayer => "four-layer",
        }
    }
}

/// The family of the latent variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Latent {
    /// 200 bits.
    Bernoulli,
    /// 20 variables with 10 categories each.
    Categorical,
    /// 200 counts.
    Poisson,
}

impl Latent {
    /// The family of the library.
    pub fn family(self) -> Family {
        match self {
            Self::Bernoulli => Family::Bernoulli,
            Self::Categorical => Family::Categorical,
            Self::Poisson => Family::Poisson,
        }
    }

    /// The variables of a layer unless a run has its own number of them, and the numbers that hold one.
    pub fn dims(self) -> [usize; 2] {
        match self {
            Self::Bernoulli | Self::Poisson => [WIDTH, 1],
            Self::Categorical => [20, 10],
        }
    }

    /// A number of variables in a layer, unless it is the usual one.
    pub(crate) fn unusual(self, units: Option<usize>) -> Option<usize> {
        units.filter(|units| *units != self.dims()[0])
    }

    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bernoulli => "bernoulli",
            Self::Categorical => "categorical",
            Self::Poisson => "poisson",
        }
    }
}

/// What becomes of the direct dependence of the cost on the encoder's parameters through `log q`.
///
/// At hard samples the expected gradient of `log q(z)` at fixed `z` is zero, so it is only noise.
/// Where the cost is evaluated between hard samples, or costs of several draws are combined in a
/// bound, it is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direct {
    /// `log q` is evaluated with the encoder's parameters as constants.
    Dropped,
    /// The gradient of `log q` with respect to the parameters is part of the estimate.
    Kept,
}

impl Direct {
    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Kept => "kept",
        }
    }
}

/// A run, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The networks.
    pub arch: Architecture,
    /// What tensors are computed on; records before there was a choice do not mention the CPU.
    #[serde(default, skip_serializing_if = "Processor::is_cpu")]
    pub device: Processor,
    /// The latent variables.
    pub latent: Latent,
    /// The variables of a layer, if there are not [as many as usual](Latent::dims).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<usize>,
    /// The estimator.
    pub estimator: Spec,
    /// The direct dependence of the cost on the encoder.
    pub direct: Direct,
    /// The protocol whose presets the rest starts from.
    pub protocol: Protocol,
    /// The name of the images.
    pub data: String,
    /// The SHA-256 checksum of the images.
    pub data_sha256: String,
    /// Which images train and validate, as `first-5000` or `last-10000`.
    pub partition: String,
    /// The largest number of images of each split; 0 for all.
    pub images: usize,
    /// Passes over the training images.
    pub epochs: u64,
    /// The images of a step.
    pub batch: usize,
    /// The learning rate of Adam for all networks.
    pub learning_rate: f64,
    /// The learning rate of Adam for what the estimator learns.
    pub state_learning_rate: f64,
    /// The learning rate of plain steps for a learned prior.
    pub prior_learning_rate: f64,
    /// The law of the topmost latent variables.
    pub prior: Prior,
    /// What the encoder sees of an image.
    pub inputs: Centring,
    /// What networks see of latent variables.
    pub latent_inputs: Centring,
    /// Whether the biases of the pixels start at the logits of their means.
    pub output_bias: bool,
    /// The slope of the rectifiers for negative arguments.
    pub slope: f64,
    /// The draws of the bound that is computed at the end, and on the way.
    pub bound_samples: usize,
    /// The steps from one bound of the test images to the next; 0 for the end alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bound_every: u64,
    /// The seed of all randomness.
    pub seed: u64,
}

/// What a user chooses; the rest of a [`Config`] follows from the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The networks.
    pub arch: Architecture,
    /// What tensors are computed on.
    pub device: Processor,
    /// The latent variables.
    pub latent: Latent,
    /// The variables of a layer; by default [as many as usual](Latent::dims).
    pub units: Option<usize>,
    /// The estimator.
    pub estimator: Spec,
    /// The number of draws of an estimate, unless the specification says so.
    pub samples: Option<usize>,
    /// The protocol.
    pub protocol: Protocol,
    /// The direct term; by default what fits the estimator.
    pub direct: Option<Direct>,
    /// Passes over the training images; by default the protocol's.
    pub epochs: Option<u64>,
    /// The images of a step; by default the protocol's.
    pub batch: Option<usize>,
    /// The learning rate; by default the protocol's.
    pub learning_rate: Option<f64>,
    /// The learning rate of what the estimator learns; by default ten times the other.
    pub state_learning_rate: Option<f64>,
    /// The learning rate of a learned prior; by default the protocol's, as all that follows.
    pub prior_learning_rate: Option<f64>,
    /// The law of the topmost latent variables.
    pub prior: Option<Prior>,
    /// What the encoder sees of an image.
    pub inputs: Option<Centring>,
    /// What networks see of latent variables.
    pub latent_inputs: Option<Centring>,
    /// Whether the biases of the pixels start at the logits of their means.
    pub output_bias: Option<bool>,
    /// The slope of the rectifiers for negative arguments.
    pub slope: Option<f64>,
    /// Which images train and validate, as `first-5000` or `last-10000`.
    pub partition: Option<String>,
    /// The largest number of images of each split; by default all of them.
    pub images: Option<usize>,
    /// The draws of the final bound.
    pub bound_samples: usize,
    /// The steps from one bound of the test images to the next; by default the protocol's.
    pub bound_every: Option<u64>,
    /// The seed of all randomness.
    pub seed: u64,
}

impl Settings {
    /// The settings of the paper's table for an estimator: bits, protocol A, seed 1.
    pub fn new(arch: Architecture, estimator: Spec) -> Self {
        Self {
            arch,
            device: Processor::Cpu,
            latent: Latent::Bernoulli,
            units: None,
            estimator,
            samples: None,
            protocol: Protocol::Threshold,
            direct: None,
            epochs: None,
            batch: None,
            learning_rate: None,
            state_learning_rate: None,
            prior_learning_rate: None,
            prior: None,
            inputs: None,
            latent_inputs: None,
            output_bias: None,
            slope: None,
            partition: None,
            images: None,
            bound_samples: 100,
            bound_every: None,
            seed: 1,
        }
    }

    /// The configuration of a run on a data set.
    ///
    /// # Errors
    ///
    /// The first setting that is out of its range.
    pub fn config(self, data: &Source) -> Result<Config, VaeError> {
        if self.images == Some(0) {
            return Err(VaeError::Setting {
                setting: "number of images",
                allowed: "at least 1",
                got: "0".to_owned(),
            });
        }
        let mut spec = self.estimator;
        if let Some(samples) = self.samples {
            if spec.option("samples").is_some() {
                return Err(VaeError::SamplesTwice(spec.to_string()));
            }
            spec.set("samples", &samples.to_string());
        }
        let estimator = spec.build().map_err(VaeError::Estimator)?;
        let preset = Preset::new(self.protocol, self.arch, self.latent);
        let learning_rate = self.learning_rate.unwrap_or(preset.learning_rate);
        let partition = data.partition().unwrap_or(preset.partition);
        let config = Config {
            arch: self.arch,
            device: self.device,
            latent: self.latent,
            units: self.latent.unusual(self.units),
            direct: self
                .direct
                .unwrap_or_else(|| super::elbo::fitting(&*estimator)),
            estimator: spec,
            protocol: self.protocol,
            data: data.name().to_owned(),
            data_sha256: data.checksum().to_owned(),
            partition: self.partition.unwrap_or_else(|| partition.to_string()),
            images: self.images.unwrap_or(0),
            epochs: self.epochs.unwrap_or(preset.epochs),
            batch: self.batch.unwrap_or(preset.batch),
            learning_rate,
            state_learning_rate: self
                .state_learning_rate
                .unwrap_or(usual_state_rate(learning_rate)),
            prior_learning_rate: self
                .prior_learning_rate
                .unwrap_or(preset.prior_learning_rate),
            prior: self.prior.unwrap_or(preset.prior),
            inputs: self.inputs.unwrap_or(preset.inputs),
            latent_inputs: self.latent_inputs.unwrap_or(preset.latent_inputs),
            output_bias: self.output_bias.unwrap_or(preset.output_bias),
            slope: self.slope.unwrap_or(preset.slope),
            bound_samples: self.bound_samples,
            bound_every: self.bound_every.unwrap_or(preset.bound_every),
            seed: self.seed,
        };
        config.check(data)?;
        Ok(config)
    }
}

// As serde asks for it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The learning rate of what an estimator learns, unless it is set: as in the public code of REBAR
/// and RELAX.
fn usual_state_rate(learning_rate: f64) -> f64 {
    10.0 * learning_rate
}

impl Config {
    /// Looks for settings that are out of their range, and for data that is not the recorded one.
    ///
    /// # Errors
    ///
    /// The first that is found.
    pub fn check(&self, data: &Source) -> Result<(), VaeError> {
        data.check(&self.data, &self.data_sha256)?;
        self.device.check()?;
        let wanted = |setting: &'static str, allowed: &'static str, got: String| {
            Err(VaeError::Setting {
                setting,
                allowed,
                got,
            })
        };
        if self.epochs == 0 {
            return wanted("number of epochs", "at least 1", self.epochs.to_string());
        }
        if self.units == Some(0) {
            return wanted("number of latent variables", "at least 1", "0".to_owned());
        }
        if self.batch == 0 {
            return wanted("batch size", "at least 1", self.batch.to_string());
        }
        if !(1..=10_000).contains(&self.bound_samples) {
            let got = self.bound_samples.to_string();
            return wanted("number of the bound's samples", "1 to 10000", got);
        }
        let rates = [
            ("learning rate", self.learning_rate),
            (
                "learning rate of the estimator's state",
                self.state_learning_rate,
            ),
            ("learning rate of the prior", self.prior_learning_rate),
        ];
        if !self.slope.is_finite() {
            let got = self.slope.to_string();
            return wanted("slope of the rectifiers", "a finite number", got);
        }
        for (setting, rate) in rates {
            if !(rate.is_finite() && rate > 0.0) {
                return wanted(setting, "a positive number", rate.to_string());
            }
        }
        self.check_estimator().map_err(VaeError::Estimator)?;
        let partition = self.partition()?;
        for split in Split::ALL {
            data.range(partition, split)?;
        }
        Ok(())
    }

    /// The variables of a layer, and the numbers that hold one of them.
    pub fn dims(&self) -> [usize; 2] {
        let [d, k] = self.latent.dims();
        [self.units.unwrap_or(d), k]
    }

    /// Whether the estimator takes the latent variables, as far as that is known beforehand.
    fn check_estimator(&self) -> straightflow::Result<()> {
        let estimator = self.estimator.build()?;
        let [d, k] = self.dims();
        let law = Law::new(
            self.latent.family(),
            Tensor::zeros([1, d, k], &Device::flex()),
        )?;
        estimator.check(&law, estimator.draws())?;
        let because = match estimator.stacking() {
            _ if self.arch.layers() == 1 => return Ok(()),
            Stacking::Unsupported => "",
            Stacking::Tape(_) if estimator.least_samples() > 1 => {
                ", because it needs several draws of one law"
            }
            _ => return Ok(()),
        };
        Err(straightflow::Error::UnsupportedLayers {
            estimator: estimator.entry().id,
            because,
        })
    }

    /// Whether a run of this configuration becomes one of the other when it resumes: they differ in
    /// the number of epochs at most, on which no step depends.
    pub fn may_become(&self, other: &Self) -> bool {
        let epochs = other.epochs;
        *other
            == Self {
                epochs,
                ..self.clone()
            }
    }

    /// The settings that lead to this configuration: those that differ from what the protocol has
    /// for the architecture and the variables.
    pub fn settings(&self) -> Settings {
        fn unless<T: PartialEq>(usual: T, own: T) -> Option<T> {
            (own != usual).then_some(own)
        }
        let preset = Preset::new(self.protocol, self.arch, self.latent);
        let estimator = self.estimator.build();
        let fitting = estimator.ok().map(|one| super::elbo::fitting(&*one));
        let partition = preset.partition.to_string();
        Settings {
            arch: self.arch,
            device: self.device,
            latent: self.latent,
            units: self.units,
            estimator: self.estimator.clone(),
            samples: None,
            protocol: self.protocol,
            direct: Some(self.direct).filter(|own| Some(*own) != fitting),
            epochs: unless(preset.epochs, self.epochs),
            batch: unless(preset.batch, self.batch),
            learning_rate: unless(preset.learning_rate, self.learning_rate),
            state_learning_rate: unless(
                usual_state_rate(self.learning_rate),
                self.state_learning_rate,
            ),
            prior_learning_rate: unless(preset.prior_learning_rate, self.prior_learning_rate),
            prior: unless(preset.prior, self.prior),
            inputs: unless(preset.inputs, self.inputs),
            latent_inputs: unless(preset.latent_inputs, self.latent_inputs),
            output_bias: unless(preset.output_bias, self.output_bias),
            slope: unless(preset.slope, self.slope),
            partition: unless(partition, self.partition.clone()),
            images: unless(0, self.images),
            bound_samples: self.bound_samples,
            bound_every: unless(preset.bound_every, self.bound_every),
            seed: self.seed,
        }
    }

    /// Which images train and validate.
    ///
    /// # Errors
    ///
    /// If the recorded text is none.
    pub fn partition(&self) -> Result<Partition, VaeError> {
        Ok(self.partition.parse()?)
    }
}
