//! The grid: architectures, estimators and seeds.

use serde::{Deserialize, Serialize};
use straightflow::estimator::Spec;

use crate::device::Processor;
use crate::vae::{Architecture, Config, Latent, Protocol, Settings, Source, VaeError};

/// The estimators of the paper's table. Its pWGF is there twice: with the default configuration, which
/// is straight-through on bits, and as we read the paper.
const PAPER: [&str; 7] = [
    "pwgf",
    "pwgf:preset=paper",
    "straight-through",
    "arm:preset=paper",
    "relax:control=sum",
    "rebar",
    "gumbel-softmax",
];
/// Estimators that came later, or that the paper leaves out, and ARM with a decoder that is trained on all
/// draws.
const BEYOND: [&str; 9] = [
    "debiased-st",
    "debiased-st:choice=variance",
    "arm",
    "disarm",
    "arms",
    "second-order-st",
    "gumbel-rao",
    "double-cv",
    "muprop",
];
const POISSON: [&str; 6] = [
    "pwgf",
    "second-order-st",
    "debiased-st",
    "fini",
    "exponential-arrival",
    "reinforce:baseline=learned",
];
const CATEGORICAL: [&str; 6] = [
    "straight-through",
    "debiased-st",
    "gumbel-softmax",
    "reinmax",
    "gumbel-rao",
    "rebar",
];

/// The estimators of a table, unless others are asked for.
pub fn default_estimators(latent: Latent, beyond: bool) -> Vec<Spec> {
    let ids: Vec<&str> = match (latent, beyond) {
        (Latent::Bernoulli, false) => PAPER.to_vec(),
        (Latent::Bernoulli, true) => [&PAPER[..], &BEYOND[..]].concat(),
        (Latent::Poisson, _) => POISSON.to_vec(),
        (Latent::Categorical, _) => CATEGORICAL.to_vec(),
    };
    ids.into_iter()
        .map(|id| id.parse().expect("a valid specification"))
        .collect()
}

/// A table, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableConfig {
    /// The protocol.
    pub protocol: Protocol,
    /// The name of the images.
    pub data: String,
    /// The SHA-256 checksum of the images.
    pub data_sha256: String,
    /// The latent variables.
    pub latent: Latent,
    /// The variables of a layer, if there are not [as many as usual](Latent::dims).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<usize>,
    /// What tensors are computed on; records before there was a choice do not mention the CPU.
    #[serde(default, skip_serializing_if = "Processor::is_cpu")]
    pub device: Processor,
    /// The networks.
    pub archs: Vec<Architecture>,
    /// The estimators.
    pub estimators: Vec<Spec>,
    /// Runs for each architecture and estimator, with the seeds from 1 on.
    pub seeds: u64,
    /// Passes over the training images; 0 for the protocol's own number.
    pub epochs: u64,
    /// The largest number of images of each split; 0 for all.
    pub images: usize,
    /// The draws of the bounds at the end.
    pub bound_samples: usize,
    /// The steps between bounds on the way, if not the protocol's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_every: Option<u64>,
}

/// One run of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableCell {
    /// Its place in the table, which is also the name of its directory.
    pub name: String,
    /// What is run.
    pub config: Config,
}

impl TableConfig {
    /// The table with the defaults of the paper, on images of a protocol.
    pub fn new(protocol: Protocol, data: &Source, latent: Latent, beyond: bool) -> Self {
        Self {
            protocol,
            data: data.name().to_owned(),
            data_sha256: data.checksum().to_owned(),
            latent,
            units: None,
            device: Processor::Cpu,
            archs: Architecture::ALL.to_vec(),
            estimators: default_estimators(latent, beyond),
            seeds: 1,
            epochs: 0,
            images: 0,
            bound_samples: 100,
            bound_every: None,
        }
    }

    /// The same table on the images of another protocol.
    #[must_use]
    pub fn on(self, protocol: Protocol, data: &Source) -> Self {
        Self {
            protocol,
            data: data.name().to_owned(),
            data_sha256: data.checksum().to_owned(),
            ..self
        }
    }

    /// All runs, architecture by architecture, with all seeds of an estimator together.
    ///
    /// # Errors
    ///
    /// If there is nothing to run, something twice, a setting is out of its range, or the configuration is
    /// of another data set.
    pub fn cells(&self, data: &Source) -> Result<Vec<TableCell>, VaeError> {
        data.check(&self.data, &self.data_sha256)?;
        let mut cells: Vec<TableCell> = Vec::new();
        for arch in &self.archs {
            for estimator in &self.estimators {
                for seed in 1..=self.seeds {
                    let settings = Settings {
                        latent: self.latent,
                        units: self.units,
                        device: self.device,
                        protocol: self.protocol,
                        epochs: (self.epochs > 0).then_some(self.epochs),
                        images: (self.images > 0).then_some(self.images),
                        bound_samples: self.bound_samples,
                        bound_every: self.bound_every,
                        seed,
                        ..Settings::new(*arch, estimator.clone())
                    };
                    let name = format!("{}-{}-{seed}", arch.name(), file_name(estimator));
                    if cells.iter().any(|cell| cell.name == name) {
                        return Err(VaeError::CellTwice(estimator.to_string()));
                    }
                    let config = settings.config(data)?;
                    cells.push(TableCell { name, config });
                }
            }
        }
        if cells.is_empty() {
            return Err(VaeError::EmptyTable);
        }
        Ok(cells)
    }
}

/// A specification without the characters that are special in file names.
fn file_name(estimator: &Spec) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => c,
        '=' => '-',
        _ => '_',
    };
    estimator.to_string().chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_has_a_place_of_its_own() {
        let data = Protocol::Threshold.load(None).expect("embedded data");
        let table = TableConfig {
            seeds: 2,
            ..TableConfig::new(Protocol::Threshold, &data, Latent::Bernoulli, true)
        };
        let cells = table.cells(&data).expect("valid defaults");
        assert_eq!(cells.len(), 3 * 16 * 2);
        assert_eq!(cells[0].name, "linear-pwgf-1");
        assert_eq!(cells[2].name, "linear-pwgf_preset-paper-1");
        let twice = TableConfig {
            estimators: vec![Spec::new("arm"), Spec::new("arm")],
            ..table
        };
        assert!(matches!(twice.cells(&data), Err(VaeError::CellTwice(_))));
    }
}
