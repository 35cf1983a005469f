//! ARMS: the stated formula, DisARM for two draws, unbiased for more.

use burn::tensor::DType;
use straightflow::prelude::*;

use crate::arm::{LOGITS, UNIFORM, bit, exact, gradient, typed_cost};
use crate::scalar::{build, cost_at, sigmoid};
use crate::support::{assert_close, tensor, values};

/// The formula by hand for draws of one bit, from uniform numbers by way of exponential ones.
fn arms_by_hand(x: f64, v: &[f64]) -> f64 {
    let (p, n) = (sigmoid(x), v.len() as f64);
    let e: Vec<f64> = v.iter().map(|v| -v.ln()).collect();
    let total: f64 = e.iter().sum();
    let b: Vec<f64> = e
        .iter()
        .map(|e| {
            let u = (1.0 - e / total).powf(n - 1.0);
            bit(if p < 0.5 { u < p } else { 1.0 - u < p })
        })
        .collect();
    let f: Vec<f64> = b.iter().map(|b| cost_at(&[*b])).collect();
    let mean = f.iter().sum::<f64>() / n;
    let q = p.min(1.0 - p);
    let joint = (2.0 * q.powf(1.0 / (n - 1.0)) - 1.0).max(0.0).powf(n - 1.0);
    let sum: f64 = f.iter().zip(&b).map(|(f, b)| (f - mean) * (b - p)).sum();
    sum / (n - 1.0) * p * (1.0 - p) / (q - joint)
}

#[test]
fn arms_has_the_stated_gradient() {
    for x in LOGITS {
        for n in [2, 3, 5, 9] {
            for shift in 0..9 {
                let v: Vec<f64> = (0..n).map(|i| UNIFORM[(i * 2 + shift) % 9]).collect();
                let want = arms_by_hand(x, &v);
                let what = format!("logit {x}, {v:?}");
                let spec = format!("arms:samples={n}");
                let double = gradient(&spec, &[x], &v, 1, DType::F64);
                assert_close(&what, &double, &[want], 1e-12);
                let single = gradient(&spec, &[x], &v, 1, DType::F32);
                assert_close(&what, &single, &[want], 1e-6);
            }
        }
    }
}

/// With two draws, for the same antithetic pair, it is DisARM.
#[test]
fn arms_with_two_draws_is_disarm() {
    for (i, x) in LOGITS.iter().enumerate() {
        for (j, v) in UNIFORM.iter().enumerate() {
            let logits = [*x, LOGITS[(i + 2) % 7]];
            let v = [
                *v,
                UNIFORM[(j + 5) % 9],
                UNIFORM[(j + 3) % 9],
                UNIFORM[(2 * j + 4) % 9],
            ];
            // u_1 = 1 - d_1 = d_2 of each coordinate; draw 1 is v[0..2], draw 2 is v[2..4].
            let u = [0, 1].map(|c| v[2 + c].ln() / (v[c].ln() + v[2 + c].ln()));
            // `1[u < p]` for p < 1/2 is the second bit of DisARM's pair, `1[1 - u < p]` else the
            // first: where they are the other way round, 1 - u puts them in order.
            let u = [0, 1].map(|c| if logits[c] < 0.0 { 1.0 - u[c] } else { u[c] });
            for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-6)] {
                let arms = gradient("arms:samples=2", &logits, &v, 2, dtype);
                let disarm = gradient("disarm", &logits, &u, 2, dtype);
                assert_close(&format!("{logits:?} {v:?}"), &arms, &disarm, tolerance);
            }
        }
    }
}

/// Means of many estimates for three and more draws, whose noise is not enumerable, in two
/// dimensions. 12 comparisons at 4.5 standard errors: a false alarm in 12 * 6.8e-6 < 1e-4 of all
/// keys, and the key is fixed.
#[test]
fn arms_is_unbiased_with_more_draws() {
    const REPEATS: usize = 40_000;
    for (seed, logits) in [[-1.3, 0.6], [1.8, -0.1], [0.9, 2.4]]
        .into_iter()
        .enumerate()
    {
        for n in [3, 4] {
            let all = tensor(&logits.repeat(REPEATS), [REPEATS, 2], DType::F64);
            let q = Bernoulli::from_logits(all).expect("valid");
            let arms = build(&format!("arms:samples={n}"));
            let each = arms.gradient(Key::new(40 + seed as u64).child(n), &q, typed_cost);
            let each = values(each.expect("valid"));
            for (j, want) in exact(&logits, 2).into_iter().enumerate() {
                let column = || each.iter().skip(j).step_by(2);
                let mean = column().sum::<f64>() / REPEATS as f64;
                let spread = column().map(|g| (g - mean).powi(2)).sum::<f64>();
                let error = (spread / (REPEATS * (REPEATS - 1)) as f64).sqrt();
                let z = (mean - want) / error;
                println!("{logits:?} n = {n}: {mean:.5} {want:.5}, z = {z:.2}");
                assert!(z.abs() < 4.5, "{logits:?} n = {n}: {mean} {want} {z}");
            }
        }
    }
}
