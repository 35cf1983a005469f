//! MNIST inside the crate: the 70,000 images in two fixed binarisations, and their labels.
//!
//! The images 0 to 59,999 are the training images of the IDX files in their order, the images 60,000
//! to 69,999 the test images. Behind each set is one gzip file of packed bits (see
//! [`BitImages`]); `examples/make_mnist.rs` makes it from the IDX files.
//!
//! The handwritten digits are the work of Yann LeCun and Corinna Cortes, who derived MNIST from data
//! of NIST, and are under the [Creative Commons Attribution-Share Alike 3.0][licence] licence. So are
//! the binarised images of this crate, which are derived from them.
//!
//! [licence]: https://creativecommons.org/licenses/by-sa/3.0/

use std::fmt;

use crate::bits::BitImages;
use crate::checksum::sha256;
use crate::dataset::{Dataset, Images};
use crate::error::{Error, Result};
use crate::grey::GreyImages;
use crate::inflate;

/// The rows and the columns of an image.
pub const SIDE: usize = 28;
/// The images before the test set.
pub const TRAIN: usize = 60_000;
/// The images of the test set.
pub const TEST: usize = 10_000;

/// The seed of [`Binarisation::Stochastic`], see [`GreyImages`] for what it means.
pub const STOCHASTIC_SEED: [u8; 32] = *b"straightflow stochastic MNIST v1";

/// The name of the embedded file of labels in the directory `data` of this crate.
pub const LABELS_FILE: &str = "mnist-labels.gz";

const LABELS: Embedded = Embedded {
    what: "labels of MNIST",
    file: LABELS_FILE,
    packed: include_bytes!("../data/mnist-labels.gz"),
    sha256: "671ff9d70b4811116d55c3dd479efa7a981e2e62753ef7a6d5c15fea81e63d27",
};
const THRESHOLD: Embedded = Embedded {
    what: "thresholded MNIST",
    file: "mnist-threshold.gz",
    packed: include_bytes!("../data/mnist-threshold.gz"),
    sha256: "1ae31577391c03c237ea26490d5c0cb2468445a08fa247552fa8a8b03a28989f",
};
const STOCHASTIC: Embedded = Embedded {
    what: "stochastically binarised MNIST",
    file: "mnist-stochastic.gz",
    packed: include_bytes!("../data/mnist-stochastic.gz"),
    sha256: "fb7bfbdc4a3f3a4dc19c27d7744513d85f06ac469dd456b1deaad6e3240b2099",
};

/// How the greyscale images of MNIST were made binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binarisation {
    /// One where the pixel is larger than 127.
    Threshold,
    /// One with probability `x / 255`, drawn once with [`STOCHASTIC_SEED`]. It is a draw of its own:
    /// like the static binarisation of Larochelle in law, but not in its bits.
    Stochastic,
}

impl Binarisation {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Threshold, Self::Stochastic];

    /// The binary images, from the greyscale images in their order.
    pub fn apply(self, images: &GreyImages) -> BitImages {
        match self {
            Self::Threshold => images.threshold(127),
            Self::Stochastic => images.binarise(STOCHASTIC_SEED),
        }
    }

    /// The name of the embedded file in the directory `data` of this crate.
    pub fn file(self) -> &'static str {
        self.embedded().file
    }

    /// The SHA-256 checksum of the unpacked file.
    pub fn sha256(self) -> &'static str {
        self.embedded().sha256
    }

    fn embedded(self) -> &'static Embedded {
        match self {
            Self::Threshold => &THRESHOLD,
            Self::Stochastic => &STOCHASTIC,
        }
    }
}

impl fmt::Display for Binarisation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Threshold => "mnist-threshold",
            Self::Stochastic => "mnist-stochastic",
        })
    }
}

/// The 70,000 images in one of the binarisations, with labels. The unpacked data is compared with
/// its checksum.
///
/// # Errors
///
/// If the embedded data is damaged.
///
/// ```
/// use straightflow_data::mnist::{self, Binarisation};
///
/// let data = mnist::load(Binarisation::Stochastic)?;
/// assert_eq!((data.len(), data.test_len()), (70_000, 10_000));
/// assert_eq!(data.labels().unwrap()[..5], [5, 0, 4, 1, 9]);
/// # Ok::<(), straightflow_data::Error>(())
/// ```
pub fn load(binarisation: Binarisation) -> Result<Dataset> {
    let bits = binarisation.embedded().unpack()?;
    let images = BitImages::from_bytes(SIDE, SIDE, &bits).expect("images, as the checksum proves");
    let set = Dataset::new(binarisation.to_string(), Images::Binary(images), TEST);
    Ok(set.with_labels(LABELS.unpack()?))
}

/// A file that is part of the crate.
struct Embedded {
    what: &'static str,
    file: &'static str,
    packed: &'static [u8],
    sha256: &'static str,
}

impl Embedded {
    fn unpack(&self) -> Result<Vec<u8>> {
        let what = self.what;
        let unpacked = inflate::whole(self.packed)
            .map_err(|problem| Error::Embedded { what, problem })?
            .into_owned();
        let (expected, found) = (self.sha256.to_owned(), sha256(&unpacked));
        if found != expected {
            return Err(Error::Checksum {
                what,
                expected,
                found,
            });
        }
        Ok(unpacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found() {
        let other = Embedded {
            packed: THRESHOLD.packed,
            ..LABELS
        };
        let error = other.unpack().unwrap_err();
        assert!(
            matches!(&error, Error::Checksum { found, .. } if found == THRESHOLD.sha256),
            "{error}"
        );
        let cut = Embedded {
            packed: &LABELS.packed[..1000],
            ..LABELS
        };
        assert!(matches!(cut.unpack(), Err(Error::Embedded { .. })));
        let flipped: Vec<u8> = LABELS
            .packed
            .iter()
            .enumerate()
            .map(|(i, b)| b ^ u8::from(i == 9000))
            .collect();
        let flipped = Embedded {
            packed: flipped.leak(),
            ..LABELS
        };
        assert!(flipped.unpack().is_err());
    }
}
