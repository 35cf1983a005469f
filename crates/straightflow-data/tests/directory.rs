//! Directories with whole sets, parts of sets, several sets and wrong files.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use straightflow_data::{
    Error, FormatError, GreyImages, Images, Partition, Split, amat, directory, idx,
};

/// A directory with these files.
fn with(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (name, bytes) in files {
        std::fs::write(directory.path().join(name), bytes).expect("a writable directory");
    }
    directory
}

fn load(files: &[(&str, Vec<u8>)]) -> Result<straightflow_data::Dataset, Error> {
    directory::load(with(files).path())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory is writable");
    encoder.finish().expect("memory is writable")
}

fn images(first: u8, count: u8) -> Vec<u8> {
    let pixels = (0..count * 4).map(|p| first + p).collect();
    idx::encode_images(&GreyImages::new(2, 2, pixels))
}

fn digits(count: usize) -> Vec<u8> {
    let grey = GreyImages::new(28, 28, (0..784 * count).map(|p| (p % 256) as u8).collect());
    amat::encode(&grey.threshold(127))
}

#[test]
fn idx_files_under_all_their_names() {
    let (train, test) = (images(0, 3), images(100, 2));
    for (train_name, test_name) in [
        ("train-images-idx3-ubyte", "t10k-images-idx3-ubyte"),
        ("train-images.idx3-ubyte", "t10k-images.idx3-ubyte.gz"),
        ("train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"),
        (
            "emnist-letters-train-images-idx3-ubyte",
            "emnist-letters-test-images-idx3-ubyte.gz",
        ),
    ] {
        // The contents decide what is unpacked: the first is plain and the second gzipped, whatever
        // their names say.
        let data = load(&[(train_name, train.clone()), (test_name, gzip(&test))]).unwrap();
        assert_eq!((data.len(), data.test_len(), data.pixels()), (5, 2, 4));
        assert_eq!((data.labels(), data.partition()), (None, None));
        let Images::Grey(images) = data.images() else {
            panic!("IDX files are greyscale");
        };
        assert_eq!(images.image(2), [8, 9, 10, 11]);
        assert_eq!(images.image(3), [100, 101, 102, 103]);
    }
}

#[test]
fn labels_come_with_their_images() {
    let train = ("train-images-idx3-ubyte", images(0, 3));
    let test = ("t10k-images-idx3-ubyte", images(0, 2));
    let train_labels = ("train-labels-idx1-ubyte", idx::encode_labels(&[7, 8, 9]));
    let test_labels = (
        "t10k-labels-idx1-ubyte.gz",
        gzip(&idx::encode_labels(&[1, 2])),
    );
    let all = [
        train.clone(),
        test.clone(),
        train_labels.clone(),
        test_labels,
    ];
    assert_eq!(load(&all).unwrap().labels(), Some(&[7, 8, 9, 1, 2][..]));

    let error = load(&[train.clone(), test.clone(), train_labels.clone()]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("holds no t10k-labels-idx1-ubyte"),
        "{error}"
    );

    let wrong = ("t10k-labels-idx1-ubyte", idx::encode_labels(&[1, 2, 3]));
    let error = load(&[train, test, train_labels, wrong]).unwrap_err();
    assert!(
        matches!(
            error,
            Error::LabelCount {
                labels: 3,
                images: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn amat_files_keep_their_partition() {
    let data = load(&[
        ("binarized_mnist_train.amat", digits(3)),
        ("binarized_mnist_valid.amat", digits(2)),
        ("binarized_mnist_test.amat", digits(1)),
    ])
    .unwrap();
    assert_eq!((data.len(), data.test_len(), data.pixels()), (6, 1, 784));
    let partition = data.partition().unwrap();
    assert_eq!(partition, Partition::ValidateLast(2));
    assert_eq!(data.range(partition, Split::Train).unwrap(), 0..3);
    assert_eq!(data.range(partition, Split::Validation).unwrap(), 3..5);
    let too_small = data.range(Partition::TRAIN_50K, Split::Train);
    assert!(matches!(
        too_small,
        Err(Error::Partition {
            validation: 10_000,
            images: 5
        })
    ));
}

#[test]
fn what_is_missing_is_named() {
    let nothing = load(&[("readme.txt", vec![])]).unwrap_err().to_string();
    assert!(
        nothing.contains("neither train-images-idx3-ubyte nor binarized_mnist_train.amat"),
        "{nothing}"
    );

    let no_test = load(&[("train-images-idx3-ubyte", images(0, 3))])
        .unwrap_err()
        .to_string();
    assert!(
        no_test.ends_with("holds no t10k-images-idx3-ubyte, plain or with .gz"),
        "{no_test}"
    );

    let no_train = load(&[("emnist-mnist-test-images-idx3-ubyte.gz", vec![])])
        .unwrap_err()
        .to_string();
    assert!(
        no_train.contains("holds no emnist-mnist-train-images-idx3-ubyte"),
        "{no_train}"
    );

    let files = [
        ("binarized_mnist_train.amat", digits(1)),
        ("binarized_mnist_test.amat", digits(1)),
    ];
    let no_validation = load(&files).unwrap_err().to_string();
    assert!(
        no_validation.contains("holds no binarized_mnist_valid.amat"),
        "{no_validation}"
    );

    let error = directory::load(Path::new("no such directory")).unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }), "{error}");
}

#[test]
fn nothing_is_guessed_between_two_sets() {
    for second in [
        "binarized_mnist_train.amat",
        "emnist-digits-train-images-idx3-ubyte",
    ] {
        let error = load(&[("train-images-idx3-ubyte", vec![]), (second, vec![])]).unwrap_err();
        assert!(matches!(error, Error::Ambiguous { .. }), "{error}");
    }
}

#[test]
fn wrong_files_are_named() {
    let train = ("train-images-idx3-ubyte", images(0, 3));
    let with_test = |bytes| load(&[train.clone(), ("t10k-images-idx3-ubyte", bytes)]).unwrap_err();

    let mut cut = images(0, 2);
    cut.pop();
    let error = with_test(cut);
    let Error::Format { path, problem } = &error else {
        panic!("{error}");
    };
    assert!(path.ends_with("t10k-images-idx3-ubyte"));
    assert_eq!(
        *problem,
        FormatError::Truncated {
            expected: 24,
            found: 23
        }
    );

    let error = with_test(idx::encode_labels(&[1]));
    assert!(
        matches!(
            error,
            Error::Format {
                problem: FormatError::WrongMagic { .. },
                ..
            }
        ),
        "{error}"
    );

    let error = with_test(idx::encode_images(&GreyImages::new(1, 4, vec![0; 8])));
    assert!(
        matches!(
            error,
            Error::ImageSize {
                found: (1, 4),
                expected: (2, 2),
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_matlab_file_under_the_name_of_text_is_told_apart() {
    let header = b"MATLAB 5.0 MAT-file, Platform: GLNXA64".to_vec();
    let files = AMAT_NAMES.map(|name| (name, header.clone()));
    let error = load(&files).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Format {
                problem: FormatError::Matlab,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("binarized_mnist_train.amat is a binary MATLAB file"),
        "{error}"
    );
}

const AMAT_NAMES: [&str; 3] = [
    "binarized_mnist_train.amat",
    "binarized_mnist_valid.amat",
    "binarized_mnist_test.amat",
];
