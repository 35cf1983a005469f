//! A set of images with its labels and its splits.

use std::ops::Range;

use crate::bits::BitImages;
use crate::checksum::sha256;
use crate::error::Result;
use crate::grey::GreyImages;
use crate::partition::{Partition, Split};

/// The images of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Images {
    /// Binary images: the two embedded sets and `.amat` files.
    Binary(BitImages),
    /// Greyscale images, of IDX files.
    Grey(GreyImages),
}

/// Images to train, validate and test on, in this order or with the first two exchanged, and with
/// the test images last.
///
/// ```
/// use straightflow_data::{Partition, Split, mnist};
///
/// let data = mnist::load(mnist::Binarisation::Threshold)?;
/// assert_eq!((data.len(), data.pixels()), (70_000, 784));
///
/// let train = data.range(Partition::TRAIN_55K, Split::Train)?;
/// let mut batch = vec![0.0; 2 * data.pixels()];
/// data.batch(&[train.start, train.end - 1], &mut batch);
/// assert!(batch.iter().all(|&x| x == 0.0 || x == 1.0));
/// # Ok::<(), straightflow_data::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    name: String,
    images: Images,
    test: usize,
    labels: Option<Vec<u8>>,
    partition: Option<Partition>,
}

impl Dataset {
    /// A set whose last `test` images are its test set.
    ///
    /// # Panics
    ///
    /// If there are fewer images than that.
    pub fn new(name: impl Into<String>, images: Images, test: usize) -> Self {
        let name = name.into();
        let set = Self {
            name,
            images,
            test,
            labels: None,
            partition: None,
        };
        assert!(test <= set.len(), "no more test images than images");
        set
    }

    /// The set with labels.
    ///
    /// # Panics
    ///
    /// If there is not one for each image.
    #[must_use]
    pub fn with_labels(mut self, labels: Vec<u8>) -> Self {
        assert_eq!(labels.len(), self.len(), "a label for each image");
        self.labels = Some(labels);
        self
    }

    /// The set with the partition that its files came in.
    #[must_use]
    pub(crate) fn with_partition(mut self, partition: Partition) -> Self {
        self.partition = Some(partition);
        self
    }

    /// What the set is called in records: `mnist-threshold`, `mnist-stochastic`, or how its files
    /// were read (`idx`, `amat`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The images, for access to their bits or greyscale values.
    pub fn images(&self) -> &Images {
        &self.images
    }

    /// The labels, if the set has any, one for each image.
    pub fn labels(&self) -> Option<&[u8]> {
        self.labels.as_deref()
    }

    /// The partition that the files came in, for sets that arrive with a validation file (`.amat`).
    pub fn partition(&self) -> Option<Partition> {
        self.partition
    }

    /// The SHA-256 checksum of the images, packed if they are binary: what a record of a run keeps to
    /// say which data it used. Labels are not part of it.
    pub fn sha256(&self) -> String {
        match &self.images {
            Images::Binary(images) => sha256(&images.to_bytes()),
            Images::Grey(images) => sha256(images.as_bytes()),
        }
    }

    /// The number of images, those of the test set included.
    pub fn len(&self) -> usize {
        match &self.images {
            Images::Binary(images) => images.len(),
            Images::Grey(images) => images.len(),
        }
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of test images.
    pub fn test_len(&self) -> usize {
        self.test
    }

    /// The rows of an image.
    pub fn height(&self) -> usize {
        match &self.images {
            Images::Binary(images) => images.height(),
            Images::Grey(images) => images.height(),
        }
    }

    /// The columns of an image.
    pub fn width(&self) -> usize {
        match &self.images {
            Images::Binary(images) => images.width(),
            Images::Grey(images) => images.width(),
        }
    }

    /// The pixels of an image.
    pub fn pixels(&self) -> usize {
        self.height() * self.width()
    }

    /// The images of a split. Every split is a range of neighbours.
    ///
    /// # Errors
    ///
    /// If the partition leaves no image to train on.
    pub fn range(&self, partition: Partition, split: Split) -> Result<Range<usize>> {
        partition.range(self.len() - self.test, self.test, split)
    }

    /// Writes the images `indices` to `out`, one after the other: binary pixels as 0.0 and 1.0,
    /// greyscale ones as intensities between the two. Nothing is kept in this expanded form.
    ///
    /// # Panics
    ///
    /// If there is no such image, or `out` does not have [`pixels`](Self::pixels) numbers for each
    /// index.
    pub fn batch(&self, indices: &[usize], out: &mut [f32]) {
        match &self.images {
            Images::Binary(images) => images.expand(indices, out),
            Images::Grey(images) => images.expand(indices, out),
        }
    }

    /// The set with greyscale images made binary by a threshold: one where the pixel is larger.
    /// Binary images stay as they are.
    #[must_use]
    pub fn threshold(mut self, limit: u8) -> Self {
        if let Images::Grey(images) = &self.images {
            self.images = Images::Binary(images.threshold(limit));
        }
        self
    }

    /// As [`batch`](Self::batch), with greyscale images made binary by the random bits that
    /// [`GreyImages`] describes. Binary images stay as they are.
    ///
    /// With one seed for each epoch this is dynamic binarisation, and with one and the same seed
    /// every time a static one.
    ///
    /// # Panics
    ///
    /// As [`batch`](Self::batch).
    pub fn binary_batch(&self, seed: [u8; 32], indices: &[usize], out: &mut [f32]) {
        match &self.images {
            Images::Binary(images) => images.expand(indices, out),
            Images::Grey(images) => images.binarise_batch(seed, indices, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey() -> Dataset {
        let images = GreyImages::new(1, 2, vec![0, 255, 127, 128, 51, 102]);
        Dataset::new("small", Images::Grey(images), 1)
    }

    #[test]
    fn batches_of_greyscale_images_are_intensities() {
        let mut out = [0.0; 4];
        grey().batch(&[2, 0], &mut out);
        assert_eq!(out, [0.2, 0.4, 0.0, 1.0]);
    }

    #[test]
    fn a_threshold_makes_binary_batches() {
        let set = grey().threshold(127);
        let (mut plain, mut seeded) = ([2.0; 6], [3.0; 6]);
        set.batch(&[0, 1, 2], &mut plain);
        assert_eq!(plain, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
        set.binary_batch([1; 32], &[0, 1, 2], &mut seeded);
        assert_eq!(plain, seeded);
        assert_eq!(set.clone().threshold(0), set);
    }

    #[test]
    fn dynamic_batches_change_with_the_seed() {
        let images = GreyImages::new(8, 8, vec![128; 64]);
        let set = Dataset::new("even", Images::Grey(images), 0);
        let draw = |seed| {
            let mut out = vec![0.0; 64];
            set.binary_batch([seed; 32], &[0], &mut out);
            out
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
