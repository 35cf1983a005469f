//! Which images train, validate and test.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{Error, Result};

/// A part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// What a model is fitted to.
    Train,
    /// What choices are made on.
    Validation,
    /// What is reported in the end.
    Test,
}

impl Split {
    /// All splits.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        })
    }
}

/// How the images outside of the test set are divided into training and validation images.
///
/// The test set is fixed by the files. Text forms are `first-5000` and `last-10000`.
///
/// ```
/// use straightflow_data::{Partition, Split};
///
/// // MNIST: 60,000 images and 10,000 test images after them.
/// let range = |partition: Partition, split| partition.range(60_000, 10_000, split);
/// assert_eq!(range(Partition::TRAIN_55K, Split::Train)?, 5_000..60_000);
/// assert_eq!(range(Partition::TRAIN_55K, Split::Validation)?, 0..5_000);
/// assert_eq!(range(Partition::TRAIN_50K, Split::Train)?, 0..50_000);
/// assert_eq!(range(Partition::TRAIN_50K, Split::Validation)?, 50_000..60_000);
/// assert_eq!(range(Partition::TRAIN_50K, Split::Test)?, 60_000..70_000);
/// assert_eq!("first-5000".parse::<Partition>()?, Partition::TRAIN_55K);
/// # Ok::<(), straightflow_data::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Partition {
    /// The first images validate, the others train.
    ValidateFirst(usize),
    /// The last images validate, the others train.
    ValidateLast(usize),
}

impl Partition {
    /// 55,000 / 5,000 / 10,000 images of MNIST: the first 5,000 validate.
    pub const TRAIN_55K: Self = Self::ValidateFirst(5_000);
    /// 50,000 / 10,000 / 10,000 images of MNIST: the last 10,000 before the test set validate.
    pub const TRAIN_50K: Self = Self::ValidateLast(10_000);

    /// The images of a split, where `images` images to train and validate on are followed by `test`
    /// images of the test set.
    ///
    /// # Errors
    ///
    /// If no image is left to train on.
    pub fn range(self, images: usize, test: usize, split: Split) -> Result<Range<usize>> {
        let (Self::ValidateFirst(validation) | Self::ValidateLast(validation)) = self;
        if validation >= images {
            return Err(Error::Partition { validation, images });
        }
        Ok(match (split, self) {
            (Split::Test, _) => images..images + test,
            (Split::Train, Self::ValidateFirst(n)) => n..images,
            (Split::Train, Self::ValidateLast(n)) => 0..images - n,
            (Split::Validation, Self::ValidateFirst(n)) => 0..n,
            (Split::Validation, Self::ValidateLast(n)) => images - n..images,
        })
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ValidateFirst(n) => write!(f, "first-{n}"),
            Self::ValidateLast(n) => write!(f, "last-{n}"),
        }
    }
}

impl FromStr for Partition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = |prefix| text.strip_prefix(prefix)?.parse().ok();
        None.or_else(|| parse("first-").map(Self::ValidateFirst))
            .or_else(|| parse("last-").map(Self::ValidateLast))
            .ok_or_else(|| Error::PartitionText {
                text: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn splits_cover_everything_once(images in 1usize..100, test in 0usize..20, n in 0usize..120) {
            for partition in [Partition::ValidateFirst(n), Partition::ValidateLast(n)] {
                prop_assert_eq!(partition.to_string().parse::<Partition>().unwrap(), partition);
                let ranges = Split::ALL.map(|split| partition.range(images, test, split));
                if n >= images {
                    for range in ranges {
                        let refused = matches!(range, Err(Error::Partition { validation, images: i })
                            if (validation, i) == (n, images));
                        prop_assert!(refused);
                    }
                    continue;
                }
                let mut all: Vec<usize> = ranges.into_iter().flat_map(Result::unwrap).collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..images + test).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "first",
            "first-",
            "last-x",
            "5000",
            "first--1",
            "middle-10",
        ] {
            let error = text.parse::<Partition>().unwrap_err();
            assert!(matches!(error, Error::PartitionText { text: t } if t == text));
        }
    }
}
