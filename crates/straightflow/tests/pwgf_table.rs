//! The table of the weights of `pwgf`, which `f32` uses, beside the sums that `f64` uses.

use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::prelude::*;

const DRAWS: usize = 6;

/// Samples, and the gradients of a linear loss with respect to the natural parameters.
fn gradients(spec: &str, family: &str, natural: &[f32], dtype: DType) -> (Vec<f64>, Vec<f64>) {
    let device = Device::flex().autodiff();
    let shape = [natural.len() / 10, 10];
    let data = TensorData::new(natural.to_vec(), shape);
    let leaf = Tensor::<2>::from_data(data, (&device, dtype)).require_grad();
    let estimator = estimator(spec).expect("a specification");
    let weights = Key::new(9).uniform::<3>([DRAWS, shape[0], 10], &device, DType::F32) - 0.3;
    let weights = weights.cast(dtype);
    let key = Key::new(4);
    let z = match family {
        "poisson" => {
            let q = Poisson::from_log_rates(leaf.clone()).expect("rates");
            estimator.sample(key, &q, DRAWS)
        }
        _ => {
            let q = NegativeBinomial::from_log_means(0.7, leaf.clone()).expect("means");
            estimator.sample(key, &q, DRAWS)
        }
    };
    let z = z.expect("samples");
    let samples = z.clone().inner().into_data_dtype(DType::F64);
    let grads = (z * weights).sum().backward();
    let gradient = leaf.grad(&grads).expect("a gradient");
    let gradient = gradient.into_data_dtype(DType::F64);
    (
        samples.try_into_vec().expect("f64"),
        gradient.try_into_vec().expect("f64"),
    )
}

#[test]
fn the_table_agrees_with_the_sums_from_small_to_large_rates() {
    // Rates from 1e-5 to 8e5, none of them a knot of the table.
    let natural: Vec<f32> = (0..250).map(|i| -11.5 + 0.1003 * i as f32).collect();
    for family in ["poisson", "negative-binomial"] {
        for spec in ["pwgf", "pwgf:gain=projection", "pwgf:bandwidth=1sd"] {
            let (z, table) = gradients(spec, family, &natural, DType::F32);
            let (same, sums) = gradients(spec, family, &natural, DType::F64);
            let single = |z: &[f64]| -> Vec<f32> { z.iter().map(|z| *z as f32).collect() };
            assert!(
                single(&z) == single(&same),
                "{family}, {spec}: other samples"
            );
            let mut worst = 0.0f64;
            for ((natural, table), sums) in natural.iter().zip(table).zip(sums) {
                // A weight of one and slopes of about a third for each draw.
                let size = f64::from(*natural).exp() * DRAWS as f64 * 0.3;
                worst = worst.max((table - sums).abs() / size);
            }
            println!("{family}, {spec}: {worst:e}");
            assert!(worst < 2e-6, "{family}, {spec}: {worst:e}");
        }
    }
}
