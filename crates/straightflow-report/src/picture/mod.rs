//! Greyscale images side by side, as one PNG file.
//!
//! ```
//! use straightflow_report::picture::Picture;
//!
//! // Two rows of three images of two by two pixels: the second shows the first inverted.
//! let images: Vec<f32> = [0.0, 1.0, 1.0, 0.0].repeat(3);
//! let inverted: Vec<f32> = images.iter().map(|intensity| 1.0 - intensity).collect();
//!
//! let mut picture = Picture::new(2, 2)?;
//! picture.push_row(&images)?;
//! picture.push_row(&inverted)?;
//! let bytes = picture.png(4)?;
//! assert!(bytes.starts_with(b"\x89PNG"));
//! # Ok::<(), straightflow_report::picture::PictureError>(())
//! ```

mod png;

pub(crate) use png::SIGNATURE;

/// The largest picture, in pixels. A page with larger ones is not read any more.
const MAX_PIXELS: usize = 1 << 24;

/// Between the images and in the place of those that a short row lacks: neither black nor white, so
/// that the border of an image is seen.
const BETWEEN: u8 = 0x70;

/// Pixels between two images, before the picture is enlarged.
const GAP: usize = 1;

/// Why there is no picture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PictureError {
    /// An image has no pixels.
    #[error("images of {height} by {width} pixels have nothing to show")]
    NoPixels {
        /// The height of an image.
        height: usize,
        /// The width of an image.
        width: usize,
    },
    /// The intensities of a row are not those of whole images.
    #[error("{length} intensities are not a row of images of {height} by {width} pixels")]
    PartOfAnImage {
        /// The number of intensities.
        length: usize,
        /// The height of an image.
        height: usize,
        /// The width of an image.
        width: usize,
    },
    /// There are no rows.
    #[error("a picture needs at least one row of images")]
    NoRows,
    /// Every pixel was to become a square without extent.
    #[error("a picture cannot be enlarged by a factor of 0")]
    NoScale,
    /// The picture has too many pixels.
    #[error(
        "{columns} by {rows} images of {width} by {height} pixels, enlarged by {scale}, are more than \
         the {MAX_PIXELS} pixels of a picture"
    )]
    TooLarge {
        /// The images of the longest row.
        columns: usize,
        /// The rows of images.
        rows: usize,
        /// The width of an image.
        width: usize,
        /// The height of an image.
        height: usize,
        /// The factor.
        scale: usize,
    },
}

/// Rows of greyscale images of one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    height: usize,
    width: usize,
    /// The pixels of each row's images, one image after the other.
    rows: Vec<Vec<u8>>,
}

impl Picture {
    /// A picture without rows, for images of this size.
    ///
    /// # Errors
    /// An image would have no pixels.
    pub fn new(height: usize, width: usize) -> Result<Self, PictureError> {
        if height == 0 || width == 0 {
            return Err(PictureError::NoPixels { height, width });
        }
        Ok(Self {
            height,
            width,
            rows: Vec::new(),
        })
    }

    /// Adds a row of images below the others: their intensities, 0 for black and 1 for white, one image
    /// after the other, each `[height, width]`. What is outside of this range is taken to its nearer
    /// end, and NaN is black. A row may have fewer images than others.
    ///
    /// # Errors
    /// The intensities are not those of at least one whole image.
    pub fn push_row(&mut self, images: &[f32]) -> Result<(), PictureError> {
        let whole = images
            .len()
            .checked_rem(self.height.saturating_mul(self.width))
            == Some(0);
        if images.is_empty() || !whole {
            return Err(PictureError::PartOfAnImage {
                length: images.len(),
                height: self.height,
                width: self.width,
            });
        }
        self.rows.push(images.iter().copied().map(grey).collect());
        Ok(())
    }

    /// The picture as a PNG file, each pixel of an image as a square of `scale` by `scale`. The same
    /// images give the same bytes.
    ///
    /// # Errors
    /// There are no rows, `scale` is zero, or the picture is too large.
    pub fn png(&self, scale: usize) -> Result<Vec<u8>, PictureError> {
        if scale == 0 {
            return Err(PictureError::NoScale);
        }
        let longest = self.rows.iter().map(Vec::len).max();
        let longest = longest.ok_or(PictureError::NoRows)?;
        // Does not overflow: there is a row that has at least one image.
        let image = self.height * self.width;
        let columns = longest / image;
        let too_large = || PictureError::TooLarge {
            columns,
            rows: self.rows.len(),
            width: self.width,
            height: self.height,
            scale,
        };
        let width = extent(columns, self.width, scale).ok_or_else(too_large)?;
        let height = extent(self.rows.len(), self.height, scale).ok_or_else(too_large)?;
        let size = width.checked_mul(height).ok_or_else(too_large)?;
        if size > MAX_PIXELS {
            return Err(too_large());
        }

        let mut pixels = vec![BETWEEN; size];
        for (row, images) in self.rows.iter().enumerate() {
            for (column, image) in images.chunks_exact(image).enumerate() {
                let top = row * (self.height + GAP) * scale;
                let left = column * (self.width + GAP) * scale;
                for (y, line) in image.chunks_exact(self.width).enumerate() {
                    let line: Vec<u8> = line
                        .iter()
                        .flat_map(|grey| std::iter::repeat_n(*grey, scale))
                        .collect();
                    for y in top + y * scale..top + (y + 1) * scale {
                        let start = y * width + left;
                        pixels[start..start + line.len()].copy_from_slice(&line);
                    }
                }
            }
        }
        Ok(png::encode(&pixels, width, height))
    }
}

/// The length of so many images with gaps between them.
fn extent(images: usize, length: usize, scale: usize) -> Option<usize> {
    let with_gaps = length.checked_add(GAP)?.checked_mul(images)? - GAP;
    with_gaps.checked_mul(scale)
}

/// A conversion to an integer takes NaN to zero.
fn grey(intensity: f32) -> u8 {
    (intensity.clamp(0.0, 1.0) * 255.0).round() as u8
}
