//! Batch elements do not influence each other: splitting a batch, with the same noise, changes
//! nothing.

use burn::tensor::{DType, Tensor};
use straightflow::Key;
use straightflow::distribution::Law;
use straightflow::estimator::{Noise, NoiseSpec};

use crate::device::tolerance;
use crate::gradients::{error, gradient_from_noise, tensor};
use crate::product::Product;
use crate::subject::{Failure, Subject};

/// Vectorised functions may round differently at the end of a buffer.
const TOLERANCE: f64 = 1e-12;
const BATCH: usize = 8;

pub fn batch(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        let product = Product::of(kind);
        let fail = |found: String| subject.failure("batch", &product, found);
        // No two elements have the same parameters.
        let [_, d, k] = product.law(1, DType::F64).dims();
        let natural = crate::gradients::to_vec(product.law(BATCH, DType::F64).natural());
        let shifted = natural.iter().enumerate().map(|(i, x)| {
            let element = (i / (d * k)) as f64;
            x + 0.1 * element * (i as f64 * 0.7).sin()
        });
        let mut natural = tensor(shifted.collect(), [BATCH, d, k], DType::F64);
        let family = product.factors[0].family;
        let estimator = subject.estimator();
        let layout = |natural: Tensor<3>| -> Vec<[usize; 3]> {
            let law = Law::new(family, natural).expect("valid parameters");
            let specs = estimator.noise(&law, estimator.draws());
            let shape = |spec: &NoiseSpec| [spec.shape[0], spec.shape[2], spec.shape[3]];
            specs.iter().map(shape).collect()
        };
        let half = BATCH / 2;
        let parts = [0, half].map(|start| layout(natural.clone().narrow(0, start, half)));
        if parts.iter().any(|part| *part != layout(natural.clone())) {
            // The amount of noise follows the largest parameter; equal ones make it comparable.
            natural = product.law(BATCH, DType::F64).natural();
        }
        let law = |start: usize, len: usize| {
            Law::new(family, natural.clone().narrow(0, start, len)).expect("valid parameters")
        };
        let specs = estimator.noise(&law(0, BATCH), estimator.draws());
        let noise = Noise::draw(Key::new(8), &law(0, BATCH), &specs);
        let noise: Vec<Tensor<4>> = (0..specs.len()).map(|i| noise.get(i)).collect();
        if noise.iter().any(|noise| noise.dims()[1] != BATCH) {
            return Err(fail("noise that is not [.., batch, .., ..]".to_owned()));
        }
        let cost = |z| product.cost(z);
        let part = |start: usize, len: usize| {
            let noise = noise
                .iter()
                .map(|noise| noise.clone().narrow(1, start, len));
            let estimator = subject.estimator();
            gradient_from_noise(estimator.as_ref(), noise.collect(), &law(start, len), &cost)
                .map_err(|error| fail(error.to_string()))
        };
        let whole = part(0, BATCH)?;
        let halves = [part(0, half)?, part(half, half)?].concat();
        let gap = error(&halves, &whole);
        if gap > tolerance(TOLERANCE) {
            return Err(fail(format!(
                "two halves differ from the whole by {gap:.1e}"
            )));
        }
    }
    Ok(())
}
