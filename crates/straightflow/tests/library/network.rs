//! Through a real network: the gradient of the first weights is `J^T g`.

use burn::module::Param;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::prelude::*;

use crate::support::values;

const INPUTS: usize = 4;
const HIDDEN: usize = 3;
const BATCH: usize = 5;
const COORDINATES: usize = 2;
const DRAWS: usize = 3;

/// The weights and inputs of one case, in `f64` but representable in `f32`.
struct Case {
    first: Vec<f64>,
    second: Vec<f64>,
    inputs: Vec<f64>,
}

fn numbers(seed: u64, count: usize) -> Vec<f64> {
    let mut values = vec![0.0f32; count];
    Key::new(seed).fill_uniform_f32(&mut values);
    values.iter().map(|x| f64::from(x * 1.6 - 0.8)).collect()
}

/// The network by hand: `tanh(x W1) W2`.
fn forward(case: &Case, first: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; BATCH * COORDINATES];
    for b in 0..BATCH {
        for h in 0..HIDDEN {
            let sum: f64 = (0..INPUTS)
                .map(|i| case.inputs[b * INPUTS + i] * first[i * HIDDEN + h])
                .sum();
            for j in 0..COORDINATES {
                out[b * COORDINATES + j] += sum.tanh() * case.second[h * COORDINATES + j];
            }
        }
    }
    out
}

fn layer(weights: &[f64], shape: [usize; 2], dtype: DType, device: &Device) -> Linear {
    let mut layer = LinearConfig::new(shape[0], shape[1])
        .with_bias(false)
        .init(device);
    let data = TensorData::new(weights.to_vec(), shape);
    layer.weight = Param::from_tensor(Tensor::from_data(data, (device, dtype)));
    layer
}

/// The cost `sum_j sin(1.3 z_j + 0.2 j)` and its derivative.
fn slope(z: f64, j: usize) -> f64 {
    1.3 * (1.3 * z + 0.2 * j as f64).cos()
}

fn check<D: Distribution<Samples = Tensor<3>>>(
    what: &str,
    distribution: impl Fn(Tensor<2>) -> D,
    chain_factor: impl Fn(f64) -> f64,
) {
    for (dtype, tolerance) in [(DType::F32, 1e-3), (DType::F64, 1e-7)] {
        let case = Case {
            first: numbers(1, INPUTS * HIDDEN),
            second: numbers(2, HIDDEN * COORDINATES),
            inputs: numbers(3, BATCH * INPUTS),
        };
        let device = Device::flex().autodiff();
        let first = layer(&case.first, [INPUTS, HIDDEN], dtype, &device);
        let second = layer(&case.second, [HIDDEN, COORDINATES], dtype, &device);
        let data = TensorData::new(case.inputs.clone(), [BATCH, INPUTS]);
        let x = Tensor::<2>::from_data(data, (&device, dtype));
        let q = distribution(second.forward(first.forward(x).tanh()));

        let st = StraightThroughConfig { samples: DRAWS }
            .init()
            .expect("valid");
        let estimate = st.estimate(Key::new(4), &q, |z| {
            let phase = TensorData::new(vec![0.0, 0.2], [1, 1, COORDINATES]);
            let phase = Tensor::<3>::from_data(phase, (&device, dtype));
            (z * 1.3 + phase).sin().sum_dim(2)
        });
        let estimate = estimate.expect("valid");
        let z = values(estimate.samples[0].clone());
        let grads = estimate.surrogate.backward();
        let got = values(first.weight.val().grad(&grads).expect("gradient"));

        // g by the scalar formula, J by differences of the network by hand.
        let natural = forward(&case, &case.first);
        let g: Vec<f64> = (0..BATCH * COORDINATES)
            .map(|i| {
                let draws = (0..DRAWS).map(|n| z[n * BATCH * COORDINATES + i]);
                let sum: f64 = draws.map(|z| slope(z, i % COORDINATES)).sum();
                chain_factor(natural[i]) * sum / (DRAWS * BATCH) as f64
            })
            .collect();
        let want = pull_back(&case, &g);
        let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(size > 1e-3, "{what}: the gradient vanishes");
        let gaps = got.iter().zip(&want).map(|(a, b)| (a - b).abs());
        let error = gaps.fold(0.0, f64::max) / size;
        assert!(
            error < tolerance,
            "{what} {dtype:?}: {error:.1e}\n{got:?}\n{want:?}"
        );
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn bernoulli() {
    check(
        "bernoulli",
        |x| Bernoulli::from_logits(x).expect("valid"),
        |x| sigmoid(x) * (1.0 - sigmoid(x)),
    );
}

#[test]
fn poisson() {
    check(
        "poisson",
        |x| Poisson::from_log_rates(x).expect("valid"),
        f64::exp,
    );
}

/// The means go through a softplus: one more link of the chain.
#[test]
fn poisson_by_rates() {
    check(
        "poisson by rates",
        |x| Poisson::from_rates(burn::tensor::activation::softplus(x, 1.0)).expect("valid"),
        sigmoid,
    );
}

#[test]
fn binomial() {
    check(
        "binomial",
        |x| Binomial::from_logits(6, x).expect("valid"),
        |x| 6.0 * sigmoid(x) * (1.0 - sigmoid(x)),
    );
}

#[test]
fn negative_binomial() {
    check(
        "negative binomial",
        |x| NegativeBinomial::from_log_means(2.5, x).expect("valid"),
        f64::exp,
    );
}

/// One-hot variables: the chain factor is the Jacobian of the softmax. With two categories and logits
/// `(x, 0)` the network's outputs are those of the other tests.
#[test]
fn categorical() {
    for (dtype, tolerance) in [(DType::F32, 1e-3), (DType::F64, 1e-7)] {
        let case = Case {
            first: numbers(1, INPUTS * HIDDEN),
            second: numbers(2, HIDDEN * COORDINATES),
            inputs: numbers(3, BATCH * INPUTS),
        };
        let device = Device::flex().autodiff();
        let first = layer(&case.first, [INPUTS, HIDDEN], dtype, &device);
        let second = layer(&case.second, [HIDDEN, COORDINATES], dtype, &device);
        let data = TensorData::new(case.inputs.clone(), [BATCH, INPUTS]);
        let x = Tensor::<2>::from_data(data, (&device, dtype));
        let one = second
            .forward(first.forward(x).tanh())
            .unsqueeze_dim::<3>(2);
        let logits = Tensor::cat(vec![one.clone(), one * 0.0], 2);
        let q = Categorical::from_logits(logits).expect("valid");
        let st = StraightThroughConfig { samples: DRAWS }
            .init()
            .expect("valid");
        let estimate = st.estimate(Key::new(4), &q, |z| {
            // sin(1.3 z_1) + 0.5 z_1 z_2 of the two entries of each one-hot vector.
            let [a, b] = [0, 1].map(|i| z.clone().narrow(3, i, 1).squeeze_dim::<3>(3));
            ((a.clone() * 1.3).sin() + a * b * 0.5).sum_dim(2)
        });
        let estimate = estimate.expect("valid");
        let z = values(estimate.samples[0].clone());
        let grads = estimate.surrogate.backward();
        let got = values(first.weight.val().grad(&grads).expect("gradient"));

        let natural = forward(&case, &case.first);
        let size = BATCH * COORDINATES;
        let g: Vec<f64> = (0..size)
            .map(|i| {
                let p = sigmoid(natural[i]);
                let draws = (0..DRAWS).map(|n| (z[2 * (n * size + i)], z[2 * (n * size + i) + 1]));
                // p (1 - p) (f_a - f_b): the first row of the softmax's Jacobian.
                let sum: f64 = draws
                    .map(|(a, b)| 1.3 * (1.3 * a).cos() + 0.5 * b - 0.5 * a)
                    .sum();
                p * (1.0 - p) * sum / (DRAWS * BATCH) as f64
            })
            .collect();
        let want = pull_back(&case, &g);
        let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        assert!(size > 1e-3, "the gradient vanishes");
        let gaps = got.iter().zip(&want).map(|(a, b)| (a - b).abs());
        let error = gaps.fold(0.0, f64::max) / size;
        assert!(error < tolerance, "{dtype:?}: {error:.1e}");
    }
}

/// `J^T g` for the first weights, with `J` by differences of the network by hand.
fn pull_back(case: &Case, g: &[f64]) -> Vec<f64> {
    (0..case.first.len())
        .map(|w| {
            let moved = |by: f64| {
                let mut first = case.first.clone();
                first[w] += by;
                forward(case, &first)
            };
            let (up, down) = (moved(1e-5), moved(-1e-5));
            let column = up.iter().zip(&down).map(|(a, b)| (a - b) / 2e-5);
            column.zip(g).map(|(j, g)| j * g).sum()
        })
        .collect()
}
