//! The command line of `straightflow table2`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use straightflow::estimator::Spec;
use straightflow_experiments::vae::{
    Architecture, Latent, Protocol, Source, TableConfig, VaeError,
};
use straightflow_report::record::CONFIG;

use crate::settings::{ARCHITECTURES, LATENTS, PROTOCOLS, count, read_config, word};

pub const EXAMPLES: &str = "Examples:
  straightflow table2 --epochs 10 --out runs/table2        the paper's estimators on all architectures
  straightflow table2 --arch linear --estimators arm disarm --seeds 3 --epochs 100 --out runs/arm
  straightflow table2 --out runs/arm --resume --epochs 400      makes all of its runs longer
  straightflow table2 --beyond --epochs 10 --out runs/beyond
  straightflow table2 --latent poisson --arch nonlinear --epochs 10 --out runs/counts
An interrupted table goes on when it is run again.";

#[derive(Args)]
pub struct Arguments {
    /// The networks, space-separated [default: all three].
    #[arg(long, value_name = "ARCH", num_args = 1.., value_parser = word::<Architecture>(ARCHITECTURES))]
    arch: Vec<Architecture>,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated [default: the paper's; for
    /// other latent variables, those that take them].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Estimators that the paper does not have as well.
    #[arg(long, conflicts_with = "estimators")]
    beyond: bool,
    /// Which images, and the settings that come with them [default: threshold].
    #[arg(long, value_name = "PROTOCOL", value_parser = word::<Protocol>(PROTOCOLS))]
    protocol: Option<Protocol>,
    /// The latent variables [default: bernoulli].
    #[arg(long, value_name = "LATENT", value_parser = word::<Latent>(LATENTS))]
    latent: Option<Latent>,
    /// Runs for each architecture and estimator, with the seeds from 1 on [default: 1].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    seeds: Option<u64>,
    /// Passes over the training images [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    epochs: Option<u64>,
    /// The largest number of images of each split, for a quick look [default: all].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    images: Option<usize>,
    /// The draws of the bounds at the end [default: 100].
    #[arg(long, value_name = "N", value_parser = count::<usize>)]
    bound_samples: Option<usize>,
    /// A directory with IDX or .amat files [default: MNIST as it comes with the program].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The settings of a config.toml, where none are given.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["beyond", "resume"])]
    config: Option<PathBuf>,
    /// A directory for the table and its runs; an interrupted table is continued.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Go on with the table in --out, with the settings that it has. Another number of epochs makes all
    /// of its runs longer; all other settings that are given must agree.
    #[arg(long, conflicts_with = "beyond")]
    pub resume: bool,
    /// Runs at once, on one core each; the results do not depend on it [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    /// What is to be run, and on which images.
    pub fn config(&self) -> anyhow::Result<(TableConfig, Source)> {
        let recorded = self.recorded()?;
        let protocol = self.protocol.or(recorded.as_ref().map(|one| one.protocol));
        let protocol = protocol.unwrap_or(Protocol::Threshold);
        let data = protocol.load(self.data.as_deref())?;
        let mut config = match recorded {
            Some(recorded) if recorded.protocol == protocol => recorded,
            Some(recorded) => recorded.on(protocol, &data),
            None => {
                let latent = self.latent.unwrap_or(Latent::Bernoulli);
                TableConfig::new(protocol, &data, latent, self.beyond)
            }
        };
        for (name, count) in [
            ("number of epochs", self.epochs),
            ("number of images", self.images.map(|images| images as u64)),
        ] {
            if count == Some(0) {
                return Err(VaeError::Setting {
                    setting: name,
                    allowed: "at least 1",
                    got: "0".to_owned(),
                }
                .into());
            }
        }
        if !self.arch.is_empty() {
            config.archs.clone_from(&self.arch);
        }
        if !self.estimators.is_empty() {
            config.estimators.clone_from(&self.estimators);
        }
        let config = TableConfig {
            latent: self.latent.unwrap_or(config.latent),
            seeds: self.seeds.unwrap_or(config.seeds),
            epochs: self.epochs.unwrap_or(config.epochs),
            images: self.images.unwrap_or(config.images),
            bound_samples: self.bound_samples.unwrap_or(config.bound_samples),
            ..config
        };
        Ok((config, data))
    }

    /// The configuration to start from.
    fn recorded(&self) -> anyhow::Result<Option<TableConfig>> {
        if let Some(path) = &self.config {
            return read_config(path, "table2").map(Some);
        }
        if !self.resume {
            return Ok(None);
        }
        let nothing = || format!("{} has no table to go on with", self.out.display());
        let config = read_config(&self.out.join(CONFIG), "table2");
        config.with_context(nothing).map(Some)
    }
}
