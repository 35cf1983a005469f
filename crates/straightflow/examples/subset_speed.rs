//! How long straight-through of a large subset takes: 64 of 4,096 items for a batch of 32.
//!
//! ```text
//! RAYON_NUM_THREADS=1 taskset -c 1 cargo run --release -p straightflow --example subset_speed
//! ```

use std::time::{Duration, Instant};

use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const BATCH: usize = 32;
const ITEMS: usize = 4_096;
const SIZE: u32 = 64;
const RUNS: u64 = 21;

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() -> Result<()> {
    let device = Device::flex().autodiff();
    let shape = [BATCH, 1, ITEMS];
    let [logits, weights, draws] = Key::new(1).split();
    let numbers = |key: Key| -> Tensor<3> {
        Tensor::from_inner(key.uniform(shape, &device, DType::F32) * 6.0 - 3.0)
    };
    let (logits, weights) = (numbers(logits).require_grad(), numbers(weights));
    let estimator = estimator("straight-through")?;
    let (mut forward, mut both) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let start = Instant::now();
        let q = Subset::from_logits(SIZE, logits.clone())?;
        let z = estimator.draw(draws.child(run), &q)?;
        forward.push(start.elapsed());
        let grads = (z * weights.clone()).sum().backward();
        let gradient = logits.grad(&grads).expect("the logits are on the tape");
        both.push(start.elapsed());
        let largest: f32 = gradient.abs().max().into_scalar();
        assert!(largest.is_finite() && largest > 0.0);
    }
    println!("{SIZE} of {ITEMS} items, batch {BATCH}, median of {RUNS} runs");
    println!("forward                {:6.1} ms", median(forward));
    println!("forward and backward   {:6.1} ms", median(both));
    Ok(())
}
