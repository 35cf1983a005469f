//! Straight-through Gumbel-softmax against its scalar formula.

use straightflow::distribution::Family;

use crate::scalar_relaxation::{
    Scalar, compare, gumbel, largest, one_hot, scalar_sigmoid, scalar_softmax, softmax_jacobian,
};

#[test]
fn hard_bits_with_the_relaxed_derivative() {
    let natural = [0.3, -1.2, 0.8, 2.1];
    let temperature = 0.4;
    let spec = "straight-through-gumbel:temperature=0.4";
    compare(
        spec,
        Family::Bernoulli,
        &natural,
        [2, 2, 1],
        |natural, noise| {
            let u = noise[0][0];
            let x = natural[0] + (u / (1.0 - u)).ln();
            let y = scalar_sigmoid(x / temperature);
            Scalar {
                z: vec![f64::from(u8::from(x > 0.0))],
                jacobian: vec![vec![y * (1.0 - y) / temperature]],
            }
        },
    );
}

#[test]
fn hard_one_hot_vectors_with_the_relaxed_derivative() {
    let natural: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let temperature = 0.8;
    let spec = "straight-through-gumbel:temperature=0.8";
    compare(
        spec,
        Family::Categorical,
        &natural,
        [2, 2, 3],
        |natural, noise| {
            let perturbed = natural.iter().zip(&noise[0]);
            let x: Vec<f64> = perturbed
                .map(|(t, u)| (t + gumbel(*u)) / temperature)
                .collect();
            Scalar {
                z: one_hot(3, largest(&x)),
                jacobian: softmax_jacobian(&scalar_softmax(&x), temperature),
            }
        },
    );
}
