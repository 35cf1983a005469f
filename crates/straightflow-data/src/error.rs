//! Everything that can be wrong with a file, a directory or a request, one variant for each.

use std::path::{Path, PathBuf};

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was wrong, with the file or directory it was wrong with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory could not be read.
    #[error("{} cannot be read: {problem}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        problem: std::io::Error,
    },

    /// A file does not hold what its name promises.
    #[error("{} {problem}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with its contents.
        problem: FormatError,
    },

    /// The images of a set differ in size between two of its files.
    #[error(
        "{} has images of {}x{} pixels, but those of the training file have {}x{}",
        path.display(), found.0, found.1, expected.0, expected.1
    )]
    ImageSize {
        /// The file whose images differ.
        path: PathBuf,
        /// Their height and width.
        found: (usize, usize),
        /// Height and width of the training images.
        expected: (usize, usize),
    },

    /// A file of labels does not belong to its file of images.
    #[error("{} has {labels} labels for {images} images", path.display())]
    LabelCount {
        /// The file of labels.
        path: PathBuf,
        /// How many it holds.
        labels: usize,
        /// How many images there are.
        images: usize,
    },

    /// A directory lacks a file of the set that it holds, or holds no set.
    #[error("{} holds no {missing}", directory.display())]
    Missing {
        /// The directory.
        directory: PathBuf,
        /// What was looked for.
        missing: String,
    },

    /// A directory holds more than one set, so that one would have to be guessed.
    #[error("{} holds both {first} and {second}: leave only one set in a directory", directory.display())]
    Ambiguous {
        /// The directory.
        directory: PathBuf,
        /// A file of one set.
        first: String,
        /// A file of another set.
        second: String,
    },

    /// The embedded data is not what the maker wrote.
    #[error("this build is damaged: the embedded {what} has SHA-256 {found} instead of {expected}")]
    Checksum {
        /// Which part of the embedded data.
        what: &'static str,
        /// The checksum of the unpacked data as the maker printed it.
        expected: String,
        /// The checksum of the data that was unpacked.
        found: String,
    },

    /// The embedded data cannot be unpacked.
    #[error("this build is damaged: the embedded {what} cannot be unpacked, it {problem}")]
    Embedded {
        /// Which part of the embedded data.
        what: &'static str,
        /// What is wrong with it.
        problem: FormatError,
    },

    /// A partition asks for more validation images than the training images leave.
    #[error(
        "{validation} validation images are too many: there are {images} images outside the test set, and at least one must be left to train on"
    )]
    Partition {
        /// The images to validate on.
        validation: usize,
        /// The images that are to be divided.
        images: usize,
    },

    /// Text that names no partition.
    #[error("'{text}' is not a split: write first-N or last-N, such as first-5000 or last-10000")]
    PartitionText {
        /// The text as it was given.
        text: String,
    },
}

impl Error {
    pub(crate) fn unreadable(path: &Path, problem: std::io::Error) -> Self {
        let path = path.to_owned();
        Self::Unreadable { path, problem }
    }

    pub(crate) fn format(path: &Path, problem: FormatError) -> Self {
        let path = path.to_owned();
        Self::Format { path, problem }
    }
}

/// What is wrong with the contents of a file. The texts continue a sentence that begins with the
/// name of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The first four bytes are those of another kind of file.
    #[error("is not an IDX file of {kind}: it begins with {found:02x?} instead of {expected:02x?}")]
    WrongMagic {
        /// What was to be read.
        kind: &'static str,
        /// The four bytes that such a file begins with.
        expected: [u8; 4],
        /// What the file begins with.
        found: [u8; 4],
    },

    /// The file ends too early.
    #[error("is truncated: {found} of {expected} bytes (unpacked) are there")]
    Truncated {
        /// The bytes that the header announces, or those of the header itself.
        expected: u64,
        /// The bytes that are there.
        found: u64,
    },

    /// The file goes on after its last image or label.
    #[error("has more than the {expected} bytes (unpacked) that its header announces")]
    TrailingBytes {
        /// The bytes that the header announces.
        expected: u64,
    },

    /// The file has no images or labels, or images without pixels.
    #[error("is empty: its header announces the dimensions {dimensions:?}")]
    Empty {
        /// The dimensions of the header.
        dimensions: Vec<u32>,
    },

    /// The file is larger than this crate reads into memory.
    #[error("is too large: more than {limit} bytes (unpacked)")]
    TooLarge {
        /// The largest size that is read.
        limit: u64,
    },

    /// The file is compressed, but its compressed data is damaged or cut.
    #[error("is a damaged gzip file ({reason})")]
    Gzip {
        /// What the decompressor said.
        reason: String,
    },

    /// A binary MATLAB file, which also goes by the name `.amat`.
    #[error(
        "is a binary MATLAB file, not .amat text: save its matrix as text, one image per line \
         (in Octave: `load` it, then `save -ascii`), or use the text files of Larochelle"
    )]
    Matlab,

    /// A line of an `.amat` file has too few or too many numbers.
    #[error("has {found} numbers in line {line} instead of {expected}")]
    LineLength {
        /// The line, counted from 1.
        line: usize,
        /// The numbers in it.
        found: usize,
        /// The pixels of an image.
        expected: usize,
    },

    /// A number of an `.amat` file is no binary pixel.
    #[error("has '{text}' in line {line}, where a 0 or a 1 belongs")]
    NotBinary {
        /// The line, counted from 1.
        line: usize,
        /// What stands there, shortened.
        text: String,
    },

    /// A text file without images.
    #[error("has no line with numbers")]
    NoLines,
}
