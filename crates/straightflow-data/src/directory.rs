//! A set of images from a directory, found by the names of its files.
//!
//! | set | files, each plain or with `.gz` |
//! |---|---|
//! | MNIST, Fashion-MNIST, KMNIST | `train-images-idx3-ubyte`, `t10k-images-idx3-ubyte` |
//! | EMNIST | `emnist-NAME-train-images-idx3-ubyte`, `emnist-NAME-test-images-idx3-ubyte` |
//! | static binarised MNIST | `binarized_mnist_train.amat`, `binarized_mnist_valid.amat`, `binarized_mnist_test.amat` |
//!
//! A dot in the place of the last hyphen but one (`train-images.idx3-ubyte`) is understood as well. If a
//! file is there plain and gzipped, the plain one is read. The labels of IDX sets
//! (`train-labels-idx1-ubyte` and so on) are read if they are there. The images of EMNIST are stored
//! transposed, and stay so.
//!
//! ```no_run
//! use std::path::Path;
//! use straightflow_data::{Partition, Split, directory};
//!
//! let data = directory::load(Path::new("fashion-mnist"))?;
//! let train = data.range(Partition::TRAIN_55K, Split::Train)?;
//! let mut x = vec![0.0; data.pixels()];
//! // The bits of the first training image in an epoch whose seed is this.
//! data.binary_batch([3; 32], &[train.start], &mut x);
//! # Ok::<(), straightflow_data::Error>(())
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::dataset::{Dataset, Images};
use crate::error::{Error, Result};
use crate::partition::Partition;
use crate::{amat, idx, mnist};

const AMAT: [&str; 3] = ["train", "valid", "test"];

/// Reads the set that a directory holds.
///
/// Images of IDX files stay greyscale ([`Dataset::threshold`] and [`Dataset::binary_batch`] make them
/// binary). Those of `.amat` files are binary, and [`Dataset::partition`] says which ones came from
/// the validation file.
///
/// # Errors
///
/// If the directory cannot be read, holds no set, more than one, or a part of one; if a file does not
/// hold what its name promises; if images of the files differ in size or in number from their labels.
pub fn load(directory: &Path) -> Result<Dataset> {
    let listing = Listing::new(directory)?;
    match listing.sets().as_slice() {
        [] => Err(listing.missing(
            "image set: neither train-images-idx3-ubyte nor binarized_mnist_train.amat is there, \
             plain or with .gz",
        )),
        [Set::Idx { train, test }] => load_idx(&listing, train, test),
        [Set::Amat] => load_amat(&listing),
        [first, second, ..] => Err(Error::Ambiguous {
            directory: directory.to_owned(),
            first: first.to_string(),
            second: second.to_string(),
        }),
    }
}

fn load_idx(listing: &Listing, train: &str, test: &str) -> Result<Dataset> {
    let images = |prefix| listing.require(&idx_names(prefix, "images", 3));
    let (train_path, test_path) = (images(train)?, images(test)?);
    let mut images = idx::read_images(&train_path)?;
    let test_images = idx::read_images(&test_path)?;
    let expected = (images.height(), images.width());
    let found = (test_images.height(), test_images.width());
    if found != expected {
        let path = test_path;
        return Err(Error::ImageSize {
            path,
            found,
            expected,
        });
    }
    let labels = [(train, images.len()), (test, test_images.len())];
    images.append(&test_images);
    let set = Dataset::new("idx", Images::Grey(images), test_images.len());

    let names = labels.map(|(prefix, _)| idx_names(prefix, "labels", 1));
    if names.iter().all(|names| listing.find(names).is_none()) {
        return Ok(set);
    }
    let mut all = Vec::new();
    for ((_, images), names) in labels.into_iter().zip(&names) {
        let path = listing.require(names)?;
        let labels = idx::read_labels(&path)?;
        if labels.len() != images {
            let labels = labels.len();
            return Err(Error::LabelCount {
                path,
                labels,
                images,
            });
        }
        all.extend(labels);
    }
    Ok(set.with_labels(all))
}

fn load_amat(listing: &Listing) -> Result<Dataset> {
    // All names first: reading takes seconds, a missing file should not.
    let mut paths = Vec::new();
    for part in AMAT {
        paths.push(listing.require(&[amat_name(part)])?);
    }
    let read = |path: &PathBuf| amat::read(path, mnist::SIDE, mnist::SIDE);
    let mut images = read(&paths[0])?;
    let (validation, test) = (read(&paths[1])?, read(&paths[2])?);
    images.append(&validation);
    images.append(&test);
    let set = Dataset::new("amat", Images::Binary(images), test.len());
    Ok(set.with_partition(Partition::ValidateLast(validation.len())))
}

/// The names that a part of an IDX set goes by.
fn idx_names(prefix: &str, kind: &str, dimensions: usize) -> [String; 2] {
    [
        format!("{prefix}-{kind}-idx{dimensions}-ubyte"),
        format!("{prefix}-{kind}.idx{dimensions}-ubyte"),
    ]
}

fn amat_name(part: &str) -> String {
    format!("binarized_mnist_{part}.amat")
}

/// A set of which at least one file is there.
enum Set {
    Idx { train: String, test: String },
    Amat,
}

impl std::fmt::Display for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Idx { train, .. } => write!(f, "the set of {train}-images-idx3-ubyte"),
            Self::Amat => write!(f, "the set of {}", amat_name(AMAT[0])),
        }
    }
}

/// The names in a directory.
struct Listing {
    directory: PathBuf,
    names: BTreeSet<String>,
}

impl Listing {
    fn new(directory: &Path) -> Result<Self> {
        let unreadable = |e| Error::unreadable(directory, e);
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            // Names that are not Unicode are none of those looked for.
            names.extend(entry.map_err(unreadable)?.file_name().into_string());
        }
        let directory = directory.to_owned();
        Ok(Self { directory, names })
    }

    /// The sets that begin here.
    fn sets(&self) -> Vec<Set> {
        let emnist: BTreeSet<&str> = self.names.iter().filter_map(|name| emnist(name)).collect();
        let mut pairs = vec![("train".to_owned(), "t10k".to_owned())];
        pairs.extend(emnist.into_iter().map(|name| {
            (
                format!("emnist-{name}-train"),
                format!("emnist-{name}-test"),
            )
        }));
        let here = |prefix: &str| self.find(&idx_names(prefix, "images", 3)).is_some();
        let mut sets: Vec<Set> = pairs
            .into_iter()
            .filter(|(train, test)| here(train) || here(test))
            .map(|(train, test)| Set::Idx { train, test })
            .collect();
        if AMAT
            .iter()
            .any(|part| self.find(&[amat_name(part)]).is_some())
        {
            sets.push(Set::Amat);
        }
        sets
    }

    /// The file that has one of the names, plain or with `.gz`.
    fn find(&self, names: &[String]) -> Option<PathBuf> {
        let forms = names
            .iter()
            .flat_map(|name| [name.clone(), format!("{name}.gz")]);
        let found = forms.into_iter().find(|name| self.names.contains(name))?;
        Some(self.directory.join(found))
    }

    fn require(&self, names: &[String]) -> Result<PathBuf> {
        let missing = || self.missing(&format!("{}, plain or with .gz", names[0]));
        self.find(names).ok_or_else(missing)
    }

    fn missing(&self, missing: &str) -> Error {
        let (directory, missing) = (self.directory.clone(), missing.to_owned());
        Error::Missing { directory, missing }
    }
}

/// The `NAME` of `emnist-NAME-train-images..` and `emnist-NAME-test-images..`.
fn emnist(file: &str) -> Option<&str> {
    let (prefix, _) = file.strip_prefix("emnist-")?.split_once("-images")?;
    prefix
        .strip_suffix("-train")
        .or_else(|| prefix.strip_suffix("-test"))
}
