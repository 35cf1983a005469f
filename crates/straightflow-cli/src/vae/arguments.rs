//! The command line of `straightflow vae`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use straightflow::estimator::Spec;
use straightflow_experiments::vae::{
    Architecture, Config, Direct, Latent, Protocol, Settings, Source,
};
use straightflow_report::record::CONFIG;

use crate::record::read_toml;
use crate::ui::command_line;

pub const EXAMPLES: &str = "Examples:
  straightflow vae --epochs 1                              straight-through on the linear model, nothing
                                                           is written
  straightflow vae --arch nonlinear --estimator arm --epochs 100 --out runs/arm
  straightflow vae --out runs/arm --resume                 goes on after an interruption
  straightflow vae --out runs/arm --resume --epochs 400    makes the run longer
  straightflow vae --latent poisson --estimator pwgf --epochs 20
  straightflow vae --protocol dynamic --data mnist --estimator disarm --epochs 50
  straightflow vae --config runs/arm/config.toml --out runs/again";

#[derive(Args)]
pub struct Arguments {
    /// The networks [default: linear].
    #[arg(long, value_enum)]
    arch: Option<ArchitectureName>,
    /// The estimator, as `id` or `id:key=value,key=value` [default: straight-through].
    #[arg(long, value_name = "SPEC")]
    estimator: Option<Spec>,
    /// Which images, and the settings that come with them [default: threshold].
    #[arg(long, value_enum)]
    protocol: Option<ProtocolName>,
    /// The latent variables [default: bernoulli].
    #[arg(long, value_enum)]
    latent: Option<LatentName>,
    /// Passes over the training images [default: the protocol's].
    #[arg(long, value_name = "N")]
    epochs: Option<u64>,
    /// The draws of one estimate [default: the estimator's].
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Of Adam on all networks [default: the protocol's].
    #[arg(long, value_name = "LR", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// The images of a step [default: the protocol's].
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// What becomes of the gradient of log q by the encoder's parameters at fixed samples [default:
    /// dropped where it is zero in expectation, kept elsewhere].
    #[arg(long, value_enum)]
    direct: Option<DirectName>,
    /// The seed of all randomness [default: 1].
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// The largest number of images of each split, for a quick look [default: all].
    #[arg(long, value_name = "N")]
    images: Option<usize>,
    /// The draws of the bound at the end [default: 100].
    #[arg(long, value_name = "N")]
    bound_samples: Option<usize>,
    /// A directory with IDX or .amat files [default: MNIST as it comes with the program].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Repeat the run of a config.toml.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "arch", "estimator", "protocol", "latent", "epochs", "samples", "learning_rate", "batch",
        "direct", "seed", "images", "bound_samples", "resume",
    ])]
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ArchitectureName {
    /// 784-[200]-784.
    Linear,
    /// 784-[200]-[200].
    TwoLayer,
    /// 784-200-200-[200]-200-200-784.
    Nonlinear,
}

impl From<ArchitectureName> for Architecture {
    fn from(name: ArchitectureName) -> Self {
        match name {
            ArchitectureName::Linear => Self::Linear,
            ArchitectureName::TwoLayer => Self::TwoLayer,
            ArchitectureName::Nonlinear => Self::Nonlinear,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ProtocolName {
    /// Pixels above one half, batches of 25, a fixed prior (protocol A).
    Threshold,
    /// Pixels drawn once, batches of 50, a learned prior (protocol B).
    Static,
    /// Pixels drawn anew in every epoch; needs --data (protocol D).
    Dynamic,
}

impl From<ProtocolName> for Protocol {
    fn from(name: ProtocolName) -> Self {
        match name {
            ProtocolName::Threshold => Self::Threshold,
            ProtocolName::Static => Self::Static,
            ProtocolName::Dynamic => Self::Dynamic,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LatentName {
    /// 200 bits.
    Bernoulli,
    /// 20 variables with 10 categories.
    Categorical,
    /// 200 counts.
    Poisson,
}

impl From<LatentName> for Latent {
    fn from(name: LatentName) -> Self {
        match name {
            LatentName::Bernoulli => Self::Bernoulli,
            LatentName::Categorical => Self::Categorical,
            LatentName::Poisson => Self::Poisson,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DirectName {
    /// The parameters of log q are constants.
    Dropped,
    /// The gradient of log q is part of the estimate.
    Kept,
}

impl From<DirectName> for Direct {
    fn from(name: DirectName) -> Self {
        match name {
            DirectName::Dropped => Self::Dropped,
            DirectName::Kept => Self::Kept,
        }
    }
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
        if let Some(path) = &self.config {
            let config: Config = read_toml(path, "vae")?;
            let data = config.protocol.load(self.data.as_deref())?;
            config.check(&data)?;
            return Ok((config, data));
        }
        let recorded = match &self.out {
            Some(out) if self.resume => {
                let config = read_toml::<Config>(&out.join(CONFIG), "vae");
                let nothing = || format!("{} has no run to go on with", out.display());
                Some(config.with_context(nothing)?)
            }
            _ => None,
        };
        let mut settings = match &recorded {
            Some(config) => config.settings(),
            None => Settings::new(Architecture::Linear, Spec::new("straight-through")),
        };
        self.change(&mut settings);
        let data = settings.protocol.load(self.data.as_deref())?;
        // A recorded configuration may have more than settings can say.
        match recorded.filter(|config| config.settings() == settings) {
            Some(config) => {
                config.check(&data)?;
                Ok((config, data))
            }
            None => Ok((settings.config(&data)?, data)),
        }
    }

    /// The command line that repeats the run: `line`, unless its settings were read from a directory.
    pub fn repeating(&self, config: &Config, line: String) -> String {
        if !self.resume {
            return line;
        }
        let direct = match config.direct {
            Direct::Dropped => "dropped",
            Direct::Kept => "kept",
        };
        let settings = [
            ("--arch", config.arch.name().to_owned()),
            ("--latent", config.latent.name().to_owned()),
            ("--protocol", config.protocol.name().to_owned()),
            ("--estimator", config.estimator.to_string()),
            ("--direct", direct.to_owned()),
            ("--epochs", config.epochs.to_string()),
            ("--batch", config.batch.to_string()),
            ("--learning-rate", config.learning_rate.to_string()),
            ("--images", config.images.to_string()),
            ("--bound-samples", config.bound_samples.to_string()),
            ("--seed", config.seed.to_string()),
        ];
        let data = self.data.iter();
        let data = data.map(|path| ("--data", path.display().to_string()));
        let words = settings.into_iter().chain(data);
        let words = words.flat_map(|(name, value)| [name.to_owned(), value]);
        let program = ["straightflow", "vae"].map(str::to_owned).into_iter();
        command_line(&program.chain(words).collect::<Vec<String>>())
    }

    fn change(&self, settings: &mut Settings) {
        if let Some(arch) = self.arch {
            settings.arch = arch.into();
        }
        if let Some(estimator) = &self.estimator {
            settings.estimator = estimator.clone();
        }
        if let Some(protocol) = self.protocol {
            settings.protocol = protocol.into();
        }
        if let Some(latent) = self.latent {
            settings.latent = latent.into();
        }
        match self.samples {
            // The recorded specification has the number already; another one makes another run.
            Some(samples) if self.resume && self.estimator.is_none() => {
                settings.estimator.set("samples", &samples.to_string());
            }
            samples => settings.samples = samples,
        }
        settings.epochs = self.epochs.or(settings.epochs);
        settings.batch = self.batch.or(settings.batch);
        settings.learning_rate = self.learning_rate.or(settings.learning_rate);
        settings.direct = self.direct.map(Direct::from).or(settings.direct);
        settings.seed = self.seed.unwrap_or(settings.seed);
        settings.images = self.images.unwrap_or(settings.images);
        settings.bound_samples = self.bound_samples.unwrap_or(settings.bound_samples);
    }
}
