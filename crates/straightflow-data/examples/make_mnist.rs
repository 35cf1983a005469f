//! Makes the embedded MNIST from the standard IDX files.
//!
//! ```sh
//! cargo run --release -p straightflow-data --example make_mnist -- DIR [OUT]
//! ```
//!
//! reads the four IDX files of MNIST in `DIR` (plain or gzipped), writes the three files of the
//! directory `data` of this crate to `OUT`, and prints their checksums and the facts that the tests
//! assert. Without `OUT` it only prints. Written twice, the files have the same bytes.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use flate2::{Compression, GzBuilder};
use straightflow_data::mnist::{self, Binarisation};
use straightflow_data::{Images, Partition, Split, directory, sha256};

/// The unpacked contents of the four files as LeCun, Cortes and Burges published them: images and
/// labels, the training set before the test set.
const PUBLISHED_IMAGES: &str = "5b92582eb909c82a9bfefcd44acbe9233be3eb5b419a44cf211022ad2bf4bf96";
const PUBLISHED_LABELS: &str = "671ff9d70b4811116d55c3dd479efa7a981e2e62753ef7a6d5c15fea81e63d27";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (input, output) = match arguments.as_slice() {
        [input] => (input, None),
        [input, output] => (input, Some(Path::new(output))),
        _ => return Err("usage: make_mnist DIR [OUT]".into()),
    };
    let data = directory::load(Path::new(input))?;
    let (Images::Grey(images), Some(labels)) = (data.images(), data.labels()) else {
        return Err("the four IDX files of MNIST are needed, labels included".into());
    };
    for (what, found, expected) in [
        ("images", data.sha256(), PUBLISHED_IMAGES),
        ("labels", sha256(labels), PUBLISHED_LABELS),
    ] {
        if found != expected {
            return Err(format!("these {what} are not those of MNIST: SHA-256 {found}").into());
        }
    }

    write(output, mnist::LABELS_FILE, labels)?;
    for binarisation in Binarisation::ALL {
        let bits = binarisation.apply(images);
        write(output, binarisation.file(), &bits.to_bytes())?;
        for partition in [Partition::TRAIN_55K, Partition::TRAIN_50K] {
            for split in Split::ALL {
                let range = data.range(partition, split)?;
                let ones = bits.count_ones(range.clone());
                let mean = ones as f64 / (range.len() * bits.pixels()) as f64;
                println!("  {partition:10} {split:10} {range:?}: {ones} ones, mean {mean:.6}");
            }
        }
    }
    Ok(())
}

/// Writes a file, if there is a directory to write it to, and prints its sizes and checksum.
fn write(output: Option<&Path>, name: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    // No name and no time in the header, so that the same contents give the same file.
    let mut encoder = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    let packed = encoder.finish()?;
    println!(
        "{name}: {} bytes, {} packed, SHA-256 {}",
        bytes.len(),
        packed.len(),
        sha256(bytes)
    );
    if let Some(directory) = output {
        std::fs::write(directory.join(name), packed)?;
    }
    Ok(())
}
