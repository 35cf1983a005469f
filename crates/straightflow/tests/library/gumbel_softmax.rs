//! Gumbel-softmax against its scalar formula.

use straightflow::distribution::Family;

use crate::scalar_relaxation::{
    Scalar, compare, gumbel, scalar_sigmoid, scalar_softmax, softmax_jacobian,
};

#[test]
fn the_binary_concrete_sample_and_its_derivative() {
    let natural = [0.3, -1.2, 0.8, 2.1];
    for temperature in [0.3, 0.7, 2.0] {
        let spec = format!("gumbel-softmax:temperature={temperature}");
        compare(
            &spec,
            Family::Bernoulli,
            &natural,
            [2, 2, 1],
            |natural, noise| {
                let u = noise[0][0];
                let y = scalar_sigmoid((natural[0] + (u / (1.0 - u)).ln()) / temperature);
                Scalar {
                    jacobian: vec![vec![y * (1.0 - y) / temperature]],
                    z: vec![y],
                }
            },
        );
    }
}

#[test]
fn the_relaxed_one_hot_vector_and_its_derivative() {
    let natural: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for temperature in [0.4, 1.0] {
        let spec = format!("gumbel-softmax:temperature={temperature}");
        compare(
            &spec,
            Family::Categorical,
            &natural,
            [2, 2, 3],
            |natural, noise| {
                let perturbed = natural.iter().zip(&noise[0]);
                let x: Vec<f64> = perturbed
                    .map(|(t, u)| (t + gumbel(*u)) / temperature)
                    .collect();
                let y = scalar_softmax(&x);
                Scalar {
                    jacobian: softmax_jacobian(&y, temperature),
                    z: y,
                }
            },
        );
    }
}
