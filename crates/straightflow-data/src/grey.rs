//! Greyscale images and the ways to make them binary.

use std::fmt;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

use crate::bits::BitImages;

/// Greyscale images of one size, one byte for each pixel, from 0 (background) to 255.
///
/// There are two ways to make them binary. [`threshold`](Self::threshold) needs no randomness.
/// The stochastic one takes the intensity `x / 255` as the probability of a one: once and for all
/// ([`binarise`](Self::binarise)), or anew with another seed in each epoch
/// ([`binarise_batch`](Self::binarise_batch)), which is the dynamic binarisation of the literature.
///
/// # The random bits
///
/// Both stochastic methods are this function of (seed, image, pixel). The 32-byte seed is the key of
/// the stream cipher ChaCha with 8 rounds, with a 64-bit block counter from 0 and a 64-bit stream
/// number (in the place of the nonce). Image `i` has stream `i`; pixel `p` has the word `p` of that
/// stream, a little-endian 32-bit number `u`. The pixel is one if and only if `255 u < 2^32 x`, in
/// integers. So a pixel of intensity 0 is never one, one of intensity 255 always, and the bits of an
/// image depend neither on the batch that it is in nor on the number of threads.
///
/// ```
/// use straightflow_data::GreyImages;
///
/// let images = GreyImages::new(1, 3, vec![0, 128, 255, 255, 127, 0]);
/// assert_eq!(images.threshold(127).ones(0).collect::<Vec<_>>(), [1, 2]);
///
/// let seed = [7; 32];
/// let fixed = images.binarise(seed);
/// let (mut batch, mut same) = ([0.0; 3], [0.0; 3]);
/// images.binarise_batch(seed, &[1], &mut batch);
/// fixed.expand(&[1], &mut same);
/// assert_eq!(batch, same);
/// assert_eq!((batch[0], batch[2]), (1.0, 0.0));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct GreyImages {
    height: usize,
    width: usize,
    bytes: Vec<u8>,
}

impl GreyImages {
    /// Images of `height` rows and `width` columns from their pixels, row by row.
    ///
    /// # Panics
    ///
    /// If an image would have no pixels, or `bytes` is not a whole number of images.
    pub fn new(height: usize, width: usize, bytes: Vec<u8>) -> Self {
        assert!(height > 0 && width > 0, "images have at least one pixel");
        assert_eq!(
            bytes.len() % (height * width),
            0,
            "a whole number of images"
        );
        Self {
            height,
            width,
            bytes,
        }
    }

    /// Appends all images of `other`.
    ///
    /// # Panics
    ///
    /// If they have another size.
    pub fn append(&mut self, other: &Self) {
        let (size, other_size) = ((self.height, self.width), (other.height, other.width));
        assert_eq!(size, other_size, "images of one size");
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.pixels()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The rows of an image.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The columns of an image.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The pixels of an image.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// The pixels of one image, row by row.
    ///
    /// # Panics
    ///
    /// If there is no such image.
    pub fn image(&self, image: usize) -> &[u8] {
        &self.bytes[image * self.pixels()..][..self.pixels()]
    }

    /// The pixels of all images, one image after the other.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the intensities `x / 255` of the images `indices` to `out`, one after the other.
    ///
    /// # Panics
    ///
    /// If there is no such image, or `out` does not have [`pixels`](Self::pixels) numbers for each
    /// index.
    pub fn expand(&self, indices: &[usize], out: &mut [f32]) {
        assert_eq!(
            out.len(),
            indices.len() * self.pixels(),
            "pixels for each index"
        );
        for (&image, out) in indices.iter().zip(out.chunks_exact_mut(self.pixels())) {
            for (x, &byte) in out.iter_mut().zip(self.image(image)) {
                *x = f32::from(byte) / 255.0;
            }
        }
    }

    /// Binary images: one where the pixel is larger than `limit`.
    pub fn threshold(&self, limit: u8) -> BitImages {
        let mut bits = BitImages::new(self.height, self.width);
        for image in self.bytes.chunks_exact(self.pixels()) {
            bits.push(|p| image[p] > limit);
        }
        bits
    }

    /// Binary images, drawn once with the probabilities `x / 255`.
    pub fn binarise(&self, seed: [u8; 32]) -> BitImages {
        let mut bits = BitImages::new(self.height, self.width);
        for image in 0..self.len() {
            let mut draw = Draw::new(seed, image);
            let bytes = self.image(image);
            bits.push(|p| draw.one(bytes[p]));
        }
        bits
    }

    /// Writes the images `indices` to `out` as 0.0 and 1.0, drawn with the probabilities `x / 255`:
    /// the same bits as [`binarise`](Self::binarise) draws for these images with this seed.
    ///
    /// # Panics
    ///
    /// If there is no such image, or `out` does not have [`pixels`](Self::pixels) numbers for each
    /// index.
    pub fn binarise_batch(&self, seed: [u8; 32], indices: &[usize], out: &mut [f32]) {
        assert_eq!(
            out.len(),
            indices.len() * self.pixels(),
            "pixels for each index"
        );
        for (&image, out) in indices.iter().zip(out.chunks_exact_mut(self.pixels())) {
            let mut draw = Draw::new(seed, image);
            for (x, &byte) in out.iter_mut().zip(self.image(image)) {
                *x = f32::from(u8::from(draw.one(byte)));
            }
        }
    }
}

impl fmt::Debug for GreyImages {
    /// The sizes: the pixels themselves are of no use in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GreyImages({} of {}x{})",
            self.len(),
            self.height,
            self.width
        )
    }
}

/// The random bits of one image, pixel after pixel.
struct Draw(ChaCha8Rng);

impl Draw {
    fn new(seed: [u8; 32], image: usize) -> Self {
        let mut words = ChaCha8Rng::from_seed(seed);
        words.set_stream(image as u64);
        Self(words)
    }

    /// The next pixel. A word is used up whatever the intensity, so that pixel `p` has word `p`.
    fn one(&mut self, intensity: u8) -> bool {
        is_one(self.0.next_u32(), intensity)
    }
}

/// Whether a pixel is one: `word / 2^32 < intensity / 255`.
fn is_one(word: u32, intensity: u8) -> bool {
    u64::from(word) * 255 < u64::from(intensity) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first words of ChaCha8 with an all-zero key, of the streams 0 and 1. The first are those of
    /// draft-strombergson-chacha-test-vectors-01 (TC1, 8 rounds, 256-bit key: 3e00ef2f 895f40d6 ..), the
    /// second were computed by another implementation.
    const FIRST_WORDS: [[u32; 4]; 2] = [
        [0x2fef_003e, 0xd640_5f89, 0xe8b8_5b7f, 0xa1a5_091f],
        [0xb34b_8f2b, 0xca06_8379, 0x7cd4_3051, 0xd14e_8d4f],
    ];

    #[test]
    fn bits_come_from_the_documented_words() {
        for intensity in 0..=255 {
            let images = GreyImages::new(1, 4, vec![intensity; 8]);
            let bits = images.binarise([0; 32]);
            for (image, words) in FIRST_WORDS.iter().enumerate() {
                let one = |&p: &usize| 255 * u128::from(words[p]) < u128::from(intensity) << 32;
                let expected: Vec<usize> = (0..4).filter(one).collect();
                assert_eq!(
                    bits.ones(image).collect::<Vec<_>>(),
                    expected,
                    "{intensity}"
                );
            }
        }
    }

    #[test]
    fn black_is_never_one_and_white_always() {
        for word in [0, 1, u32::MAX] {
            assert!(!is_one(word, 0));
            assert!(is_one(word, 255));
        }
        // 2^32 / 255 = 16843009.003..
        assert!(is_one(16_843_009, 1));
        assert!(!is_one(16_843_010, 1));
    }

    #[test]
    fn an_image_has_the_same_bits_in_every_batch() {
        let images = GreyImages::new(2, 50, (0..=255u8).cycle().take(500).collect());
        let fixed = images.binarise([3; 32]);
        let order = [4, 0, 4, 2];
        let (mut batch, mut expected) = (vec![0.0; 400], vec![1.0; 400]);
        images.binarise_batch([3; 32], &order, &mut batch);
        fixed.expand(&order, &mut expected);
        assert_eq!(batch, expected);
        assert_ne!(images.binarise([4; 32]), fixed);
    }

    /// 100,000 draws for each of 16 intensities. By Hoeffding's inequality a mean is off by more than
    /// 0.0075 with a probability below 2 exp(-2 * 1e5 * 0.0075^2) = 2.6e-5, so with a fixed seed this
    /// would have been seen once in 2,400 seeds.
    #[test]
    fn means_are_intensities() {
        for intensity in (0..=255u8).step_by(17) {
            let images = GreyImages::new(100, 1000, vec![intensity; 100_000]);
            let mean = images.binarise([9; 32]).count_ones(0..1) as f64 / 1e5;
            assert!(
                (mean - f64::from(intensity) / 255.0).abs() < 0.0075,
                "{intensity}: {mean}"
            );
        }
    }
}
