//! The comparison of a relaxation with a scalar formula, for given noise.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::NoiseLaw;
use straightflow::prelude::*;

use crate::support::{assert_close, tensor, values};

pub fn build(spec: &str) -> Box<dyn Estimator> {
    let spec: Spec = spec.parse().expect("a specification");
    spec.build()
        .unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// A cost that is not a sum over coordinates, not symmetric and not a quadratic: `sin w + w^2 / 2`
/// with `w = sum_i c_i z_i`.
fn coefficient(i: usize) -> f64 {
    0.9 - 0.4 * i as f64
}

pub fn cost(z: Tensor<4>) -> Tensor<2> {
    let [_, _, d, k] = z.dims();
    let coefficients: Vec<f64> = (0..d * k).map(coefficient).collect();
    let w = (z.clone() * tensor::<4>(&coefficients, [1, 1, d, k], z.dtype())).sum_dims(&[2, 3]);
    (w.clone().sin() + w.square() * 0.5).squeeze_dims(&[2, 3])
}

fn slope(w: f64) -> f64 {
    w.cos() + w
}

/// What a scalar formula says of one variable for given noise: the sample, and for each natural
/// parameter the derivative of each entry of the sample.
pub struct Scalar {
    pub z: Vec<f64>,
    /// `jacobian[l][i] = d z_i / d natural_l`, as the backward pass pretends it to be.
    pub jacobian: Vec<Vec<f64>>,
}

/// `(diag y - y y^T) / scale`.
pub fn softmax_jacobian(y: &[f64], scale: f64) -> Vec<Vec<f64>> {
    let entry = |l: usize, i: usize| y[i] * (f64::from(u8::from(i == l)) - y[l]) / scale;
    let row = |l| (0..y.len()).map(|i| entry(l, i)).collect();
    (0..y.len()).map(row).collect()
}

pub fn scalar_softmax(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    x.iter().map(|x| (x - largest).exp() / total).collect()
}

pub fn scalar_sigmoid(x: f64) -> f64 {
    scalar_softmax(&[x, 0.0])[0]
}

pub fn one_hot(k: usize, chosen: usize) -> Vec<f64> {
    (0..k).map(|i| f64::from(u8::from(i == chosen))).collect()
}

pub fn largest(x: &[f64]) -> usize {
    (0..x.len()).fold(0, |best, i| if x[i] > x[best] { i } else { best })
}

pub fn gumbel(u: f64) -> f64 {
    -(-u.ln()).ln()
}

/// Compares samples and gradients of two draws with a scalar formula of (natural parameters of a
/// variable, its numbers of each noise tensor), in double and in single precision.
pub fn compare(
    spec: &str,
    family: Family,
    natural: &[f64],
    dims: [usize; 3],
    scalar: impl Fn(&[f64], &[Vec<f64>]) -> Scalar,
) {
    let estimator = build(spec);
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-6)] {
        for seed in 0..4 {
            let [batch, d, k] = dims;
            let n = 2;
            let law = Law::new(family, tensor(natural, dims, dtype)).expect("valid");
            let specs = estimator.noise(&law, n);
            let noise: Vec<Tensor<4>> = specs
                .iter()
                .zip(0..)
                .map(|(spec, index)| {
                    let key = Key::new(seed).child(index);
                    match spec.law {
                        NoiseLaw::Samples => law.sample(key, n),
                        NoiseLaw::Weight => unreachable!("no relaxation takes it"),
                        NoiseLaw::Uniform => {
                            key.uniform(spec.shape, &law.natural().device(), dtype)
                        }
                    }
                })
                .collect();
            let q = law.clone();
            let estimate = estimator.estimate(noise.clone(), &q, cost);
            let samples = values(estimate.expect("valid").samples[0].clone());
            let got = estimator.gradient(noise.clone(), &q, cost);
            let got = values(got.expect("valid"));

            let numbers: Vec<Vec<f64>> = noise.into_iter().map(values).collect();
            let rounded = values(law.natural());
            let mut z = Vec::new();
            let mut want = vec![0.0; got.len()];
            for draw in 0..n {
                for element in 0..batch {
                    let variables: Vec<Scalar> = (0..d)
                        .map(|j| {
                            let own = |all: &[f64], row: usize, size: usize| {
                                all[row * size..(row + 1) * size].to_vec()
                            };
                            let row = (draw * batch + element) * d + j;
                            let noise: Vec<Vec<f64>> = numbers
                                .iter()
                                .zip(&specs)
                                .map(|(all, spec)| own(all, row, spec.shape[3]))
                                .collect();
                            scalar(&own(&rounded, element * d + j, k), &noise)
                        })
                        .collect();
                    let flat: Vec<f64> = variables.iter().flat_map(|v| v.z.clone()).collect();
                    let terms = flat.iter().enumerate().map(|(i, z)| coefficient(i) * z);
                    let slope = slope(terms.sum());
                    for (j, variable) in variables.iter().enumerate() {
                        for (l, row) in variable.jacobian.iter().enumerate() {
                            let along = row
                                .iter()
                                .enumerate()
                                .map(|(i, x)| coefficient(j * k + i) * x);
                            want[(element * d + j) * k + l] +=
                                slope * along.sum::<f64>() / n as f64;
                        }
                    }
                    z.extend(flat);
                }
            }
            let what = format!("{spec} {family:?} {dtype:?} seed {seed}");
            assert_close(&format!("{what} samples"), &samples, &z, tolerance);
            assert_close(&format!("{what} gradient"), &got, &want, tolerance);
            assert!(want.iter().any(|g| g.abs() > 1e-3), "{what}: {want:?}");
        }
    }
}
