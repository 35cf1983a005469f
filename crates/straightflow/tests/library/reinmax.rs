//! ReinMax against its published form, and the two rules that it equals.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::scalar_relaxation::{Scalar, build, compare, largest, scalar_softmax, softmax_jacobian};
use crate::support::{assert_close, laws, tensor, values};

/// `2 J(pi) - J(p) / 2` with `pi = (softmax(theta / tau) + z) / 2`.
fn jacobian(logits: &[f64], chosen: usize, temperature: f64) -> Vec<Vec<f64>> {
    let soft = scalar_softmax(&logits.iter().map(|t| t / temperature).collect::<Vec<_>>());
    let middle: Vec<f64> = (0..logits.len())
        .map(|i| (soft[i] + f64::from(u8::from(i == chosen))) / 2.0)
        .collect();
    let pairs = softmax_jacobian(&middle, 0.5)
        .into_iter()
        .zip(softmax_jacobian(&scalar_softmax(logits), 2.0));
    pairs
        .map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect())
        .collect()
}

#[test]
fn one_hot_vectors() {
    let natural: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for temperature in [1.0, 1.3, 4.0] {
        let spec = format!("reinmax:temperature={temperature}");
        compare(
            &spec,
            Family::Categorical,
            &natural,
            [2, 2, 3],
            |natural, noise| Scalar {
                z: noise[0].clone(),
                jacobian: jacobian(natural, largest(&noise[0]), temperature),
            },
        );
    }
}

/// A bit is the first of two categories with logits `(phi, 0)`.
#[test]
fn bits() {
    let natural = [0.3, -1.2, 0.8, 2.1];
    for temperature in [1.0, 1.3, 4.0] {
        let spec = format!("reinmax:temperature={temperature}");
        compare(
            &spec,
            Family::Bernoulli,
            &natural,
            [2, 2, 1],
            |natural, noise| {
                let z = noise[0][0];
                let full = jacobian(&[natural[0], 0.0], usize::from(z == 0.0), temperature);
                Scalar {
                    z: vec![z],
                    jacobian: vec![vec![full[0][0]]],
                }
            },
        );
    }
}

fn cost(z: Tensor<4>) -> Tensor<2> {
    let w = (z * 1.7 - 0.4).tanh().sum_dims(&[2, 3]);
    (w.clone().sin() + w.square()).squeeze_dims(&[2, 3])
}

/// At temperature 1 it is the second-order rule without baseline: the same code, the same bits.
#[test]
fn at_temperature_one_it_is_the_second_order_rule() {
    let (reinmax, second) = (
        build("reinmax:samples=3"),
        build("second-order-st:samples=3"),
    );
    for dtype in [DType::F32, DType::F64] {
        let both = |law: &Law| matches!(law.family(), Family::Bernoulli | Family::Categorical);
        for law in laws(dtype).into_iter().filter(both) {
            let noise = || vec![law.sample(Key::new(81), 3)];
            let q = law.clone();
            let of = |estimator: &dyn Estimator| {
                values(estimator.gradient(noise(), &q, cost).expect("valid"))
            };
            assert_eq!(of(&*reinmax), of(&*second), "{:?} {dtype:?}", law.family());
        }
    }
}

/// Two categories with logits `(phi, 0)` and a cost of the first are a bit, for the same samples.
#[test]
fn two_categories_are_a_bit() {
    let phi = [0.3, -1.2, 0.8, 2.1, -40.0, 40.0];
    let z = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0];
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-6)] {
        for spec in ["straight-through", "reinmax", "reinmax:temperature=1.5"] {
            let estimator = build(spec);
            let bits = Bernoulli::from_logits(tensor(&phi, [3, 2], dtype)).expect("valid");
            let noise = vec![tensor(&z, [1, 3, 2, 1], dtype)];
            let bit_cost = |z: Tensor<3>| cost(z.unsqueeze_dim(3));
            let by_bits = estimator.gradient(noise, &bits, bit_cost);

            let pairs: Vec<f64> = phi.iter().flat_map(|phi| [*phi, 0.0]).collect();
            let pairs = Categorical::from_logits(tensor(&pairs, [3, 2, 2], dtype)).expect("valid");
            let one_hot: Vec<f64> = z.iter().flat_map(|z| [*z, 1.0 - z]).collect();
            let noise = vec![tensor(&one_hot, [1, 3, 2, 2], dtype)];
            let by_pairs = estimator.gradient(noise, &pairs, |z| cost(z.narrow(3, 0, 1)));
            let by_pairs = values(by_pairs.expect("valid").narrow(2, 0, 1));
            assert_close(spec, &values(by_bits.expect("valid")), &by_pairs, tolerance);
        }
    }
}
