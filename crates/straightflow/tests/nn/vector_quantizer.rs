//! `VectorQuantizer` against a search over the codebook and an explicit rotation matrix.

use std::collections::HashSet;

use burn::module::Param;
use burn::tensor::{DType, Device, Tensor};
use straightflow::Key;
use straightflow::nn::{CodebookGradient, VectorQuantizer, VectorQuantizerConfig};

use crate::support::{assert_close, integers, leaf, pull_back, refused, reload, tensor, values};

use CodebookGradient::{Rotation, StraightThrough};

/// A quantiser with a given codebook.
fn layer(codes: &[f64], dim: usize, gradient: CodebookGradient, dtype: DType) -> VectorQuantizer {
    let size = codes.len() / dim;
    let config = VectorQuantizerConfig::new(size, dim).with_gradient(gradient);
    let device = Device::flex().autodiff();
    let mut layer = config.init(Key::new(0), (&device, dtype)).expect("valid");
    layer.codebook = Param::from_tensor(leaf(codes, [size, dim], dtype));
    layer
}

/// Deterministic numbers without a pattern that a sign error could hide behind.
fn wave(n: usize, speed: f64, size: f64) -> Vec<f64> {
    let wave = |i: usize| (i as f64 * speed).sin() + 0.3 * (i as f64 * speed * 1.7).cos();
    (0..n).map(|i| wave(i) * size).collect()
}

/// The index of the nearest row, the first one of several.
fn nearest(x: &[f64], codes: &[f64]) -> usize {
    let distance = |code: &[f64]| -> f64 { x.iter().zip(code).map(|(a, b)| (a - b).powi(2)).sum() };
    let mut best = (f64::INFINITY, 0);
    for (index, code) in codes.chunks(x.len()).enumerate() {
        if distance(code) < best.0 {
            best = (distance(code), index);
        }
    }
    best.1
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// `lambda R' g` with the matrix written out.
fn rotated(e: &[f64], q: &[f64], g: &[f64]) -> Vec<f64> {
    let unit = |x: &[f64]| -> Vec<f64> { x.iter().map(|v| v / norm(x)).collect() };
    let (u, w) = (unit(e), unit(q));
    let a = unit(&u.iter().zip(&w).map(|(u, w)| u + w).collect::<Vec<_>>());
    let r = |i: usize, j: usize| f64::from(i == j) - 2.0 * a[i] * a[j] + 2.0 * w[i] * u[j];
    let scale = norm(q) / norm(e);
    let d = e.len();
    // The matrix does what it is for: it turns the input to the code.
    for (i, code) in q.iter().enumerate() {
        let turned: f64 = (0..d).map(|j| r(i, j) * e[j]).sum();
        assert!((scale * turned - code).abs() < 1e-12);
    }
    (0..d)
        .map(|j| scale * (0..d).map(|i| r(i, j) * g[i]).sum::<f64>())
        .collect()
}

#[test]
fn golden_rotation() {
    let (e, q, g) = ([0.6, -1.2, 0.5], [0.4, -0.9, 1.1], [1.0, -2.0, 0.5]);
    let codes = [q, [9.0, 9.0, 9.0]].concat();
    let want = [1.080796356662, -2.008443529951, -0.617220099877];
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 5e-13)] {
        let input = leaf::<1>(&e, [3], dtype);
        let z = layer(&codes, 3, Rotation, dtype).forward(input.clone());
        assert_close("code", &values(z.codes.clone()), &q, 1e-7);
        let gradient = pull_back(&input, z.codes, &g);
        assert_close("gradient", &gradient, &want, tolerance);
        let z = layer(&codes, 3, StraightThrough, dtype).forward(input.clone());
        assert_eq!(pull_back(&input, z.codes, &g), g);
    }
    assert_close("matrix", &rotated(&e, &q, &g), &want, 5e-13);
}

#[test]
fn it_is_the_scalar_formula() {
    const D: usize = 3;
    let (codes, x) = (wave(7 * D, 1.3, 1.0), wave(24 * D, 0.77, 1.2));
    let weights = wave(24 * D, 2.1, 1.0);
    let want: Vec<usize> = x.chunks(D).map(|x| nearest(x, &codes)).collect();
    assert!(HashSet::<usize>::from_iter(want.clone()).len() > 3);
    let rows = want.iter().map(|&k| &codes[k * D..(k + 1) * D]);
    for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
        for gradient in [StraightThrough, Rotation] {
            let layer = layer(&codes, D, gradient, dtype);
            let input = leaf::<4>(&x, [2, 3, 4, D], dtype);
            let z = layer.forward(input.clone());
            assert_eq!(z.indices.dims(), [2, 3, 4, 1]);
            let indices: Vec<i64> = want.iter().map(|&k| k as i64).collect();
            assert_eq!(integers(z.indices.clone()), indices);
            let nearest: Vec<f64> = rows.clone().flatten().copied().collect();
            assert_close("codes", &values(z.codes.clone()), &nearest, 1e-7);
            let again = layer.codes(z.indices);
            assert_eq!(values(again), values(z.codes.clone()));

            let got = pull_back(&input, z.codes, &weights);
            let triples = x.chunks(D).zip(rows.clone()).zip(weights.chunks(D));
            let want: Vec<f64> = match gradient {
                StraightThrough => weights.clone(),
                Rotation => triples.flat_map(|((e, q), g)| rotated(e, q, g)).collect(),
            };
            assert_close("gradient", &got, &want, tolerance);
        }
    }
}

/// Each loss has its value, and a gradient on its own side only.
#[test]
fn losses_are_mean_squared_errors() {
    const D: usize = 2;
    let (codes, x) = (wave(4 * D, 1.3, 1.0), wave(9 * D, 0.77, 1.0));
    let layer = layer(&codes, D, StraightThrough, DType::F64);
    let mut to_codes = vec![0.0; codes.len()];
    let mut to_input = vec![0.0; x.len()];
    let mut error = 0.0;
    let n = x.len() as f64;
    for (row, point) in x.chunks(D).enumerate() {
        let k = nearest(point, &codes);
        for (i, x) in point.iter().enumerate() {
            let gap = x - codes[k * D + i];
            error += gap * gap / n;
            to_input[row * D + i] = 2.0 * gap / n;
            to_codes[k * D + i] -= 2.0 * gap / n;
        }
    }
    for (part, weights) in [(0, [1.0, 0.0]), (1, [0.0, 1.0]), (2, [1.0, 0.25])] {
        let input = leaf::<2>(&x, [9, D], DType::F64);
        let z = layer.forward(input.clone());
        let loss = [z.codebook_loss, z.commitment_loss, z.loss][part].clone();
        let total = weights[0] + weights[1];
        assert_close("value", &values(loss.clone()), &[total * error], 1e-14);
        let grads = loss.backward();
        let pairs = [
            (layer.codebook.val().grad(&grads), &to_codes, weights[0]),
            (input.grad(&grads), &to_input, weights[1]),
        ];
        for (got, want, weight) in pairs {
            match got {
                None => assert_eq!(weight, 0.0),
                Some(got) => {
                    let want: Vec<f64> = want.iter().map(|g| g * weight).collect();
                    assert_close("gradient", &values(got), &want, 1e-14);
                }
            }
        }
    }
    // The codes themselves have no gradient for the codebook.
    let z = layer.forward(leaf::<2>(&x, [9, D], DType::F64));
    let grads = z.codes.sum().backward();
    assert!(layer.codebook.val().grad(&grads).is_none());
}

#[test]
fn the_first_of_equal_codes_is_taken() {
    let codes = [5.0, 5.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0];
    for dtype in [DType::F32, DType::F64] {
        let layer = layer(&codes, 2, StraightThrough, dtype);
        let x = tensor::<2>(&[0.9, 0.0, 0.0, 0.0, 5.0, 5.0], [3, 2], dtype);
        assert_eq!(integers(layer.indices(x)), [1, 1, 0]);
    }
}

/// In single precision |c|^2 - 2 x.c has an error of about 8 here, and the codes are 1 apart.
#[test]
fn nearest_far_from_the_origin() {
    let codes: Vec<f64> = (0..8).flat_map(|i| [1e4 + f64::from(i), -1e4]).collect();
    let x: Vec<f64> = (0..8)
        .flat_map(|i| [1e4 + f64::from(i) + 0.25, -1e4])
        .collect();
    let layer = layer(&codes, 2, StraightThrough, DType::F32);
    let indices = layer.indices(tensor::<2>(&x, [8, 2], DType::F32));
    assert_eq!(integers(indices), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// Opposite directions and zero vectors have no rotation: the gradient passes as it is.
#[test]
fn the_rotation_falls_back_where_it_is_not_defined() {
    let g = [0.3, -1.0, 2.0];
    for dtype in [DType::F32, DType::F64] {
        for (e, q) in [
            ([0.5, -1.0, 2.0], [-0.25, 0.5, -1.0]),
            ([0.7, -0.3, 0.1], [-0.7, 0.3, -0.1]),
            ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]),
            ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]),
            ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
        ] {
            let codes = [q, [1e3, 1e3, 1e3]].concat();
            let input = leaf::<2>(&e, [1, 3], dtype);
            let z = layer(&codes, 3, Rotation, dtype).forward(input.clone());
            let gradient = pull_back(&input, z.codes, &g);
            assert_close("gradient", &gradient, &g, 1e-6);
        }
        // Neither large nor small vectors overflow, and equal vectors are not turned.
        for size in [1e30, 1e-30, 1.0] {
            let e = [0.6 * size, -1.2 * size, 0.5 * size];
            let far = if size > 1.0 { -1e30 } else { 1e3 };
            let input = leaf::<1>(&e, [3], dtype);
            let codes = [e, [far; 3]].concat();
            let layer = layer(&codes, 3, Rotation, dtype);
            let rule = layer.forward(input.clone());
            let gradient = pull_back(&input, rule.codes, &g);
            assert_close("equal vectors", &gradient, &g, 1e-6);
        }
    }
}

#[test]
fn codes_from_inputs_are_different_inputs() {
    let device = Device::flex().autodiff();
    let config = VectorQuantizerConfig::new(6, 2);
    let fresh = config.init(Key::new(4), &device).expect("valid");
    let start = values(fresh.codebook.val());
    assert!(start.iter().all(|c| c.abs() < 1.0 / 6.0));
    assert!(start.iter().any(|c| c.abs() > 0.1) && start.iter().any(|c| *c < 0.0));

    let x = wave(20, 0.77, 1.0);
    let inputs = tensor::<3>(&x, [2, 5, 2], DType::F32);
    let drawn = |key, rows: usize| {
        let inputs = inputs.clone().reshape([1, 10, 2]).narrow(1, 0, rows);
        let layer = fresh
            .clone()
            .with_codes_from(key, inputs.clone())
            .expect("some");
        assert_eq!(layer.codebook.id, fresh.codebook.id);
        assert!(layer.codebook.val().is_require_grad());
        let z = layer.forward(inputs);
        (values(layer.codebook.val()), z.perplexity())
    };
    let (codes, perplexity) = drawn(Key::new(1), 10);
    let different: HashSet<String> = codes.chunks(2).map(|c| format!("{c:?}")).collect();
    assert_eq!(different.len(), 6);
    let known = values(inputs.clone());
    assert!(codes.chunks(2).all(|c| known.chunks(2).any(|x| x == c)));
    assert!(perplexity > 3.0 && perplexity <= 6.0, "{perplexity}");
    assert_ne!(codes, drawn(Key::new(2), 10).0);
    // Four inputs for six codes: two come again.
    let (codes, _) = drawn(Key::new(1), 4);
    let different: HashSet<String> = codes.chunks(2).map(|c| format!("{c:?}")).collect();
    assert_eq!(different.len(), 4);
    let none = Tensor::<2>::zeros([0, 2], &Device::flex());
    let outcome = fresh.clone().with_codes_from(Key::new(1), none);
    assert_eq!(refused(outcome), ("VectorQuantizer", "inputs"));
}

#[test]
fn impossible_configurations_are_refused() {
    let of = |config: VectorQuantizerConfig| refused(config.init(Key::new(1), &Device::flex()));
    for size in [0, 1, 1 << 31] {
        let config = VectorQuantizerConfig::new(size, 2);
        assert_eq!(of(config), ("VectorQuantizer", "size"));
    }
    let config = VectorQuantizerConfig::new(4, 0);
    assert_eq!(of(config), ("VectorQuantizer", "dim"));
    for commitment in [-0.1, f64::NAN, f64::INFINITY] {
        let config = VectorQuantizerConfig::new(4, 2).with_commitment(commitment);
        assert_eq!(of(config), ("VectorQuantizer", "commitment"));
    }
}

#[test]
fn a_record_gives_the_same_output() {
    let config = VectorQuantizerConfig::new(5, 2);
    let of = |seed| config.init(Key::new(seed), &Device::flex()).expect("valid");
    let (original, fresh) = (of(1), of(2));
    let x = tensor::<2>(&wave(12, 0.5, 0.2), [6, 2], DType::F32);
    let want = values(original.forward(x.clone()).codes);
    assert_ne!(values(fresh.forward(x.clone()).codes), want);
    let loaded = reload(&original, fresh);
    assert_eq!(values(loaded.forward(x).codes), want);
}
