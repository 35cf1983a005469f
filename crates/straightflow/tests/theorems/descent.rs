//! The statement that a projected step descends.

use straightflow::distribution::CountLaw;
use straightflow::projection::{Discrepancy, MeanDifference, Wasserstein};

use crate::{assert_near, exact_gradient, expectation, population};

/// One step of the flow with the mean projection, from the law itself instead of samples.
fn projected_step(law: &CountLaw, slope: impl Fn(f64) -> f64, eps: f64) -> CountLaw {
    let moved = population(law, |z| z - eps * slope(z));
    law.with_mean(MeanDifference.project_to(law, &moved).unwrap())
}

#[test]
fn a_step_changes_the_objective_by_the_product_of_both_gradients() {
    let law = CountLaw::Poisson { rate: 5.0 };
    let f = |z: f64| (z - 3.3) * (z - 3.3);
    let slope = |z: f64| 2.0 * (z - 3.3);
    let exact = exact_gradient(&law, f);
    let straight_through = expectation(&law, slope);
    assert_near(exact, 4.4, 1e-12);
    assert_near(straight_through, 3.4, 1e-12);
    for eps in [1e-3, 1e-2, 0.1, 0.5] {
        let next = projected_step(&law, slope, eps);
        let change = expectation(&next, f) - expectation(&law, f);
        let remainder = change + eps * exact * straight_through;
        assert_near(remainder, 11.56 * eps * eps, 1e-12);
    }
}

#[test]
fn moving_against_the_slope_descends_and_along_it_climbs() {
    // The move itself, before any projection: F changes by -+ eps E f'^2.
    let law = CountLaw::Poisson { rate: 5.0 };
    let f = |z: f64| (0.7 * (z - 3.3)).cosh().ln();
    let slope = |z: f64| 0.7 * (0.7 * (z - 3.3)).tanh();
    let eps = 1e-4;
    let square = expectation(&law, |z| slope(z) * slope(z));
    for sign in [-1.0, 1.0] {
        let moved = population(&law, |z| z + sign * eps * slope(z));
        let change = moved.average(f) - expectation(&law, f);
        assert_near(change / eps, sign * square, 1e-4);
    }
}

#[test]
fn the_mean_projection_need_not_descend() {
    use std::f64::consts::TAU;
    let law = CountLaw::Poisson { rate: 5.0 };
    let f = |z: f64| -(TAU * z).sin() / 3.0 + 0.1 * z;
    let slope = |z: f64| -TAU / 3.0 * (TAU * z).cos() + 0.1;
    assert_near(exact_gradient(&law, f), 0.1, 1e-12);
    assert_near(expectation(&law, slope), 0.1 - TAU / 3.0, 1e-12);
    let rise = |eps: f64| expectation(&projected_step(&law, slope, eps), f) - expectation(&law, f);
    assert!(rise(1e-3) > 0.0);
    assert_near(rise(1e-3), 1.994e-4, 1e-6);
    // Linear in eps, so no remainder of second order can absorb it.
    assert_near(rise(1e-3) / rise(1e-4), 10.0, 1e-3);
}

#[test]
fn under_the_exact_distance_the_statement_holds_because_nothing_moves() {
    let law = CountLaw::Poisson { rate: 5.0 };
    let slope = |z: f64| 2.0 * (z - 3.3);
    // eps |f'| stays below one half wherever there is probability to speak of.
    let moved = population(&law, |z| z - 0.01 * slope(z));
    let mean = Wasserstein.project_to(&law, &moved).unwrap();
    assert_near(mean, 5.0, 1e-9);
}
