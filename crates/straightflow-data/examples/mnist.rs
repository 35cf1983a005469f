//! Loads the embedded MNIST, shows a few digits and prints how long it took.
//!
//! ```sh
//! cargo run --release -p straightflow-data --example mnist
//! ```

use std::time::Instant;

use straightflow_data::mnist::{self, Binarisation};
use straightflow_data::{Batches, Images, Partition, Split};

fn main() -> Result<(), straightflow_data::Error> {
    for binarisation in Binarisation::ALL {
        let start = Instant::now();
        let data = mnist::load(binarisation)?;
        let loading = start.elapsed();

        let train = data.range(Partition::TRAIN_55K, Split::Train)?;
        let batches = Batches::new([1; 32], train, 25);
        let mut x = vec![0.0; 25 * data.pixels()];
        let start = Instant::now();
        for images in batches.epoch(0).batches_from(0) {
            data.batch(images, &mut x);
        }
        let epoch = start.elapsed();
        println!(
            "{}: {} images, loaded and verified in {loading:.0?}; the batches of an epoch in {epoch:.0?}",
            data.name(),
            data.len()
        );
        assert!(x.iter().all(|&pixel| pixel == 0.0 || pixel == 1.0));
        show(&data, &[0, 1, 2]);
    }
    Ok(())
}

/// Prints images side by side.
fn show(data: &straightflow_data::Dataset, indices: &[usize]) {
    let (Images::Binary(images), Some(labels)) = (data.images(), data.labels()) else {
        unreachable!("the embedded sets are binary and have labels");
    };
    for &image in indices {
        print!("{:<29}", labels[image]);
    }
    println!();
    for row in 0..images.height() {
        for &image in indices {
            let mut line = vec!['.'; images.width()];
            for pixel in images.ones(image).filter(|p| p / images.width() == row) {
                line[pixel % images.width()] = '#';
            }
            print!("{} ", line.into_iter().collect::<String>());
        }
        println!();
    }
}
