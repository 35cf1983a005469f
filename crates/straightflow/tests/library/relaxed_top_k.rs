//! Relaxed top-k against its scalar formula, and the law that it is a relaxation of.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::scalar::subsets;
use crate::scalar_relaxation::{Scalar, build, compare, gumbel, scalar_softmax};
use crate::support::{assert_close, leaf, tensor, values};

const LOGITS: [f64; 4] = [0.3, -1.2, 0.8, 0.1];

fn pairs(natural: Tensor<3>) -> Law {
    Law::new(Family::Subset { size: 2 }, natural).expect("valid")
}

/// Computed apart from this library, for keys that the noise makes of zeros.
#[test]
fn numbers_by_hand() {
    let want = [
        0.7468707623354,
        0.0851420497843,
        0.9059377591772,
        0.2620494287031,
    ];
    let keys: [f64; 4] = [0.9, -0.4, 1.3, 0.2];
    let noise = keys.map(|key| (-(-key).exp()).exp());
    for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 1e-6)] {
        let q = pairs(tensor(&[0.0; 4], [1, 1, 4], dtype));
        let noise = vec![tensor::<4>(&noise, [1, 1, 1, 4], dtype)];
        let estimate = build("relaxed-top-k").estimate(noise, &q, |z| z.sum_dims(&[2, 3]));
        let samples = values(estimate.expect("valid").samples[0].clone());
        assert_close("sample", &samples, &want, tolerance);
    }
}

/// The published recursion and its derivative, by the chain rule from softmax to softmax.
fn scalar(natural: &[f64], noise: &[f64], size: usize, temperature: f64) -> Scalar {
    let m = natural.len();
    let one = |i: usize, j: usize| f64::from(u8::from(i == j));
    let perturbed = natural.iter().zip(noise);
    let mut keys: Vec<f64> = perturbed.map(|(x, u)| x + gumbel(*u)).collect();
    let mut keys_by: Vec<Vec<f64>> = (0..m)
        .map(|l| (0..m).map(|i| one(l, i)).collect())
        .collect();
    let (mut z, mut jacobian) = (vec![0.0; m], vec![vec![0.0; m]; m]);
    for _ in 0..size {
        let scaled: Vec<f64> = keys.iter().map(|key| key / temperature).collect();
        let share = scalar_softmax(&scaled);
        for (keys_by, jacobian) in keys_by.iter_mut().zip(&mut jacobian) {
            let mean: f64 = share.iter().zip(&*keys_by).map(|(a, by)| a * by).sum();
            for i in 0..m {
                let by = share[i] * (keys_by[i] - mean) / temperature;
                jacobian[i] += by;
                keys_by[i] -= by / (1.0 - share[i]);
            }
        }
        for i in 0..m {
            z[i] += share[i];
            keys[i] += (1.0 - share[i]).ln();
        }
    }
    Scalar { z, jacobian }
}

#[test]
fn the_relaxed_subset_and_its_derivative() {
    let natural: Vec<f64> = (0..16).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for (size, temperature) in [(1, 0.5), (2, 0.5), (2, 1.0), (3, 2.0), (4, 1.5)] {
        compare(
            &format!("relaxed-top-k:temperature={temperature}"),
            Family::Subset { size },
            &natural,
            [2, 2, 4],
            |natural, noise| scalar(natural, &noise[0], size as usize, temperature),
        );
    }
}

/// One item is a category, relaxed as always.
#[test]
fn one_item_is_gumbel_softmax() {
    let logits = tensor::<3>(&LOGITS, [1, 1, 4], DType::F64);
    let noise = Key::new(3).uniform([5, 1, 1, 4], &logits.device(), DType::F64);
    let gradient = |spec: &str, family| {
        let law = Law::new(family, logits.clone()).expect("valid");
        let cost = |z: Tensor<4>| (z.cumsum(3) * 0.9 + 0.2).sin().sum_dims(&[2, 3]);
        let gradient = build(spec).gradient(vec![noise.clone()], &law, cost);
        values(gradient.expect("valid"))
    };
    assert_close(
        "gradients",
        &gradient("relaxed-top-k", Family::Subset { size: 1 }),
        &gradient("gumbel-softmax", Family::Categorical),
        1e-12,
    );
}

/// The probability of drawing the items one after the other without replacement, in any order.
fn drawn_in_turn(p: &[f64], items: &[usize]) -> f64 {
    let first = |i: usize| {
        let rest: Vec<usize> = items.iter().copied().filter(|item| *item != i).collect();
        let left: Vec<f64> = (0..p.len())
            .map(|j| if j == i { 0.0 } else { p[j] / (1.0 - p[i]) })
            .collect();
        p[i] * drawn_in_turn(&left, &rest)
    };
    match items.is_empty() {
        true => 1.0,
        false => items.iter().map(|i| first(*i)).sum(),
    }
}

/// Cold samples are the two largest keys, whose law is that of drawing without replacement, and not
/// that of `Subset`. The numbers are known; the frequencies of 60,000 samples are tested by a
/// chi-squared test with 5 degrees of freedom, where 40 is exceeded with a probability of 2e-7.
#[test]
fn it_is_a_relaxation_of_another_law() {
    let states = subsets(&LOGITS, 2);
    let p = scalar_softmax(&LOGITS);
    let items = |z: &[f64]| -> Vec<usize> { (0..4).filter(|i| z[*i] == 1.0).collect() };
    let in_turn: Vec<f64> = states
        .iter()
        .map(|(z, _)| drawn_in_turn(&p, &items(z)))
        .collect();
    let subset: Vec<f64> = states.iter().map(|(_, p)| *p).collect();
    let both = states.iter().position(|(z, _)| items(z) == [0, 1]);
    let both = both.expect("a subset");
    let logs = [in_turn[both].ln(), subset[both].ln()];
    let want = [-3.221204247131, -3.024098727111];
    assert_close("log P({0, 1})", &logs, &want, 1e-12);
    let gaps = in_turn.iter().zip(&subset).map(|(a, b)| (a - b).abs());
    let distance = 0.5 * gaps.sum::<f64>();
    assert_close("total variation", &[distance], &[0.038173393545], 1e-12);

    let n = 60_000;
    let q = pairs(leaf(&LOGITS, [1, 1, 4], DType::F32));
    let cold = build("relaxed-top-k:temperature=0.001");
    let samples = values(cold.sample(Key::new(12), &q, n).expect("valid"));
    let mut counts = vec![0.0; states.len()];
    for y in samples.chunks(4) {
        let mut order = [0, 1, 2, 3];
        order.sort_by(|a, b| y[*b].total_cmp(&y[*a]));
        let is_top = |i: usize| f64::from(u8::from(order[..2].contains(&i)));
        let top: Vec<f64> = (0..4).map(is_top).collect();
        let state = states.iter().position(|(z, _)| *z == top);
        counts[state.expect("two of four")] += 1.0;
    }
    let square = |law: &[f64]| -> f64 {
        let terms = counts.iter().zip(law).map(|(count, p)| {
            let expected = n as f64 * p;
            (count - expected).powi(2) / expected
        });
        terms.sum()
    };
    assert!(square(&in_turn) < 40.0, "{}", square(&in_turn));
    assert!(square(&subset) > 400.0, "{}", square(&subset));
}

#[test]
fn no_item_and_every_item() {
    for (size, want) in [(0, 0.0), (4, 1.0)] {
        let natural = leaf::<3>(&LOGITS, [1, 1, 4], DType::F64);
        let q = Law::new(Family::Subset { size }, natural.clone()).expect("valid");
        let z = build("relaxed-top-k:temperature=0.01").sample(Key::new(2), &q, 1);
        let z = z.expect("valid");
        assert_close("samples", &values(z.clone()), &[want; 4], 1e-6);
        let gradient = natural.grad(&z.square().sum().backward());
        assert_close(
            "gradient",
            &values(gradient.expect("on the tape")),
            &[0.0; 4],
            1e-3,
        );
    }
}

/// What is left of an item that was taken whole is known to its logarithm, so it is not taken again.
#[test]
fn items_far_apart_are_taken_once() {
    for dtype in [DType::F32, DType::F64] {
        let natural = leaf::<3>(&[1e4, -1e4, 60.0, -60.0], [1, 1, 4], dtype);
        let z = build("relaxed-top-k").sample(Key::new(1), &pairs(natural.clone()), 3);
        let z = z.expect("valid");
        assert_close(
            "samples",
            &values(z.clone()),
            &[1.0, 0.0, 1.0, 0.0].repeat(3),
            1e-6,
        );
        let grads = z.square().sum().backward();
        let gradient = values(natural.grad(&grads).expect("on the tape"));
        assert_close("gradient", &gradient, &[0.0; 4], 1e-6);
    }
}
