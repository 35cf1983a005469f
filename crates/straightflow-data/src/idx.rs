//! IDX, the format of MNIST: a magic number, the dimensions, the bytes.
//!
//! ```text
//! images:  00 00 08 03, count, rows, columns (32 bits each, most significant byte first), pixels
//! labels:  00 00 08 01, count, labels
//! ```
//!
//! Files may be gzipped; their contents decide, not their names. The size of a file is compared with
//! its header before anything is allocated for the pixels.
//!
//! ```
//! use straightflow_data::{FormatError, GreyImages, idx};
//!
//! let images = GreyImages::new(2, 2, vec![0, 1, 2, 3, 4, 5, 6, 7]);
//! let mut file = idx::encode_images(&images);
//! assert_eq!(idx::decode_images(&file)?, images);
//!
//! file.pop();
//! let truncated = FormatError::Truncated { expected: 24, found: 23 };
//! assert_eq!(idx::decode_images(&file), Err(truncated));
//! # Ok::<(), FormatError>(())
//! ```

use std::path::Path;

use crate::error::{Error, FormatError, Result};
use crate::grey::GreyImages;
use crate::inflate;

const IMAGES: Kind<3> = Kind {
    name: "images",
    magic: [0, 0, 8, 3],
};
const LABELS: Kind<1> = Kind {
    name: "labels",
    magic: [0, 0, 8, 1],
};

/// Reads a file of images, plain or gzipped.
///
/// # Errors
///
/// If the file cannot be read, or as [`decode_images`]; with the name of the file.
pub fn read_images(path: &Path) -> Result<GreyImages> {
    decode_images(&inflate::read(path)?).map_err(|e| Error::format(path, e))
}

/// Reads a file of labels, plain or gzipped.
///
/// # Errors
///
/// If the file cannot be read, or as [`decode_labels`]; with the name of the file.
pub fn read_labels(path: &Path) -> Result<Vec<u8>> {
    decode_labels(&inflate::read(path)?).map_err(|e| Error::format(path, e))
}

/// The images of a file that is given by its bytes, plain or gzipped.
///
/// # Errors
///
/// If the bytes begin with another magic number, are too few or too many for the dimensions in the
/// header, or hold no image or images without pixels; if they are damaged gzip data; if the images
/// have more than 2^30 bytes.
pub fn decode_images(bytes: &[u8]) -> Result<GreyImages, FormatError> {
    let ([_, height, width], pixels) = IMAGES.decode(bytes)?;
    Ok(GreyImages::new(height as usize, width as usize, pixels))
}

/// The labels of a file that is given by its bytes, plain or gzipped.
///
/// # Errors
///
/// As [`decode_images`].
pub fn decode_labels(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    Ok(LABELS.decode(bytes)?.1)
}

/// The bytes of an IDX file with these images.
///
/// # Panics
///
/// If a dimension does not fit into 32 bits.
pub fn encode_images(images: &GreyImages) -> Vec<u8> {
    let dimensions = [images.len(), images.height(), images.width()];
    let pixels = images.as_bytes().iter().copied();
    IMAGES.header(dimensions).chain(pixels).collect()
}

/// The bytes of an IDX file with these labels.
///
/// # Panics
///
/// If there are 2^32 labels or more.
pub fn encode_labels(labels: &[u8]) -> Vec<u8> {
    let header = LABELS.header([labels.len()]);
    header.chain(labels.iter().copied()).collect()
}

/// A kind of IDX file, with `D` dimensions.
struct Kind<const D: usize> {
    name: &'static str,
    magic: [u8; 4],
}

impl<const D: usize> Kind<D> {
    fn header(&self, dimensions: [usize; D]) -> impl Iterator<Item = u8> {
        let word = |n| {
            u32::try_from(n)
                .expect("dimensions of 32 bits")
                .to_be_bytes()
        };
        self.magic
            .into_iter()
            .chain(dimensions.into_iter().flat_map(word))
    }

    /// The dimensions and what follows them.
    fn decode(&self, bytes: &[u8]) -> Result<([u32; D], Vec<u8>), FormatError> {
        let header_len = 4 + 4 * D as u64;
        let header = inflate::prefix(bytes, header_len)?;
        let (words, _) = header.as_chunks::<4>();
        let (expected, kind) = (self.magic, self.name);
        match words.first() {
            Some(&found) if found != expected => {
                return Err(FormatError::WrongMagic {
                    kind,
                    expected,
                    found,
                });
            }
            _ => {}
        }
        let truncated = |expected, found: usize| {
            let found = found as u64;
            FormatError::Truncated { expected, found }
        };
        let dimensions: [u32; D] = match words {
            [_, rest @ ..] if rest.len() == D => {
                std::array::from_fn(|d| u32::from_be_bytes(rest[d]))
            }
            _ => return Err(truncated(header_len, header.len())),
        };
        if dimensions.contains(&0) {
            let dimensions = dimensions.to_vec();
            return Err(FormatError::Empty { dimensions });
        }
        let expected = dimensions
            .iter()
            .try_fold(1u64, |product, &d| product.checked_mul(u64::from(d)))
            .map(|payload| payload.saturating_add(header_len))
            .filter(|&size| size <= inflate::LIMIT)
            .ok_or(FormatError::TooLarge {
                limit: inflate::LIMIT,
            })?;

        // One byte more than announced tells whether there is more.
        let all = inflate::prefix(bytes, expected + 1)?;
        match (all.len() as u64).cmp(&expected) {
            std::cmp::Ordering::Less => Err(truncated(expected, all.len())),
            std::cmp::Ordering::Greater => Err(FormatError::TrailingBytes { expected }),
            std::cmp::Ordering::Equal => {
                let mut payload = all.into_owned();
                payload.drain(..header_len as usize);
                Ok((dimensions, payload))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(dimensions: [u32; 3]) -> Vec<u8> {
        let words = dimensions.into_iter().flat_map(u32::to_be_bytes);
        [0, 0, 8, 3].into_iter().chain(words).collect()
    }

    #[test]
    fn other_kinds_of_files_are_refused() {
        let labels = encode_labels(&[1, 2, 3]);
        let expected = [0, 0, 8, 3];
        let found = [0, 0, 8, 1];
        let kind = "images";
        let error = FormatError::WrongMagic {
            kind,
            expected,
            found,
        };
        assert_eq!(decode_images(&labels), Err(error));
        assert_eq!(decode_labels(&labels), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn a_header_that_lies_is_refused_before_anything_is_allocated() {
        let limit = 1 << 30;
        for dimensions in [[u32::MAX; 3], [1 << 20, 1 << 10, 1]] {
            let error = Err(FormatError::TooLarge { limit });
            assert_eq!(decode_images(&header(dimensions)), error, "{dimensions:?}");
        }
        let error = FormatError::Truncated {
            expected: 16 + 1_000_000_000,
            found: 16,
        };
        assert_eq!(decode_images(&header([1_000_000, 1000, 1])), Err(error));
    }

    #[test]
    fn empty_sets_are_refused() {
        for dimensions in [[0, 28, 28], [1, 0, 28], [1, 28, 0]] {
            let error = FormatError::Empty {
                dimensions: dimensions.to_vec(),
            };
            assert_eq!(decode_images(&header(dimensions)), Err(error));
        }
    }

    #[test]
    fn cut_and_lengthened_files_are_refused() {
        let file = encode_images(&GreyImages::new(1, 2, vec![1, 2, 3, 4]));
        for len in 0..file.len() {
            let expected = if len < 16 { 16 } else { 20 };
            let found = len as u64;
            let error = FormatError::Truncated { expected, found };
            assert_eq!(decode_images(&file[..len]), Err(error));
        }
        let longer = [file, vec![0]].concat();
        let error = FormatError::TrailingBytes { expected: 20 };
        assert_eq!(decode_images(&longer), Err(error));
    }
}
