//! `.amat`, the text files of Larochelle: one image for each line, zeros and ones between blanks.
//!
//! Numbers may have any form (`1`, `1.0`, `1.0000000e+00`), as MATLAB and NumPy write them. Files may
//! be gzipped. Some copies of the binarised MNIST under the name `.amat` are binary MATLAB files; they
//! get an error of their own.
//!
//! ```
//! use straightflow_data::{FormatError, amat};
//!
//! let images = amat::decode(b"0 1 1\n1.000000e+00 0.000000e+00 0.0\n", 1, 3)?;
//! assert_eq!(images.ones(0).collect::<Vec<_>>(), [1, 2]);
//! assert_eq!(images.ones(1).collect::<Vec<_>>(), [0]);
//!
//! let error = FormatError::LineLength { line: 1, found: 2, expected: 3 };
//! assert_eq!(amat::decode(b"0 1\n", 1, 3), Err(error));
//! # Ok::<(), FormatError>(())
//! ```

use std::path::Path;

use crate::bits::BitImages;
use crate::error::{Error, FormatError, Result};
use crate::inflate;

/// Reads a file of binary images with `height` rows and `width` columns.
///
/// # Errors
///
/// If the file cannot be read, or as [`decode`]; with the name of the file.
///
/// # Panics
///
/// If an image would have no pixels.
pub fn read(path: &Path, height: usize, width: usize) -> Result<BitImages> {
    decode(&inflate::read(path)?, height, width).map_err(|e| Error::format(path, e))
}

/// The images of a file that is given by its bytes, plain or gzipped.
///
/// # Errors
///
/// If the bytes are those of a binary MATLAB file, a line does not have a number for each pixel, a
/// number is neither 0 nor 1, there is no line with numbers, or the bytes are damaged gzip data or
/// more than 2^30.
///
/// # Panics
///
/// If an image would have no pixels.
pub fn decode(bytes: &[u8], height: usize, width: usize) -> Result<BitImages, FormatError> {
    let text = inflate::whole(bytes)?;
    if text.starts_with(b"MATLAB ") {
        return Err(FormatError::Matlab);
    }
    let mut images = BitImages::new(height, width);
    let mut image = Vec::with_capacity(images.pixels().min(text.len()));
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let line_number = index + 1;
        image.clear();
        for token in line
            .split(u8::is_ascii_whitespace)
            .filter(|t| !t.is_empty())
        {
            image.push(pixel(token).ok_or_else(|| FormatError::NotBinary {
                line: line_number,
                text: shortened(token),
            })?);
        }
        // Blank lines are no images.
        if image.is_empty() {
            continue;
        }
        if image.len() != images.pixels() {
            return Err(FormatError::LineLength {
                line: line_number,
                found: image.len(),
                expected: images.pixels(),
            });
        }
        images.push(|p| image[p]);
    }
    if images.is_empty() {
        return Err(FormatError::NoLines);
    }
    Ok(images)
}

/// The text of an `.amat` file with these images.
pub fn encode(images: &BitImages) -> Vec<u8> {
    let mut text = Vec::with_capacity(2 * images.pixels() * images.len());
    for image in 0..images.len() {
        let words = images.words(image);
        for p in 0..images.pixels() {
            let digit = if words[p / 64] >> (p % 64) & 1 == 1 {
                b'1'
            } else {
                b'0'
            };
            text.extend([digit, b' ']);
        }
        // A line ends instead of going on after a blank.
        *text.last_mut().expect("images have pixels") = b'\n';
    }
    text
}

/// The pixel that a number stands for.
fn pixel(token: &[u8]) -> Option<bool> {
    match token {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => match std::str::from_utf8(token).ok()?.parse::<f64>().ok()? {
            0.0 => Some(false),
            1.0 => Some(true),
            _ => None,
        },
    }
}

/// Enough of a token to find it in the file.
fn shortened(token: &[u8]) -> String {
    const SHOWN: usize = 20;
    let text = String::from_utf8_lossy(&token[..token.len().min(SHOWN)]);
    let dots = if token.len() > SHOWN { ".." } else { "" };
    format!("{}{dots}", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matlab_files_have_their_own_error() {
        let header =
            b"MATLAB 5.0 MAT-file, Platform: PCWIN64, Created on: Sat Sep 01 2018   \0\x01IM";
        assert_eq!(decode(header, 28, 28), Err(FormatError::Matlab));
        assert!(FormatError::Matlab.to_string().contains("save -ascii"));
    }

    #[test]
    fn numbers_that_are_no_pixels_are_refused() {
        for text in ["2", "0.5", "-1", "nan", "inf", "1e", "x", "0,1"] {
            let file = format!("0 1\n\n1 {text}\n");
            let error = FormatError::NotBinary {
                line: 3,
                text: text.to_owned(),
            };
            assert_eq!(decode(file.as_bytes(), 1, 2), Err(error));
        }
        let long = "9".repeat(100);
        let error = FormatError::NotBinary {
            line: 1,
            text: format!("{}..", "9".repeat(20)),
        };
        assert_eq!(decode(long.as_bytes(), 1, 1), Err(error));
    }

    #[test]
    fn short_and_long_lines_are_refused() {
        for (text, found) in [("0 1\n1\n", 1), ("0 1\n1 0 1\n", 3)] {
            let error = FormatError::LineLength {
                line: 2,
                found,
                expected: 2,
            };
            assert_eq!(decode(text.as_bytes(), 1, 2), Err(error));
        }
    }

    #[test]
    fn line_ends_and_blanks_do_not_matter() {
        let images = decode(b"0 1\n1 1\n", 1, 2).unwrap();
        for text in [
            "0 1\r\n1 1\r\n",
            "  0\t1 \n\n1  1",
            "0e0 1.0\n1e+00 10e-1\n\n",
        ] {
            assert_eq!(decode(text.as_bytes(), 1, 2).unwrap(), images);
        }
    }

    #[test]
    fn files_without_images_are_refused() {
        for text in ["", "\n", " \r\n \n"] {
            assert_eq!(decode(text.as_bytes(), 1, 2), Err(FormatError::NoLines));
        }
    }
}
