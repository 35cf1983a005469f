//! The bias of straight-through on quadratics and the rules that remove it.

use straightflow::distribution::CountLaw;
use straightflow::projection::MmdLaw;

use crate::{assert_near, exact_gradient, expectation, laws, rbf};

#[test]
fn straight_through_misses_the_slope_of_the_variance() {
    let binomial = |trials: u32, p: f64| CountLaw::Binomial {
        trials,
        logit: (p / (1.0 - p)).ln(),
    };
    let negative = |dispersion: f64, mean: f64| CountLaw::NegativeBinomial { dispersion, mean };
    let cases = [
        (CountLaw::Poisson { rate: 5.0 }, -1.0),
        (binomial(7, 0.4), -0.2),
        (negative(1.0, 4.0), -9.0),
        (negative(2.5, 3.0), -3.4),
        (binomial(1, 0.2), -0.6),
    ];
    for (law, bias) in cases {
        let exact = exact_gradient(&law, |z| z * z);
        let straight_through = expectation(&law, |z| 2.0 * z);
        assert_near(straight_through - exact, bias, 1e-9);
        // -V'(m), by differences.
        let step = 1e-4;
        let variance = |mean: f64| law.with_mean(mean).variance();
        let slope = (variance(law.mean() + step) - variance(law.mean() - step)) / (2.0 * step);
        assert_near(bias, -slope, 1e-9);
        // The kernel weight c / E c has the same bias at every bandwidth.
        for h in [0.8, 1.5, 4.0] {
            let kernel = rbf(h);
            let prepared = MmdLaw::new(&law, &kernel).unwrap();
            let weighted = expectation(&law, |z| prepared.c(z) * 2.0 * z);
            assert_near(weighted / prepared.self_terms().gain - exact, bias, 1e-9);
        }
    }
}

/// The weight `v(z)` whose expectation with `f'` is the trapezoidal rule `sum_x w(x) (f'(x) +
/// f'(x + 1)) / 2`.
fn trapezoid_weight(law: &CountLaw, z: f64) -> f64 {
    match *law {
        CountLaw::Poisson { rate } => 0.5 * (1.0 + z / rate),
        CountLaw::Binomial { trials, .. } => {
            let (n, mean) = (f64::from(trials), law.mean());
            0.5 * ((n - z) / (n - mean) + z / mean)
        }
        CountLaw::NegativeBinomial { dispersion, mean } => {
            0.5 * ((z + dispersion) / (dispersion + mean) + z / mean)
        }
    }
}

#[test]
fn the_trapezoidal_rule_is_exact_on_quadratics() {
    for law in laws() {
        let weight = law.weight().unwrap();
        for target in [-1.0, 0.3, 3.3] {
            let slope = |z: f64| 2.0 * (z - target);
            let exact = exact_gradient(&law, |z| (z - target) * (z - target));
            let by_draws = expectation(&law, |z| trapezoid_weight(&law, z) * slope(z));
            assert_near(by_draws, exact, 1e-9);
            let by_weight = expectation(&weight, |x| 0.5 * (slope(x) + slope(x + 1.0)));
            assert_near(by_weight, exact, 1e-9);
        }
        // The two forms agree on any function, which the quadratic alone would not show.
        let by_draws = expectation(&law, |z| trapezoid_weight(&law, z) * (0.7 * z).cos());
        let by_weight = expectation(&weight, |x| {
            0.5 * ((0.7 * x).cos() + (0.7 * (x + 1.0)).cos())
        });
        assert_near(by_draws, by_weight, 1e-12);
    }
}
