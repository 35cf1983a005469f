//! Gumbel-Rao against the published form of its conditional noise.

use straightflow::distribution::Family;

use crate::scalar_relaxation::{Scalar, compare, largest, scalar_softmax, softmax_jacobian};

/// The mean over the draws of the softmax Jacobian at the conditional perturbed logits, as printed:
/// `-log E_c + log Z` for the chosen category and `-log(E_l exp(-theta_l) + E_c / Z)` for others.
fn mean_jacobian(
    logits: &[f64],
    chosen: usize,
    uniforms: &[f64],
    temperature: f64,
) -> Vec<Vec<f64>> {
    let k = logits.len();
    let z: f64 = logits.iter().map(|t| t.exp()).sum();
    let draws = uniforms.len() / k;
    let mut mean = vec![vec![0.0; k]; k];
    for uniforms in uniforms.chunks(k) {
        let e: Vec<f64> = uniforms.iter().map(|u| -u.ln()).collect();
        let x: Vec<f64> = (0..k)
            .map(|l| match l == chosen {
                true => -e[chosen].ln() + z.ln(),
                false => -(e[l] * (-logits[l]).exp() + e[chosen] / z).ln(),
            })
            .collect();
        assert_eq!(largest(&x), chosen, "the noise leads to the sample");
        let y = scalar_softmax(&x.iter().map(|x| x / temperature).collect::<Vec<_>>());
        for (mean, row) in mean.iter_mut().zip(softmax_jacobian(&y, temperature)) {
            for (mean, entry) in mean.iter_mut().zip(row) {
                *mean += entry / draws as f64;
            }
        }
    }
    mean
}

#[test]
fn one_hot_vectors() {
    let natural: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for (draws, temperature) in [(1, 0.6), (5, 1.0)] {
        let spec = format!("gumbel-rao:draws={draws},temperature={temperature}");
        compare(
            &spec,
            Family::Categorical,
            &natural,
            [2, 2, 3],
            |natural, noise| Scalar {
                z: noise[0].clone(),
                jacobian: mean_jacobian(natural, largest(&noise[0]), &noise[1], temperature),
            },
        );
    }
}

/// A bit is the first of two categories with logits `(phi, 0)`.
#[test]
fn bits() {
    let natural = [0.3, -1.2, 0.8, 2.1];
    for (draws, temperature) in [(1, 0.6), (4, 1.0)] {
        let spec = format!("gumbel-rao:draws={draws},temperature={temperature}");
        compare(
            &spec,
            Family::Bernoulli,
            &natural,
            [2, 2, 1],
            |natural, noise| {
                let z = noise[0][0];
                let chosen = usize::from(z == 0.0);
                let mean = mean_jacobian(&[natural[0], 0.0], chosen, &noise[1], temperature);
                Scalar {
                    z: vec![z],
                    jacobian: vec![vec![mean[0][0]]],
                }
            },
        );
    }
}
