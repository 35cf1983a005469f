//! The command line of the table.

use clap::Args;
use straightflow::estimator::Spec;

use super::config::TableConfig;
use crate::arguments::{count, given, positive, word};
use crate::device::{PROCESSORS, Processor};
use crate::vae::{
    ARCHITECTURES, Architecture, ImageArguments, LATENTS, Latent, PROTOCOLS, Protocol, Source,
    VaeError,
};

pub(super) const EXAMPLES: &str = "Examples:
  straightflow table2 --epochs 10 --out runs/table2        the paper's estimators and networks
  straightflow table2 --arch linear --estimators arm disarm --seeds 3 --epochs 100 --out runs/arm
  straightflow table2 --out runs/arm --resume --epochs 400      makes all of its runs longer
  straightflow table2 --out runs/arm --resume --estimators arm disarm arms      adds a row; --seeds 5 adds seeds
  straightflow table2 --beyond --epochs 10 --out runs/beyond
  straightflow table2 --latent poisson --arch nonlinear --epochs 10 --out runs/counts
Interrupted runs resume: repeat the command.";

/// What the command line offers.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The networks, space-separated, written as the encoder's layers: [ ] marks a layer of latent variables, and the
    /// decoder mirrors the encoder [default: linear two-layer nonlinear].
    #[arg(long, value_name = "ARCH", num_args = 1.., value_parser = word::<Architecture>(ARCHITECTURES))]
    arch: Vec<Architecture>,
    /// Estimators, as `id` or `id:key=value,key=value`, space-separated; `straightflow list` shows ids and keys
    /// [default: the paper's; for other latent variables, those that support them].
    #[arg(long, value_name = "SPEC", num_args = 1..)]
    estimators: Vec<Spec>,
    /// Also run estimators that the paper does not have.
    #[arg(long, conflicts_with_all = ["estimators", "config", "resume"])]
    beyond: bool,
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
    /// The device to compute on [default: cpu].
    #[arg(long, value_name = "DEVICE", value_parser = word::<Processor>(PROCESSORS))]
    device: Option<Processor>,
    /// Runs for each architecture and estimator, with seeds 1, 2, .. [default: 1].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    seeds: Option<u64>,
    /// Passes over the training images [default: the protocol's].
    #[arg(long, value_name = "N", value_parser = positive::<u64>)]
    epochs: Option<u64>,
    /// Compute the multi-sample bound of the test images every N steps, or only at the end if N is 0 [default:
    /// the protocol's].
    #[arg(long, value_name = "N", value_parser = count::<u64>)]
    bound_every: Option<u64>,
    #[command(flatten)]
    images: ImageArguments,
}

impl Arguments {
    /// What is to be run, and on which images.
    pub(super) fn config(
        &self,
        recorded: Option<TableConfig>,
    ) -> Result<(TableConfig, Source), VaeError> {
        let protocol = self.protocol.or(recorded.as_ref().map(|one| one.protocol));
        let protocol = protocol.unwrap_or(Protocol::Threshold);
        let data = protocol.load(self.images.data.as_deref())?;
        let config = match recorded {
            Some(recorded) if recorded.protocol == protocol => recorded,
            Some(recorded) => recorded.on(protocol, &data),
            None => {
                let latent = self.latent.unwrap_or(Latent::Bernoulli);
                TableConfig::new(protocol, &data, latent, self.beyond)
            }
        };
        for (name, count) in [
            ("number of epochs", self.epochs),
            (
                "number of images",
                self.images.images.map(|images| images as u64),
            ),
        ] {
            if count == Some(0) {
                return Err(VaeError::Setting {
                    setting: name,
                    allowed: "at least 1",
                    got: "0".to_owned(),
                });
            }
        }
        let latent = self.latent.unwrap_or(config.latent);
        let config = TableConfig {
            latent,
            units: latent.unusual(self.units.or(config.units)),
            device: self.device.unwrap_or(config.device),
            archs: given(&self.arch, config.archs),
            estimators: given(&self.estimators, config.estimators),
            seeds: self.seeds.unwrap_or(config.seeds),
            epochs: self.epochs.unwrap_or(config.epochs),
            images: self.images.images.unwrap_or(config.images),
            bound_samples: self.images.bound_samples.unwrap_or(config.bound_samples),
            bound_every: self.bound_every.or(config.bound_every),
            ..config
        };
        Ok((config, data))
    }
}
