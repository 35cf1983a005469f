//! The command line of `straightflow vae`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use straightflow::estimator::Spec;
use straightflow_experiments::vae::{
    Architecture, Centring, Config, Direct, Latent, Prior, Protocol, Settings, Source,
};
use straightflow_report::record::CONFIG;

use crate::settings::{
    ARCHITECTURES, CENTRINGS, DIRECTS, LATENTS, PRIORS, PROTOCOLS, count, read_config, word,
};
use crate::ui::command_line;

pub const EXAMPLES: &str = "Examples:
  straightflow vae --epochs 1                              straight-through on the linear model, nothing
                                                           is written
  straightflow vae --arch nonlinear --estimator arm --epochs 100 --out runs/arm
  straightflow vae --out runs/arm --resume                 goes on after an interruption
  straightflow vae --out runs/arm --resume --epochs 400    makes the run longer
  straightflow vae --latent poisson --estimator pwgf --epochs 20
  straightflow vae --protocol dynamic --data mnist --estimator disarm --epochs 50
  straightflow vae --config runs/arm/config.toml --seed 2 --out runs/arm-2";

#[derive(Args)]
pub struct Arguments {
    /// The networks [default: linear].
    #[arg(long, value_name = "ARCH", value_parser = word::<Architecture>(ARCHITECTURES))]
    arch: Option<Architecture>,
    /// The estimator, as `id` or `id:key=value,key=value` [default: straight-through].
    #[arg(long, value_name = "SPEC")]
    estimator: Option<Spec>,
    /// Which images, and the settings that come with them [default: threshold].
    #[arg(long, value_name = "PROTOCOL", value_parser = word::<Protocol>(PROTOCOLS))]
    protocol: Option<Protocol>,
    /// The latent variables [default: bernoulli].
    #[arg(long, value_name = "LATENT", value_parser = word::<Latent>(LATENTS))]
    latent: Option<Latent>,
    /// Passes over the training images [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    epochs: Option<u64>,
    /// The draws of one estimate [default: the estimator's].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    samples: Option<usize>,
    /// Of Adam on all networks [default: the protocol's].
    #[arg(long, value_name = "LR")]
    learning_rate: Option<f64>,
    /// Of Adam on what the estimator learns [default: ten times the other].
    #[arg(long, value_name = "LR")]
    state_learning_rate: Option<f64>,
    /// Of plain steps on a learned prior [default: the protocol's].
    #[arg(long, value_name = "LR")]
    prior_learning_rate: Option<f64>,
    /// The images of a step [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    batch: Option<usize>,
    /// What becomes of the gradient of log q by the encoder's parameters at fixed samples [default:
    /// dropped where it is zero in expectation, kept elsewhere].
    #[arg(long, value_name = "DIRECT", value_parser = word::<Direct>(DIRECTS))]
    direct: Option<Direct>,
    /// The law of the topmost latent variables [default: the protocol's].
    #[arg(long, value_name = "PRIOR", value_parser = word::<Prior>(PRIORS))]
    prior: Option<Prior>,
    /// What the encoder sees of the pixels [default: the protocol's].
    #[arg(long, value_name = "CENTRING", value_parser = word::<Centring>(CENTRINGS))]
    inputs: Option<Centring>,
    /// What networks see of latent variables [default: the protocol's].
    #[arg(long, value_name = "CENTRING", value_parser = word::<Centring>(&CENTRINGS[..2]))]
    latent_inputs: Option<Centring>,
    /// Whether the biases of the pixels start at the logits of their means [default: the protocol's].
    #[arg(long, value_name = "BOOL")]
    output_bias: Option<bool>,
    /// The slope of the rectifiers for negative arguments [default: the protocol's].
    #[arg(long, value_name = "SLOPE")]
    slope: Option<f64>,
    /// Which images validate, as `first-5000` or `last-10000`; the others train [default: the
    /// protocol's].
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED", value_parser = count::<u64>)]
    seed: Option<u64>,
    /// The largest number of images of each split, for a quick look [default: all].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    images: Option<usize>,
    /// The draws of the bound at the end [default: 100].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    bound_samples: Option<usize>,
    /// A directory with IDX or .amat files [default: MNIST as it comes with the program].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The settings of a config.toml, where none are given. What it has from its protocol follows
    /// another --protocol, --arch or --latent.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    config: Option<PathBuf>,
    /// A directory for the record of the run; an interrupted run is continued.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in --out, with the settings that it has. Another number of epochs makes it
    /// longer, or end earlier; all other settings that are given must agree.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub fn out(&self) -> Option<&Path> {
        self.out.as_deref()
    }

    pub fn resume(&self) -> bool {
        self.resume
    }

    pub fn json(&self) -> bool {
        self.json
    }

    /// What is to be run, and on which images.
    pub fn config(&self) -> anyhow::Result<(Config, Source)> {
        let recorded = self.recorded()?;
        let settings = match &recorded {
            Some(config) => config.settings(),
            None => Settings::new(Architecture::Linear, Spec::new("straight-through")),
        };
        let settings = self.changed(settings, recorded.is_some());
        let data = settings.protocol.load(self.data.as_deref())?;
        if let Some(config) = recorded.filter(|config| config.protocol == settings.protocol) {
            config.check(&data)?;
        }
        Ok((settings.config(&data)?, data))
    }

    /// The configuration to start from.
    fn recorded(&self) -> anyhow::Result<Option<Config>> {
        match (&self.config, &self.out) {
            (Some(path), _) => read_config(path, "vae").map(Some),
            (None, Some(out)) if self.resume => {
                let nothing = || format!("{} has no run to go on with", out.display());
                let config = read_config(&out.join(CONFIG), "vae");
                config.with_context(nothing).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The command line that repeats the run: `line`, unless its settings were read from a file.
    pub fn repeating(&self, config: &Config, line: String) -> String {
        if !self.resume && self.config.is_none() {
            return line;
        }
        let settings = config.settings();
        let flag = |name: &str, value: Option<String>| value.map(|value| [name.to_owned(), value]);
        fn text<T: ToString>(value: Option<T>) -> Option<String> {
            value.map(|value| value.to_string())
        }
        let centring = |value: Option<Centring>| value.map(|value| value.name().to_owned());
        let flags = [
            flag("--arch", Some(config.arch.name().to_owned())),
            flag("--latent", Some(config.latent.name().to_owned())),
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
            flag("--partition", settings.partition),
            flag("--images", text(settings.images)),
            flag("--bound-samples", Some(config.bound_samples.to_string())),
            flag("--seed", Some(config.seed.to_string())),
            flag(
                "--data",
                text(self.data.as_ref().map(|path| path.display())),
            ),
        ];
        let program = ["straightflow", "vae"].map(str::to_owned).into_iter();
        let words = program.chain(flags.into_iter().flatten().flatten());
        command_line(&words.collect::<Vec<String>>())
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
            latent: self.latent.unwrap_or(from.latent),
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
            partition: self.partition.clone().or(from.partition),
            images: self.images.or(from.images),
            bound_samples: self.bound_samples.unwrap_or(from.bound_samples),
            seed: self.seed.unwrap_or(from.seed),
        }
    }
}
