//! Images to train on: binarised MNIST inside the crate, and readers of IDX and `.amat` files. No
//! tensors in here.
//!
//! * [`mnist::load`]: the 70,000 images of MNIST in two fixed binarisations, with labels. Nothing is
//!   downloaded.
//! * [`directory::load`]: the IDX files of MNIST, Fashion-MNIST, KMNIST or EMNIST, plain or gzipped, or
//!   the `.amat` text files of the historical static binarisation, from a directory.
//! * [`Dataset`]: the images, bit-packed if they are binary, the [`Partition`] into splits, and batches
//!   expanded to `f32` when they are needed.
//! * [`Batches`]: the order of the images in each epoch, a function of a seed and the epoch.
//!
//! ```
//! use straightflow_data::mnist::{self, Binarisation};
//! use straightflow_data::{Batches, Partition, Split};
//!
//! let data = mnist::load(Binarisation::Threshold)?;
//! let train = data.range(Partition::TRAIN_55K, Split::Train)?;
//! let batches = Batches::new([1; 32], train, 25);
//! let mut x = vec![0.0; 25 * data.pixels()];
//! for epoch in 0..2 {
//!     for images in batches.epoch(epoch).batches_from(0).take(3) {
//!         data.batch(images, &mut x);
//!         // One step of training on x, [25, 784].
//!         assert!(x.iter().any(|&pixel| pixel == 1.0));
//!     }
//! }
//! # Ok::<(), straightflow_data::Error>(())
//! ```

pub mod amat;
mod bits;
mod checksum;
mod dataset;
pub mod directory;
mod error;
mod grey;
pub mod idx;
mod inflate;
pub mod mnist;
mod partition;
mod shuffle;

pub use bits::BitImages;
pub use checksum::sha256;
pub use dataset::{Dataset, Images};
pub use error::{Error, FormatError, Result};
pub use grey::GreyImages;
pub use partition::{Partition, Split};
pub use shuffle::{Batches, Order};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
