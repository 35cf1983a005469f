//! The embedded MNIST: what is known about it, and what its maker printed.

use straightflow_data::mnist::{self, Binarisation};
use straightflow_data::{BitImages, Dataset, Images, Partition, Split, directory, sha256};

fn bits(data: &Dataset) -> &BitImages {
    match data.images() {
        Images::Binary(images) => images,
        Images::Grey(_) => panic!("the embedded sets are binary"),
    }
}

/// Ones in the three splits of both partitions, as `make_mnist` prints them.
#[test]
fn splits_have_their_ones() {
    for (binarisation, expected) in [
        (
            Binarisation::Threshold,
            [
                [5_705_137, 516_294, 1_052_359],
                [5_196_441, 1_024_990, 1_052_359],
            ],
        ),
        (
            Binarisation::Stochastic,
            [
                [5_635_348, 510_475, 1_038_626],
                [5_134_065, 1_011_758, 1_038_626],
            ],
        ),
    ] {
        let data = mnist::load(binarisation).unwrap();
        assert_eq!((data.height(), data.width()), (28, 28));
        let ones = [Partition::TRAIN_55K, Partition::TRAIN_50K].map(|partition| {
            Split::ALL.map(|split| bits(&data).count_ones(data.range(partition, split).unwrap()))
        });
        assert_eq!(ones, expected, "{binarisation}");
    }
}

#[test]
fn splits_have_their_sizes() {
    let data = mnist::load(Binarisation::Threshold).unwrap();
    let sizes = |partition| Split::ALL.map(|split| data.range(partition, split).unwrap().len());
    assert_eq!(sizes(Partition::TRAIN_55K), [55_000, 5_000, 10_000]);
    assert_eq!(sizes(Partition::TRAIN_50K), [50_000, 10_000, 10_000]);
}

/// The mean of the 60,000 greyscale images is 33.3184 of 255, their standard deviation 78.5675, as is
/// well known. So the number of ones has mean N m and variance N (m - m^2 - s^2) with N = 60,000 * 784,
/// m = 33.3184 / 255 and s = 78.5675 / 255. Five standard deviations: a false alarm once in 10^6 seeds.
#[test]
fn the_stochastic_set_has_the_mean_of_the_greyscale_images() {
    let data = mnist::load(Binarisation::Stochastic).unwrap();
    let ones = bits(&data).count_ones(0..mnist::TRAIN) as f64;
    let pixels = (mnist::TRAIN * data.pixels()) as f64;
    let (mean, deviation) = (33.318_421 / 255.0, 78.567_490 / 255.0);
    let sd = (pixels * (mean - mean * mean - deviation * deviation)).sqrt();
    assert!(
        (ones - pixels * mean).abs() < 5.0 * sd,
        "{ones} {} {sd}",
        pixels * mean
    );
}

/// The sets differ at the edges of strokes only, so an image is much closer to its own other version
/// than to that of its neighbour, unless the two happen to be the same stroke.
#[test]
fn the_two_binarisations_are_of_the_same_images() {
    let [threshold, stochastic] = Binarisation::ALL.map(|b| mnist::load(b).unwrap());
    assert_eq!(threshold.labels(), stochastic.labels());
    let distance = |i, j| -> u32 {
        let pairs = bits(&threshold)
            .words(i)
            .iter()
            .zip(bits(&stochastic).words(j));
        pairs.map(|(a, b)| (a ^ b).count_ones()).sum()
    };
    let len = threshold.len();
    let strangers = (0..len).filter(|&i| distance(i, i) >= distance(i, (i + 1) % len));
    assert!(strangers.count() < len / 1000);
}

/// The published numbers of images of each digit.
#[test]
fn labels_have_their_counts() {
    let data = mnist::load(Binarisation::Threshold).unwrap();
    let count = |labels: &[u8]| {
        let mut counts = [0; 10];
        labels
            .iter()
            .for_each(|&label| counts[usize::from(label)] += 1);
        counts
    };
    let (train, test) = data.labels().unwrap().split_at(mnist::TRAIN);
    let train_counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949];
    assert_eq!(count(train), train_counts);
    let test_counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009];
    assert_eq!(count(test), test_counts);
}

/// The set under its own checksum: what is unpacked for use is what was verified.
#[test]
fn checksums_are_those_of_the_images() {
    for binarisation in Binarisation::ALL {
        let data = mnist::load(binarisation).unwrap();
        assert_eq!(data.sha256(), binarisation.sha256());
    }
}

#[test]
fn the_readme_has_the_checksums() {
    let readme = include_str!("../README.md");
    for binarisation in Binarisation::ALL {
        assert!(readme.contains(&format!("`data/{}`", binarisation.file())));
        assert!(readme.contains(&format!("`{}`", binarisation.sha256())));
    }
    let data = mnist::load(Binarisation::Threshold).unwrap();
    assert!(readme.contains(&sha256(data.labels().unwrap())));
}

/// `STRAIGHTFLOW_MNIST_IDX=DIR cargo test --release -p straightflow-data -- --ignored`
#[test]
#[ignore = "needs the IDX files of MNIST in the directory STRAIGHTFLOW_MNIST_IDX"]
fn the_idx_files_give_the_embedded_bits() {
    let directory =
        std::env::var_os("STRAIGHTFLOW_MNIST_IDX").expect("STRAIGHTFLOW_MNIST_IDX is set");
    let data = directory::load(directory.as_ref()).unwrap();
    let Images::Grey(images) = data.images() else {
        panic!("IDX files are greyscale");
    };
    for binarisation in Binarisation::ALL {
        let embedded = mnist::load(binarisation).unwrap();
        assert_eq!(bits(&embedded), &binarisation.apply(images));
        assert_eq!(embedded.labels(), data.labels());
    }
}
