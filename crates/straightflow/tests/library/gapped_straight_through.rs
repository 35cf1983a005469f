//! Gapped straight-through against the published form of its two moves.

use straightflow::distribution::Family;

use crate::scalar_relaxation::{Scalar, compare, largest, scalar_softmax, softmax_jacobian};

/// `x = theta + m1 + m2`: `m1` raises the sampled logit to the largest, `m2` lowers each other one
/// by `relu(theta + gap - max)`.
fn jacobian(logits: &[f64], chosen: usize, gap: f64, temperature: f64) -> Vec<Vec<f64>> {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let moved = logits.iter().enumerate().map(|(l, t)| match l == chosen {
        true => t + (most - t),
        false => t - (t + gap - most).max(0.0),
    });
    let x: Vec<f64> = moved.map(|x| x / temperature).collect();
    softmax_jacobian(&scalar_softmax(&x), temperature)
}

#[test]
fn one_hot_vectors() {
    let natural: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for (gap, temperature) in [(1.0, 1.0), (0.3, 0.5), (0.0, 2.0)] {
        let spec = format!("gapped-straight-through:gap={gap},temperature={temperature}");
        compare(
            &spec,
            Family::Categorical,
            &natural,
            [2, 2, 3],
            |natural, noise| Scalar {
                z: noise[0].clone(),
                jacobian: jacobian(natural, largest(&noise[0]), gap, temperature),
            },
        );
    }
}

/// A bit is the first of two categories with logits `(phi, 0)`.
#[test]
fn bits() {
    let natural = [0.3, -1.2, 0.8, 2.1];
    for (gap, temperature) in [(1.0, 1.0), (0.3, 0.5), (0.0, 2.0)] {
        let spec = format!("gapped-straight-through:gap={gap},temperature={temperature}");
        compare(
            &spec,
            Family::Bernoulli,
            &natural,
            [2, 2, 1],
            |natural, noise| {
                let z = noise[0][0];
                let chosen = usize::from(z == 0.0);
                let full = jacobian(&[natural[0], 0.0], chosen, gap, temperature);
                Scalar {
                    z: vec![z],
                    jacobian: vec![vec![full[0][0]]],
                }
            },
        );
    }
}
