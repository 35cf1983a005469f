//! What the host does for one training step, whatever the device: random numbers, samples and densities of
//! 50 images with 200 bits, 20 variables of 10 categories, or 200 counts.
//!
//! ```text
//! RAYON_NUM_THREADS=1 taskset -c 1 cargo run --release -p straightflow --example host_cost
//! ```

use std::time::Instant;

use burn::tensor::{DType, Device};
use straightflow::prelude::*;

const BATCH: usize = 50;
const BITS: usize = 200;
const VARIABLES: usize = 20;
const CATEGORIES: usize = 10;
const RUNS: u64 = 101;

/// The least time of a computation that takes a new key each time, in microseconds.
fn least(mut run: impl FnMut(Key)) -> f64 {
    let time = |key: u64| {
        let start = Instant::now();
        run(Key::new(key));
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..RUNS).map(time).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<()> {
    let device = Device::flex();
    let numbers =
        |shape: [usize; 2]| Key::new(1).uniform::<2>(shape, &device, DType::F32) * 4.0 - 2.0;
    let flat = numbers([BATCH, BITS]);
    let bits = Bernoulli::from_logits(flat.clone())?;
    let categories = flat.clone().reshape([BATCH, VARIABLES, CATEGORIES]);
    let categories = Categorical::from_logits(categories)?;
    let counts = Poisson::from_log_rates(flat.clone())?;
    let drawn = counts.sample(Key::new(2), 1);
    println!("microseconds for a batch of {BATCH}, least of {RUNS} runs");
    let row = |what: &str, time: f64| println!("{what:<28} {time:6.0}");
    row(
        "10,000 uniform numbers",
        least(|key| drop(key.uniform::<2>([BATCH, BITS], &device, DType::F32))),
    );
    row("10,000 bits", least(|key| drop(bits.sample(key, 1))));
    row(
        "1,000 categories of 10",
        least(|key| drop(categories.sample(key, 1))),
    );
    row("10,000 counts", least(|key| drop(counts.sample(key, 1))));
    row(
        "densities of 10,000 counts",
        least(|_| drop(counts.log_prob(drawn.clone()))),
    );
    row(
        "a look at 10,000 parameters",
        least(|_| drop(Bernoulli::from_logits(flat.clone()))),
    );
    Ok(())
}
