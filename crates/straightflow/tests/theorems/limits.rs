//! The exact Wasserstein gradient for infinitely small moves.

use straightflow::distribution::CountLaw;
use straightflow::projection::{Discrepancy, Wasserstein};

#[test]
fn small_steps_tend_to_the_limit() {
    let law = CountLaw::Poisson { rate: 3.0 };
    let z = [2.0, 3.0, 3.0, 5.0, 1.0, 3.0, 0.0];
    let slopes = [0.3, -1.0, 0.7, 2.0, -0.2, 0.1, 1.5];
    let limit = Wasserstein.limit_gradient(&law, &z, &slopes).unwrap();
    for eps in [1e-3, 1e-6] {
        let moved: Vec<f64> = z.iter().zip(&slopes).map(|(z, s)| z - eps * s).collect();
        let gradient = Wasserstein.control_variate_gradient(&law, &moved, &z);
        let error = (gradient.unwrap() / eps - limit).abs();
        assert!(error < 1e-9, "{error}");
    }
}

/// On a linear cost all slopes are one, and the weights sum to one.
#[test]
fn linear_costs_are_exact() {
    for law in [
        CountLaw::Poisson { rate: 5.0 },
        CountLaw::Binomial {
            trials: 1,
            logit: -0.7,
        },
    ] {
        let gradient = Wasserstein.limit_gradient(&law, &[1.0, 0.0, 4.0], &[1.0; 3]);
        assert!((gradient.unwrap() - 2.0).abs() < 1e-12);
    }
}
