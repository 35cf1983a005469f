//! The price of the pWGF rule: nanoseconds per sample and element of one backward pass.
//!
//! ```text
//! RAYON_NUM_THREADS=1 taskset -c 0 cargo bench -p straightflow-conformance --bench pwgf_rule
//! ```
//!
//! The cases take turns, and the least time of each counts: a noisy machine only ever adds. The last
//! line is the ratio of the largest rate to the rate 5, which has to stay below 2.

use std::time::Instant;

use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const RATES: [f64; 5] = [1e-6, 0.5, 5.0, 1e3, 1e6];
const SPECS: [&str; 4] = [
    "straight-through",
    "second-order-st",
    "pwgf",
    "pwgf:preset=paper",
];
const DRAWS: usize = 10;
const BATCH: usize = 50;
const COORDINATES: usize = 40;
const ROUNDS: usize = 15;

/// Seconds for the gradient of a linear loss, without the sampling.
fn backward(pathwise: &dyn Pathwise, rate: f64, round: u64) -> f64 {
    let device = Device::flex().autodiff();
    let options = (&device, DType::F32);
    let log_rates = Tensor::<2>::full([BATCH, COORDINATES], rate.ln(), options).require_grad();
    let q = Poisson::from_log_rates(log_rates.clone()).expect("a valid rate");
    let z = pathwise
        .sample(Key::new(round), &q, DRAWS)
        .expect("a valid rate");
    let loss = (z * 1e-3).sum();
    let start = Instant::now();
    let gradients = loss.backward();
    assert!(log_rates.grad(&gradients).is_some());
    start.elapsed().as_secs_f64()
}

fn main() {
    let elements = (DRAWS * BATCH * COORDINATES) as f64;
    println!(
        "ns per sample and element, least of {ROUNDS}; [{DRAWS}, {BATCH}, {COORDINATES}], f32"
    );
    print!("{:20}", "rate");
    RATES.iter().for_each(|rate| print!("{rate:>10.0e}"));
    println!();
    for spec in SPECS {
        let estimator = spec.parse::<Spec>().and_then(|spec| spec.build());
        let estimator = estimator.expect("a valid specification");
        let pathwise = estimator.pathwise().expect("a drop-in");
        let mut least = [f64::INFINITY; RATES.len()];
        for round in 0..ROUNDS {
            for (least, rate) in least.iter_mut().zip(RATES) {
                *least = least.min(backward(pathwise, rate, round as u64));
            }
        }
        print!("{spec:20}");
        for seconds in least {
            print!("{:10.1}", seconds * 1e9 / elements);
        }
        println!("   rate 1e6 / rate 5: {:.2}", least[4] / least[2]);
    }
}
