//! The command line of an autoencoder.

use std::path::PathBuf;

use clap::Args;
use straightflow::estimator::Spec;

use super::config::{Architecture, Config, Direct, Latent, Settings};
use super::protocol::{Centring, Prior, Protocol, Source};
use crate::arguments::{Words, count, number, positive, word};
use crate::device::{PROCESSORS, Processor};
use crate::runner::RunError;

/// The networks, in words.
pub const ARCHITECTURES: &Words = &[
    ("linear", "784-[200]"),
    ("two-layer", "784-[200]-[200]"),
    ("nonlinear", "784-200-200-[200], with leaky ReLUs"),
    ("four-layer", "784-[200]-[200]-[200]-[200]"),
];
/// The protocols, in words.
pub const PROTOCOLS: &Words = &[
    (
        "threshold",
        "Pixels binarised at 0.5, batches of 25, a fixed prior; 400 epochs (two and four layers: 1,500)",
    ),
    (
        "static",
        "Pixels sampled once, with the grey value as the probability of white; batches of 50 and a learned prior (nonlinear: 20 and a fixed prior); 1,200 epochs",
    ),
    (
        "dynamic",
        "Pixels sampled again in every epoch, inputs centred, batches of 50, a learned prior; 1,000 epochs; needs --data",
    ),
    (
        "uncentred",
        "Like dynamic, but batches of 100, a learning rate of 0.001 (the others: 0.0001), a fixed prior, no initial output biases, and pixels and latent variables as they are, not centred; 2,000 epochs; needs --data",
    ),
    (
        "greyscale",
        "Like threshold, but grey values are both input and target; needs --data",
    ),
];
/// The latent variables, in words.
pub const LATENTS: &Words = &[
    ("bernoulli", "200 bits"),
    ("categorical", "20 variables with 10 categories"),
    ("poisson", "200 counts, with a learned prior"),
];
const DIRECTS: &Words = &[
    (
        "dropped",
        "The parameters in log q are treated as constants",
    ),
    ("kept", "The gradient of log q is part of the estimate"),
];
const PRIORS: &Words = &[
    ("fixed", "Even odds, equal categories, a rate of one"),
    ("learned", "Starts at the fixed prior and is trained"),
];
const CENTRINGS: &Words = &[
    ("none", "x"),
    ("signed", "2 x - 1"),
    ("mean", "x minus its mean over the training images"),
];

pub(super) const EXAMPLES: &str = "Examples:
  straightflow vae --epochs 1                              straight-through on the linear model, no files
  straightflow vae --arch nonlinear --estimator arm --epochs 100 --out runs/arm
  straightflow vae --out runs/arm --resume                 resumes after an interruption
  straightflow vae --out runs/arm --resume --epochs 400    makes the run longer
  straightflow vae --latent poisson --estimator pwgf --epochs 20
  straightflow vae --protocol dynamic --data mnist --estimator disarm --epochs 50
  straightflow vae --config runs/arm/config.toml --seed 2 --out runs/arm-2";

/// Which images, and how many of them.
#[derive(Args, Debug)]
pub struct ImageArguments {
    /// Use at most this many images of each split, for a quick look [default: all].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    pub(crate) images: Option<usize>,
    /// Draws of the multi-sample bound at the end [default: 100].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    pub(crate) bound_samples: Option<usize>,
    /// A directory with IDX or .amat files [default: the bundled MNIST].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// What the command line offers.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The networks, written as the encoder's layers: [ ] marks a layer of latent variables, and the decoder mirrors
    /// the encoder [default: linear].
    #[arg(long, value_name = "ARCH", value_parser = word::<Architecture>(ARCHITECTURES))]
    arch: Option<Architecture>,
    /// The estimator, as `id` or `id:key=value,key=value`; `straightflow list` shows ids and keys [default:
    /// straight-through].
    #[arg(long, value_name = "SPEC")]
    estimator: Option<Spec>,
    /// The training protocol: how images become binary, and the settings that go with it [default:
    /// threshold].
    #[arg(long, value_name = "PROTOCOL", value_parser = word::<Protocol>(PROTOCOLS))]
    protocol: Option<Protocol>,
    /// The latent variables [default: bernoulli].
    #[arg(long, value_name = "LATENT", value_parser = word::<Latent>(LATENTS))]
    latent: Option<Latent>,
    /// Latent variables per layer [default: 200 bits or counts, 20 categorical variables].
    #[arg(long, value_name = "N", value_parser = positive::<usize>)]
    units: Option<usize>,
    /// Passes over the training images [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    epochs: Option<u64>,
    /// Draws per estimate [default: the estimator's].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    samples: Option<usize>,
    /// Adam learning rate of the networks [default: the protocol's].
    #[arg(long, value_name = "LR", value_parser = number)]
    learning_rate: Option<f64>,
    /// Adam learning rate of what the estimator learns (control variates, baselines) [default: ten times the
    /// networks'].
    #[arg(long, value_name = "LR", value_parser = number)]
    state_learning_rate: Option<f64>,
    /// Learning rate of a learned prior, which is trained by plain gradient steps [default: the protocol's].
    #[arg(long, value_name = "LR", value_parser = number)]
    prior_learning_rate: Option<f64>,
    /// Images per step [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    batch: Option<usize>,
    /// Whether to keep the gradient of log q with respect to the encoder's parameters at fixed samples
    /// [default: dropped where it is zero in expectation, kept elsewhere].
    #[arg(long, value_name = "DIRECT", value_parser = word::<Direct>(DIRECTS))]
    direct: Option<Direct>,
    /// The prior of the top latent layer [default: the protocol's; learned for counts].
    #[arg(long, value_name = "PRIOR", value_parser = word::<Prior>(PRIORS))]
    prior: Option<Prior>,
    /// How pixels x are fed to the encoder [default: the protocol's].
    #[arg(long, value_name = "CENTRING", value_parser = word::<Centring>(CENTRINGS))]
    inputs: Option<Centring>,
    /// How latent variables x are fed to the networks [default: the protocol's].
    #[arg(long, value_name = "CENTRING", value_parser = word::<Centring>(&CENTRINGS[..2]))]
    latent_inputs: Option<Centring>,
    /// Whether the decoder's output biases start at the logits of the mean pixel values [default: the
    /// protocol's].
    #[arg(long, value_name = "BOOL")]
    output_bias: Option<bool>,
    /// Negative slope of the leaky ReLUs [default: the protocol's].
    #[arg(long, value_name = "SLOPE", value_parser = number)]
    slope: Option<f64>,
    /// Which images to validate on, such as first-5000 or last-10000; the rest are for training
    /// [default: the protocol's].
    #[arg(long, value_name = "SPLIT")]
    validation: Option<String>,
    /// The device to compute on [default: cpu].
    #[arg(long, value_name = "DEVICE", value_parser = word::<Processor>(PROCESSORS))]
    device: Option<Processor>,
    /// Compute the multi-sample bound of the test images every N steps, or only at the end if N is 0 [default:
    /// the protocol's].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    bound_every: Option<u64>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
    #[command(flatten)]
    images: ImageArguments,
}

impl Arguments {
    /// What is to be run, and on which images.
    pub(super) fn config(&self, recorded: Option<Config>) -> Result<(Config, Source), RunError> {
        let settings = match &recorded {
            Some(config) => config.settings(),
            None => Settings::new(Architecture::Linear, Spec::new("straight-through")),
        };
        let settings = self.changed(settings, recorded.is_some());
        let data = settings.protocol.load(self.images.data.as_deref())?;
        if let Some(config) = recorded.filter(|config| config.protocol == settings.protocol) {
            config.check(&data)?;
        }
        Ok((settings.config(&data)?, data))
    }

    /// The command line that repeats a run whose settings were read from a file.
    pub(super) fn repeating(&self, config: &Config) -> Vec<String> {
        let settings = config.settings();
        let flag = |name: &str, value: Option<String>| value.map(|value| [name.to_owned(), value]);
        fn text<T: ToString>(value: Option<T>) -> Option<String> {
            value.map(|value| value.to_string())
        }
        let centring = |value: Option<Centring>| value.map(|value| value.name().to_owned());
        let flags = [
            flag("--arch", Some(config.arch.name().to_owned())),
            flag(
                "--device",
                Some(config.device.name().to_owned()).filter(|_| !config.device.is_cpu()),
            ),
            flag("--latent", Some(config.latent.name().to_owned())),
            flag("--units", text(config.units)),
            flag("--protocol", Some(config.protocol.name().to_owned())),
            flag("--estimator", Some(config.estimator.to_string())),
            flag("--direct", Some(config.direct.name().to_owned())),
            flag("--epochs", Some(config.epochs.to_string())),
            flag("--batch", text(settings.batch)),
            flag("--learning-rate", text(settings.learning_rate)),
            flag("--state-learning-rate", text(settings.state_learning_rate)),
            flag("--prior-learning-rate", text(settings.prior_learning_rate)),
            flag("--prior", settings.prior.map(|one| one.name().to_owned())),
            flag("--inputs", centring(settings.inputs)),
            flag("--latent-inputs", centring(settings.latent_inputs)),
            flag("--output-bias", text(settings.output_bias)),
            flag("--slope", text(settings.slope)),
            flag("--validation", settings.partition),
            flag("--images", text(settings.images)),
            flag("--bound-samples", Some(config.bound_samples.to_string())),
            flag("--bound-every", text(settings.bound_every)),
            flag("--seed", Some(config.seed.to_string())),
            flag(
                "--data",
                text(self.images.data.as_ref().map(|path| path.display())),
            ),
        ];
        let program = ["straightflow", "vae"].map(str::to_owned).into_iter();
        program
            .chain(flags.into_iter().flatten().flatten())
            .collect()
    }

    fn changed(&self, from: Settings, recorded: bool) -> Settings {
        let mut estimator = self.estimator.clone().unwrap_or(from.estimator);
        let mut samples = self.samples;
        if recorded
            && self.estimator.is_none()
            && let Some(samples) = samples.take()
        {
            // The recorded specification may have the number already.
            estimator.set("samples", &samples.to_string());
        }
        Settings {
            arch: self.arch.unwrap_or(from.arch),
            device: self.device.unwrap_or(from.device),
            latent: self.latent.unwrap_or(from.latent),
            units: self.units.or(from.units),
            estimator,
            samples,
            protocol: self.protocol.unwrap_or(from.protocol),
            direct: self.direct.or(from.direct),
            epochs: self.epochs.or(from.epochs),
            batch: self.batch.or(from.batch),
            learning_rate: self.learning_rate.or(from.learning_rate),
            state_learning_rate: self.state_learning_rate.or(from.state_learning_rate),
            prior_learning_rate: self.prior_learning_rate.or(from.prior_learning_rate),
            prior: self.prior.or(from.prior),
            inputs: self.inputs.or(from.inputs),
            latent_inputs: self.latent_inputs.or(from.latent_inputs),
            output_bias: self.output_bias.or(from.output_bias),
            slope: self.slope.or(from.slope),
            partition: self.validation.clone().or(from.partition),
            images: self.images.images.or(from.images),
            bound_samples: self.images.bound_samples.unwrap_or(from.bound_samples),
            bound_every: self.bound_every.or(from.bound_every),
            seed: self.seed.unwrap_or(from.seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::assert_known;

    #[test]
    fn the_words_of_the_command_line_are_those_of_the_records() {
        assert_known::<Architecture>(ARCHITECTURES);
        assert_known::<Protocol>(PROTOCOLS);
        assert_known::<Latent>(LATENTS);
        assert_known::<Direct>(DIRECTS);
        assert_known::<Prior>(PRIORS);
        assert_known::<Centring>(CENTRINGS);
    }
}
