//! The settings of the experiments in the literature. They must not be mixed: the same estimator
//! differs by many nats from one to the other.

use std::ops::Deref;

use serde::{Deserialize, Serialize};
use straightflow_data::{Dataset, Images, Partition, directory, mnist};

use super::config::{Architecture, Latent};
use super::error::VaeError;

/// Which images, and the settings that came with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Protocol A: pixels above one half, 55,000 training images, as in the first public code of ARM
    /// (2018), which the paper most likely followed.
    Threshold,
    /// Protocol B: pixels drawn once, 50,000 training images, a learned prior, as in the later code
    /// of ARM.
    Static,
    /// Protocol D: pixels drawn anew in every epoch, centred by their means, as in the code of DisARM.
    Dynamic,
    /// Protocol E: pixels drawn anew in every epoch, a uniform prior, nothing centred, large batches
    /// and steps, as in the code of double control variates and RODEO.
    Uncentred,
    /// Protocol A with the grey pixels themselves, which the public scripts of REBAR, RELAX and
    /// Gumbel-softmax of its time showed to both networks and took the likelihood of. Negative ELBOs
    /// are not comparable with those of binary images.
    Greyscale,
}

impl Protocol {
    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Uncentred => "uncentred",
            Self::Greyscale => "greyscale",
        }
    }

    /// The epochs that the protocol has for an architecture and its variables.
    pub fn epochs(self, arch: Architecture, latent: Latent) -> u64 {
        Preset::new(self, arch, latent).epochs
    }

    /// The images of the protocol: those of a directory, or MNIST as it comes with the program.
    ///
    /// # Errors
    ///
    /// If the files cannot be read, or there are no greyscale images to draw pixels from.
    pub fn load(self, from: Option<&std::path::Path>) -> Result<Source, VaeError> {
        let data = match (self, from) {
            (_, Some(path)) => directory::load(path)?,
            (Self::Threshold, None) => mnist::load(mnist::Binarisation::Threshold)?,
            (Self::Static, None) => mnist::load(mnist::Binarisation::Stochastic)?,
            (Self::Dynamic | Self::Uncentred | Self::Greyscale, None) => {
                return Err(VaeError::NoGreyImages(self.name()));
            }
        };
        let binary = matches!(data.images(), Images::Binary(_));
        let data = match self {
            // Bits that were drawn are no thresholded ones.
            Self::Threshold if from.is_some() && binary => return Err(VaeError::BinaryImages),
            Self::Threshold => data.threshold(127),
            Self::Dynamic | Self::Uncentred | Self::Greyscale if binary => {
                return Err(VaeError::NoGreyImages(self.name()));
            }
            Self::Static | Self::Dynamic | Self::Uncentred | Self::Greyscale => data,
        };
        Ok(Source::new(data))
    }
}

/// Images, with the checksum that records keep.
#[derive(Clone, Debug)]
pub struct Source {
    data: Dataset,
    sha256: String,
}

impl Source {
    /// Images of any origin.
    pub fn new(data: Dataset) -> Self {
        let sha256 = data.sha256();
        Self { data, sha256 }
    }

    /// Whether these are the images that were recorded.
    ///
    /// # Errors
    ///
    /// If the checksum is another one.
    pub fn check(&self, name: &str, checksum: &str) -> Result<(), VaeError> {
        match checksum == self.checksum() {
            true => Ok(()),
            false => Err(VaeError::OtherData(name.to_owned())),
        }
    }

    /// The checksum of the images.
    pub fn checksum(&self) -> &str {
        &self.sha256
    }
}

impl Deref for Source {
    type Target = Dataset;

    fn deref(&self) -> &Dataset {
        &self.data
    }
}

/// What a network is shown of a binary quantity `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Centring {
    /// `x`.
    None,
    /// `2 x - 1`.
    Signed,
    /// `x` minus its mean over the training images.
    Mean,
}

impl Centring {
    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Signed => "signed",
            Self::Mean => "mean",
        }
    }
}

/// The law of the topmost latent variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prior {
    /// Natural parameters of zero: even odds, equal categories, a rate of one.
    Fixed,
    /// Natural parameters that start at zero and are learned.
    Learned,
}

impl Prior {
    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Learned => "learned",
        }
    }
}

/// What a protocol sets for an architecture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Preset {
    pub partition: Partition,
    pub epochs: u64,
    pub batch: usize,
    pub learning_rate: f64,
    pub prior_learning_rate: f64,
    pub prior: Prior,
    pub inputs: Centring,
    pub latent_inputs: Centring,
    pub output_bias: bool,
    pub slope: f64,
    pub bound_every: u64,
}

impl Preset {
    pub(super) fn new(protocol: Protocol, arch: Architecture, latent: Latent) -> Self {
        let nonlinear = arch == Architecture::Nonlinear;
        let signed_unless = |plain: bool| match plain {
            true => Centring::None,
            false => Centring::Signed,
        };
        let base = Self {
            partition: Partition::TRAIN_50K,
            epochs: 1200,
            batch: 50,
            learning_rate: 1e-4,
            prior_learning_rate: 1e-2,
            prior: Prior::Learned,
            inputs: Centring::None,
            latent_inputs: Centring::None,
            output_bias: false,
            slope: 0.1,
            bound_every: 0,
        };
        let mut preset = match protocol {
            Protocol::Threshold | Protocol::Greyscale => Self {
                partition: Partition::TRAIN_55K,
                epochs: match arch {
                    Architecture::TwoLayer | Architecture::FourLayer => 1500,
                    Architecture::Linear | Architecture::Nonlinear => 400,
                },
                batch: 25,
                prior: Prior::Fixed,
                inputs: signed_unless(nonlinear),
                latent_inputs: signed_unless(nonlinear),
                slope: 0.2,
                ..base
            },
            Protocol::Static => Self {
                batch: if nonlinear { 20 } else { 50 },
                prior: if nonlinear {
                    Prior::Fixed
                } else {
                    Prior::Learned
                },
                inputs: signed_unless(arch != Architecture::Linear),
                latent_inputs: signed_unless(arch != Architecture::Linear),
                ..base
            },
            Protocol::Dynamic => Self {
                epochs: 1000,
                inputs: Centring::Mean,
                latent_inputs: Centring::Signed,
                output_bias: true,
                slope: 0.3,
                bound_every: 1000,
                ..base
            },
            // A million steps of 100 out of 50,000 images.
            Protocol::Uncentred => Self {
                epochs: 2000,
                batch: 100,
                learning_rate: 1e-3,
                prior: Prior::Fixed,
                slope: 0.3,
                ..base
            },
        };
        if latent != Latent::Bernoulli {
            // Only bits are spread around one half. The protocols know no other variables: a rate of
            // one is no natural choice as "uniform" is for bits, so counts learn theirs.
            preset.latent_inputs = Centring::None;
        }
        if latent == Latent::Poisson {
            preset.prior = Prior::Learned;
        }
        preset
    }
}
