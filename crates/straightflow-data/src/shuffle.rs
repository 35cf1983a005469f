//! The order of the images in each epoch, from a seed.

use std::ops::Range;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The batches of every epoch: a new order of the images in each, from a seed alone.
///
/// The order of an epoch is a function of (seed, epoch), and batch `b` of it are the images from
/// `b * batch_size` on. So a place in training is the pair (epoch, batch), and nothing else has to be
/// stored: a resumed run asks for the order of its epoch and takes its next batch.
///
/// # The order
///
/// The 32-byte seed is the key of ChaCha8 and the epoch its stream number. The words of the stream
/// are 32-bit numbers. The shuffle is that of Fisher and Yates: for `i` from the last place down to
/// 1, exchange the entries `i` and `j`, where `j` is uniform on `0..=i`. It is the upper half of the
/// 64-bit product of the next word and `i + 1`; a word whose product has a lower half below
/// `2^32 mod (i + 1)` is skipped (Lemire 2019, doi:10.1145/3230636), so that all orders are equally
/// likely up to the quality of the words.
///
/// A seed has one purpose. The one of a shuffle must not be that of a binarisation too.
///
/// ```
/// use straightflow_data::Batches;
///
/// let batches = Batches::new([1; 32], 5_000..60_000, 25);
/// assert_eq!(batches.per_epoch(), 2_200);
/// let order = batches.epoch(7);
/// let batch = order.batch(3); // 25 indices of images
/// assert_eq!(batch.len(), 25);
/// assert_eq!(batches.epoch(7).batch(3), batch);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    seed: [u8; 32],
    images: Range<usize>,
    batch_size: usize,
}

impl Batches {
    /// Batches of the images of a split.
    ///
    /// # Panics
    ///
    /// If the batch size is zero, or there are 2^32 images or more.
    pub fn new(seed: [u8; 32], images: Range<usize>, batch_size: usize) -> Self {
        assert!(batch_size > 0, "a batch has at least one image");
        assert!(
            u32::try_from(images.len()).is_ok(),
            "fewer than 2^32 images"
        );
        Self {
            seed,
            images,
            batch_size,
        }
    }

    /// The number of batches in an epoch. The last is smaller if the batch size does not divide the
    /// number of images.
    pub fn per_epoch(&self) -> usize {
        self.images.len().div_ceil(self.batch_size)
    }

    /// The order of an epoch.
    pub fn epoch(&self, epoch: u64) -> Order {
        let mut words = ChaCha8Rng::from_seed(self.seed);
        words.set_stream(epoch);
        let mut images: Vec<usize> = self.images.clone().collect();
        for i in (1..images.len()).rev() {
            let j = below(i as u32 + 1, || words.next_u32());
            images.swap(i, j as usize);
        }
        Order {
            images,
            batch_size: self.batch_size,
        }
    }
}

/// The images of one epoch in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    images: Vec<usize>,
    batch_size: usize,
}

impl Order {
    /// The images of a batch.
    ///
    /// # Panics
    ///
    /// If the epoch has no such batch.
    pub fn batch(&self, index: usize) -> &[usize] {
        let start = index * self.batch_size;
        assert!(start < self.images.len(), "the epoch has a batch {index}");
        &self.images[start..self.images.len().min(start + self.batch_size)]
    }

    /// The batches from number `first` on: all for 0, what is left of an interrupted epoch
    /// otherwise.
    pub fn batches_from(&self, first: usize) -> impl Iterator<Item = &[usize]> {
        self.images.chunks(self.batch_size).skip(first)
    }
}

/// A number uniform on `0..n`, without bias: Lemire's method.
fn below(n: u32, mut word: impl FnMut() -> u32) -> u32 {
    let skipped = n.wrapping_neg() % n; // 2^32 mod n
    loop {
        let product = u64::from(word()) * u64::from(n);
        if product as u32 >= skipped {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_epoch_has_every_image_once(
            seed: [u8; 32], epoch: u64, start in 0usize..1000, len in 0usize..300, size in 1usize..70
        ) {
            let batches = Batches::new(seed, start..start + len, size);
            let order = batches.epoch(epoch);
            let all: Vec<&[usize]> = order.batches_from(0).collect();
            prop_assert_eq!(all.len(), batches.per_epoch());
            for (index, batch) in all.iter().enumerate() {
                prop_assert_eq!(order.batch(index), *batch);
                prop_assert!(batch.len() == size || index + 1 == all.len());
            }
            let mut images = all.concat();
            images.sort_unstable();
            prop_assert_eq!(images, (start..start + len).collect::<Vec<_>>());
        }
    }

    #[test]
    fn words_that_would_bias_are_skipped() {
        // 2^32 mod 3 = 1, so only the word 0 is skipped.
        let mut words = [0, 0, 0x5555_5556, 1].into_iter();
        let mut next = || words.next().expect("a word");
        assert_eq!(below(3, &mut next), 1);
        assert_eq!(below(3, &mut next), 0);
        // A power of two skips nothing.
        assert_eq!(below(4, || 0), 0);
        assert_eq!(below(1, || 0), 0);
    }

    /// Pinned, because it decides the results of runs: a change is listed in the changelog. The values
    /// were computed by a second implementation, in another language, from the description of [`Batches`].
    #[test]
    fn the_order_is_pinned() {
        let batches = Batches::new([7; 32], 0..10, 10);
        let order = |epoch| batches.epoch(epoch).batch(0).to_vec();
        assert_eq!(order(0), [9, 8, 4, 7, 1, 0, 5, 6, 2, 3]);
        assert_eq!(order(1), [6, 1, 0, 5, 9, 7, 4, 8, 3, 2]);
        assert_eq!(order((1 << 40) + 3), [0, 6, 7, 4, 3, 9, 5, 1, 2, 8]);
    }

    /// All 24 orders of 4 images over 24,000 epochs. The statistic is chi-squared with 23 degrees of
    /// freedom, which exceeds 49.7 with probability 0.001.
    #[test]
    fn all_orders_are_equally_likely() {
        let batches = Batches::new([5; 32], 0..4, 4);
        let mut counts = std::collections::HashMap::<Vec<usize>, u32>::new();
        for epoch in 0..24_000 {
            *counts
                .entry(batches.epoch(epoch).batch(0).to_vec())
                .or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        let square = |&n: &u32| (f64::from(n) - 1000.0).powi(2) / 1000.0;
        let statistic: f64 = counts.values().map(square).sum();
        assert!(statistic < 49.7, "{statistic}");
    }
}
