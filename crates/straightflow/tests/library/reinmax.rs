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

/// ZGR as its author writes it, `1/2 [J df + (z - p)((z - p) . df)]`, for two, three and five
/// categories: ReinMax at temperature 1 to rounding.
#[test]
fn zgr_is_reinmax() {
    for k in [2usize, 3, 5] {
        let logits: Vec<f64> = (0..k).map(|i| (1.3 * i as f64 + 0.4).sin() * 2.0).collect();
        let law = Law::new(Family::Categorical, tensor(&logits, [1, 1, k], DType::F64));
        let law = law.expect("valid");
        let p = scalar_softmax(&logits);
        let slope = |i: usize| 0.7 * (2.1 * i as f64).cos();
        let slopes: Vec<f64> = (0..k).map(slope).collect();
        for chosen in 0..k {
            let z: Vec<f64> = (0..k).map(|i| f64::from(u8::from(i == chosen))).collect();
            let dot = |a: &[f64]| -> f64 { a.iter().zip(&slopes).map(|(a, b)| a * b).sum() };
            let gap: Vec<f64> = z.iter().zip(&p).map(|(z, p)| z - p).collect();
            let of = |i: usize| 0.5 * (p[i] * (slopes[i] - dot(&p)) + gap[i] * dot(&gap));
            let want: Vec<f64> = (0..k).map(of).collect();
            let noise = vec![tensor(&z, [1, 1, 1, k], DType::F64)];
            let got = straightflow::estimator::estimator("zgr")
                .expect("known")
                .gradient(noise, &law, |z| {
                    (z * tensor::<4>(&slopes, [1, 1, 1, k], DType::F64)).sum_dims(&[2, 3])
                });
            assert_close(
                &format!("{k} {chosen}"),
                &values(got.expect("valid")),
                &want,
                1e-14,
            );
        }
    }
}

/// The variance of ZGR and of straight-through on a cost of three categories, and their biases.
#[test]
fn the_numbers_of_zgr_are_known() {
    let logits = [0.5, -0.3, 1.1];
    let p = scalar_softmax(&logits);
    let law = tensor(&logits.repeat(3), [3, 1, 3], DType::F64);
    let law = Law::new(Family::Categorical, law).expect("valid");
    let corners = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let cost = |z: Tensor<4>| {
        let [n, batch, _, k] = z.dims();
        let rows = z.reshape([n * batch, k]);
        let a = tensor::<2>(&[1.2, -0.5, 0.8], [k, 1], DType::F64);
        let form = [0.3, -0.7, 0.2, -0.7, 0.5, 0.9, 0.2, 0.9, -1.1];
        let form = tensor::<2>(&form, [k, k], DType::F64);
        let quadratic = (rows.clone() * rows.clone().matmul(form)).sum_dim(1) * 0.5;
        (rows.matmul(a).cos() + quadratic).reshape([n, batch])
    };
    let exact = [0.036_423_829_578, 0.100_866_584_022, -0.137_290_413_6];
    for (spec, variance, bias) in [
        ("zgr", 0.102_602_219_519, 0.0098),
        ("straight-through", 0.109_938_554_024, 0.0924),
    ] {
        let noise = vec![tensor(&corners, [1, 3, 1, 3], DType::F64)];
        let method = straightflow::estimator::estimator(spec).expect("known");
        let each = values(method.gradient(noise, &law, cost).expect("valid"));
        let (mut mean, mut square) = ([0.0; 3], 0.0);
        for (row, p) in each.chunks(3).zip(&p) {
            for (mean, g) in mean.iter_mut().zip(row) {
                *mean += p * g;
                square += p * g * g;
            }
        }
        let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>();
        let got = square - norm(&mean);
        assert!((got - variance).abs() < 1e-11, "{spec}: {got}");
        let gap: Vec<f64> = mean.iter().zip(exact).map(|(a, b)| a - b).collect();
        assert!((norm(&gap).sqrt() - bias).abs() < 5e-5, "{spec}: {gap:?}");
    }
}
