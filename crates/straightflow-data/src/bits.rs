//! Binary images, one bit for each pixel.

use std::fmt;

/// Binary images of one size, packed to one bit for each pixel.
///
/// Pixels are numbered along the rows of an image, from the top left. In memory an image is a whole
/// number of 64-bit words, and pixel `p` is bit `p % 64` of word `p / 64`, counted from the least
/// significant bit; the bits after the last pixel are zero. As bytes ([`to_bytes`](Self::to_bytes))
/// pixel `p` is bit `p % 8` of byte `p / 8` of its image.
///
/// ```
/// use straightflow_data::BitImages;
///
/// let mut images = BitImages::new(1, 3);
/// images.push(|pixel| pixel == 1);
/// images.push(|pixel| pixel != 1);
/// assert_eq!(images.len(), 2);
/// assert_eq!(images.ones(1).collect::<Vec<_>>(), [0, 2]);
///
/// // A batch as a network wants it: 0 or 1, one image after the other.
/// let mut batch = [0.0; 9];
/// images.expand(&[1, 0, 1], &mut batch);
/// assert_eq!(batch, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BitImages {
    height: usize,
    width: usize,
    words: Vec<u64>,
}

impl BitImages {
    /// No images yet, of `height` rows and `width` columns.
    ///
    /// # Panics
    ///
    /// If an image would have no pixels.
    pub fn new(height: usize, width: usize) -> Self {
        assert!(height > 0 && width > 0, "images have at least one pixel");
        let words = Vec::new();
        Self {
            height,
            width,
            words,
        }
    }

    /// The images whose bytes are those of [`to_bytes`](Self::to_bytes), or nothing if the number of
    /// bytes is not that of whole images or a bit after the last pixel of an image is set.
    ///
    /// # Panics
    ///
    /// If an image would have no pixels.
    pub fn from_bytes(height: usize, width: usize, bytes: &[u8]) -> Option<Self> {
        let mut images = Self::new(height, width);
        let row_len = images.pixels().div_ceil(8);
        let unused = (row_len * 8 - images.pixels()) as u32;
        let rows = bytes.chunks_exact(row_len);
        if !rows.remainder().is_empty() {
            return None;
        }
        images.words.reserve_exact(rows.len() * images.stride());
        for row in rows {
            let last = row.last().expect("images have pixels");
            if last.leading_zeros() < unused {
                return None;
            }
            images.words.extend(row.chunks(8).map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }));
        }
        Some(images)
    }

    /// Appends an image, given by its pixels.
    pub fn push(&mut self, mut pixel: impl FnMut(usize) -> bool) {
        let pixels = self.pixels();
        for first in (0..pixels).step_by(64) {
            let word = (first..pixels.min(first + 64))
                .map(|p| u64::from(pixel(p)) << (p - first))
                .fold(0, |word, bit| word | bit);
            self.words.push(word);
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
        self.words.extend_from_slice(&other.words);
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.words.len() / self.stride()
    }

    /// Whether there are no images.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
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

    /// The 64-bit words of an image.
    fn stride(&self) -> usize {
        self.pixels().div_ceil(64)
    }

    /// The packed bits of an image.
    ///
    /// # Panics
    ///
    /// If there is no such image.
    pub fn words(&self, image: usize) -> &[u64] {
        &self.words[image * self.stride()..][..self.stride()]
    }

    /// The pixels of an image that are one, in ascending order: for code that adds up the columns of
    /// a matrix instead of multiplying by zeros and ones.
    ///
    /// # Panics
    ///
    /// If there is no such image.
    pub fn ones(&self, image: usize) -> impl Iterator<Item = usize> + '_ {
        self.words(image)
            .iter()
            .enumerate()
            .flat_map(|(index, &word)| {
                let remaining = |word: &u64| (*word != 0).then_some(*word);
                std::iter::successors(remaining(&word), move |word| {
                    remaining(&(word & (word - 1)))
                })
                .map(move |word| index * 64 + word.trailing_zeros() as usize)
            })
    }

    /// How many pixels of these images are one.
    ///
    /// # Panics
    ///
    /// If there are no such images.
    pub fn count_ones(&self, images: std::ops::Range<usize>) -> u64 {
        images
            .flat_map(|image| self.words(image))
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// Writes the images `indices` to `out` as 0.0 and 1.0, one after the other.
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
            for (&word, out) in self.words(image).iter().zip(out.chunks_mut(64)) {
                for (bit, x) in out.iter_mut().enumerate() {
                    *x = (word >> bit & 1) as f32;
                }
            }
        }
    }

    /// All images as bytes, each beginning with a new byte: the form that checksums are of.
    pub fn to_bytes(&self) -> Vec<u8> {
        let row = self.pixels().div_ceil(8);
        let mut bytes = Vec::with_capacity(self.len() * row);
        for image in self.words.chunks_exact(self.stride()) {
            let end = bytes.len() + row;
            bytes.extend(image.iter().flat_map(|word| word.to_le_bytes()));
            bytes.truncate(end);
        }
        bytes
    }
}

impl fmt::Debug for BitImages {
    /// The sizes: the bits themselves are of no use in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "BitImages({} of {}x{})",
            self.len(),
            self.height,
            self.width
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bits_after_the_last_pixel_are_refused() {
        assert!(BitImages::from_bytes(1, 3, &[0b111]).is_some());
        assert!(BitImages::from_bytes(1, 3, &[0b1000]).is_none());
        assert!(BitImages::from_bytes(3, 3, &[0, 1, 0]).is_none());
        assert!(BitImages::from_bytes(2, 4, &[0xff]).is_some());
    }

    proptest! {
        #[test]
        fn every_view_shows_the_same_pixels(
            (height, width, pixels) in (1usize..12, 1usize..12).prop_flat_map(|(h, w)| {
                let image = prop::collection::vec(any::<bool>(), h * w);
                (Just(h), Just(w), prop::collection::vec(image, 0..5))
            })
        ) {
            let mut images = BitImages::new(height, width);
            for image in &pixels {
                images.push(|p| image[p]);
            }
            prop_assert_eq!(images.len(), pixels.len());

            let mut expanded = vec![f32::NAN; pixels.len() * height * width];
            let all: Vec<usize> = (0..pixels.len()).collect();
            images.expand(&all, &mut expanded);
            let flat: Vec<f32> = pixels.iter().flatten().map(|&b| f32::from(u8::from(b))).collect();
            prop_assert_eq!(expanded, flat);

            for (index, image) in pixels.iter().enumerate() {
                let ones: Vec<usize> = (0..image.len()).filter(|&p| image[p]).collect();
                prop_assert_eq!(images.count_ones(index..index + 1), ones.len() as u64);
                prop_assert_eq!(images.ones(index).collect::<Vec<_>>(), ones);
            }
            let bytes = images.to_bytes();
            prop_assert_eq!(BitImages::from_bytes(height, width, &bytes), Some(images));
        }
    }
}
