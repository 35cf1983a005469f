//! Exponential arrival times against finite differences of the scalar relaxation.

use straightflow::distribution::Family;

use crate::scalar_relaxation::{Scalar, compare};

/// The relaxed count of a log-rate and of all the arrivals there are, without a horizon.
fn relaxed(log_rate: f64, noise: &[Vec<f64>], step: impl Fn(f64) -> f64) -> f64 {
    let mut time = 0.0;
    let mut count = 0.0;
    for u in noise.iter().flatten() {
        time += -u.ln() * (-log_rate).exp();
        count += step(time);
    }
    count
}

/// The derivative to about eleven digits: central differences, extrapolated twice.
fn derivative(f: impl Fn(f64) -> f64, x: f64) -> f64 {
    let central = |h: f64| (f(x + h) - f(x - h)) / (2.0 * h);
    let h = 2e-3;
    let first = |h: f64| (4.0 * central(h / 2.0) - central(h)) / 3.0;
    (16.0 * first(h / 2.0) - first(h)) / 15.0
}

const LOG_RATES: [f64; 4] = [0.3, -1.2, 1.8, 0.1];

#[test]
fn sigmoid_arrivals() {
    for temperature in [0.1, 0.5] {
        let spec = format!("exponential-arrival:relaxation=sigmoid,temperature={temperature}");
        compare(
            &spec,
            Family::Poisson,
            &LOG_RATES,
            [2, 2, 1],
            |natural, noise| {
                let step = |t: f64| 1.0 / (1.0 + ((t - 1.0) / temperature).exp());
                let value = relaxed(natural[0], noise, step);
                // d/d log rate of sigma((1 - t) / tau) is y (1 - y) t / tau.
                let mut time = 0.0;
                let mut weight = 0.0;
                for u in noise.iter().flatten() {
                    time += -u.ln() / natural[0].exp();
                    weight += step(time) * (1.0 - step(time)) * time / temperature;
                }
                let numeric = derivative(|x| relaxed(x, noise, step), natural[0]);
                assert!(
                    (weight - numeric).abs() < 1e-7 * (1.0 + weight),
                    "{weight} {numeric}"
                );
                Scalar {
                    z: vec![value],
                    jacobian: vec![vec![weight]],
                }
            },
        );
    }
}

#[test]
fn cubic_arrivals() {
    for temperature in [0.2, 1.0] {
        let spec = format!("exponential-arrival:relaxation=cubic,temperature={temperature}");
        compare(
            &spec,
            Family::Poisson,
            &LOG_RATES,
            [2, 2, 1],
            |natural, noise| {
                let cut = |t: f64| ((1.0 - t) / (2.0 * temperature) + 0.5).clamp(0.0, 1.0);
                let step = |t: f64| 3.0 * cut(t).powi(2) - 2.0 * cut(t).powi(3);
                let mut time = 0.0;
                let mut weight = 0.0;
                for u in noise.iter().flatten() {
                    time += -u.ln() / natural[0].exp();
                    // (6 u - 6 u^2) du/dt, and -t of dt/d log rate.
                    weight += 6.0 * (cut(time) - cut(time).powi(2)) / (2.0 * temperature) * time;
                }
                // The second derivative jumps where the step begins and ends.
                let numeric = derivative(|x| relaxed(x, noise, step), natural[0]);
                assert!(
                    (weight - numeric).abs() < 2e-2 * (1.0 + weight),
                    "{weight} {numeric}"
                );
                Scalar {
                    z: vec![relaxed(natural[0], noise, step)],
                    jacobian: vec![vec![weight]],
                }
            },
        );
    }
}
