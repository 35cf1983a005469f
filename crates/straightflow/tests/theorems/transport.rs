//! The Wasserstein distance: against linear programmes, and the theorems about it.

use straightflow::distribution::CountLaw;
use straightflow::projection::{Atoms, Discrepancy, Wasserstein};

use crate::programme::{transport, transport_on_line};
use crate::{assert_near, laws, population};

const CLOUD: [f64; 6] = [-0.4, 0.35, 1.2, 1.2, 3.1, 5.45];

fn finite_laws() -> Vec<CountLaw> {
    vec![
        CountLaw::Binomial {
            trials: 1,
            logit: -0.85,
        },
        CountLaw::Binomial {
            trials: 7,
            logit: -0.4,
        },
        CountLaw::Binomial {
            trials: 12,
            logit: 1.1,
        },
    ]
}

fn masses(law: &CountLaw) -> (Vec<f64>, Vec<f64>) {
    let last = law.maximum().expect("a finite law");
    let points: Vec<f64> = (0..=last).map(|x| x as f64).collect();
    let weights = points.iter().map(|&x| law.pmf(x)).collect();
    (points, weights)
}

#[test]
fn values_and_gradients_agree_with_the_linear_programme() {
    let q = [1.0 / 6.0; 6];
    for law in finite_laws() {
        let programme = |law: &CountLaw| {
            let (x, p) = masses(law);
            transport_on_line(&x, &p, &CLOUD, &q)
        };
        assert_near(
            Wasserstein.value(&law, &CLOUD).unwrap(),
            programme(&law),
            1e-7,
        );
        let step = 1e-3;
        let (up, down) = (law.mean() + step, law.mean() - step);
        let slope =
            (programme(&law.with_mean(up)) - programme(&law.with_mean(down))) / (2.0 * step);
        assert_near(
            Wasserstein.mean_gradient(&law, &CLOUD).unwrap(),
            slope,
            1e-5,
        );
    }
}

#[test]
fn weighted_atoms_agree_with_the_linear_programme() {
    let points = [2.4, -0.3, 1.1, 0.6];
    let weights = [0.15, 0.35, 0.3, 0.2];
    let atoms = Atoms::weighted(&points, &weights).unwrap();
    for law in finite_laws() {
        let (x, p) = masses(&law);
        let programme = transport_on_line(&x, &p, &points, &weights);
        assert_near(Wasserstein.value_to(&law, &atoms).unwrap(), programme, 1e-7);
    }
}

/// Theorem 2.1 of the paper.
#[test]
fn factorised_laws_have_the_sum_of_the_marginal_distances() {
    let x = [[0.0, 1.0, 2.5], [-1.0, 0.4, 0.9]];
    let p = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]];
    let y = [[-0.3, 0.8, 1.9, 3.0], [0.0, 0.2, 1.5, 2.0]];
    let q = [[0.1, 0.4, 0.3, 0.2], [0.25, 0.25, 0.4, 0.1]];
    let marginals: f64 = (0..2)
        .map(|d| transport_on_line(&x[d], &p[d], &y[d], &q[d]))
        .sum();
    let joint_p: Vec<f64> = (0..9).map(|i| p[0][i / 3] * p[1][i % 3]).collect();
    let joint_q: Vec<f64> = (0..16).map(|j| q[0][j / 4] * q[1][j % 4]).collect();
    let joint = transport(&joint_p, &joint_q, |i, j| {
        (x[0][i / 3] - y[0][j / 4]).powi(2) + (x[1][i % 3] - y[1][j % 4]).powi(2)
    });
    assert_near(joint, marginals, 1e-9);
}

#[test]
fn laws_that_are_not_factorised_can_be_apart_with_equal_marginals() {
    // Both have fair coins as coordinates; one always shows equal sides, the other never.
    let equal: [[f64; 2]; 2] = [[0.0, 0.0], [1.0, 1.0]];
    let opposite = [[0.0, 1.0], [1.0, 0.0]];
    let half = [0.5, 0.5];
    let joint = transport(&half, &half, |i, j| {
        (0..2).map(|d| (equal[i][d] - opposite[j][d]).powi(2)).sum()
    });
    assert_near(joint, 1.0, 1e-12);
    for d in 0..2 {
        let x = equal.map(|point| point[d]);
        let y = opposite.map(|point| point[d]);
        assert_near(transport_on_line(&x, &half, &y, &half), 0.0, 1e-12);
    }
}

/// Theorem 2.2 of the paper.
#[test]
fn the_difference_of_means_is_a_lower_bound() {
    for law in laws() {
        for shift in [-3.0, -0.4, 0.0, 0.9, 6.0] {
            let cloud = CLOUD.map(|y| 0.7 * y + shift);
            let mean = cloud.iter().sum::<f64>() / cloud.len() as f64;
            let distance = Wasserstein.value(&law, &cloud).unwrap().sqrt();
            let gap = (law.mean() - mean).abs();
            assert!(
                gap <= distance + 1e-12,
                "{law:?} {shift}: {gap} > {distance}"
            );
        }
    }
    // With equality for a translation.
    let law = CountLaw::Poisson { rate: 5.0 };
    let shifted = population(&law, |z| z + 0.8);
    assert_near(Wasserstein.value_to(&law, &shifted).unwrap(), 0.64, 1e-9);
}

/// The remark after Theorem 2.2.
#[test]
fn the_squared_distance_of_two_coins_is_the_difference_of_their_means() {
    for (p, q) in [(0.2_f64, 0.7_f64), (0.5, 0.45), (0.9, 0.1)] {
        let law = CountLaw::Binomial {
            trials: 1,
            logit: (p / (1.0 - p)).ln(),
        };
        let other = Atoms::weighted(&[0.0, 1.0], &[1.0 - q, q]).unwrap();
        let value = Wasserstein.value_to(&law, &other).unwrap();
        assert_near(value, (p - q).abs(), 1e-12);
        let programme = transport_on_line(&[0.0, 1.0], &[1.0 - p, p], &[0.0, 1.0], &[1.0 - q, q]);
        assert_near(programme, (p - q).abs(), 1e-12);
    }
}

/// The reparameterisation of a coin: with `1{e > p}` for uniform `e` its mean would be `1 - p`.
#[test]
fn a_uniform_number_below_p_is_a_success() {
    let uniform: Vec<f64> = (0..1000).map(|k| (f64::from(k) + 0.5) / 1000.0).collect();
    for p in [0.2, 0.45, 0.9_f64] {
        let logit = (p / (1.0 - p)).ln();
        let coin = CountLaw::Binomial { trials: 1, logit };
        let below: Vec<f64> = uniform
            .iter()
            .map(|&e| f64::from(u8::from(e < p)))
            .collect();
        let above: Vec<f64> = uniform
            .iter()
            .map(|&e| f64::from(u8::from(e > p)))
            .collect();
        assert_near(Wasserstein.value(&coin, &below).unwrap(), 0.0, 1e-12);
        let wrong = Wasserstein.value(&coin, &above).unwrap();
        assert_near(wrong, (1.0 - 2.0 * p).abs(), 1e-12);
    }
}

/// The lemma on a coin and an arbitrary law: the quantile form, which also covers atoms.
#[test]
fn a_coin_takes_the_upper_quantiles_of_the_other_law() {
    // Continuous: the uniform law on [-0.5, 2.5], as the midpoints of many cells. With p = 0.37 the
    // threshold is t = 2.5 - 3 p and the integrals are elementary.
    let p: f64 = 0.37;
    let coin = CountLaw::Binomial {
        trials: 1,
        logit: (p / (1.0 - p)).ln(),
    };
    let count = 30_000;
    let midpoints: Vec<f64> = (0..count)
        .map(|k| -0.5 + 3.0 * (f64::from(k) + 0.5) / f64::from(count))
        .collect();
    let threshold = 2.5 - 3.0 * p;
    let cube = |x: f64| x * x * x / 9.0;
    let lemma = cube(threshold) - cube(-0.5) + cube(1.5) - cube(threshold - 1.0);
    assert_near(Wasserstein.value(&coin, &midpoints).unwrap(), lemma, 1e-8);

    // Atomic: no t has nu[t, infinity) = 0.3, so the set that defines the paper's t* is empty.
    let p: f64 = 0.3;
    let coin = CountLaw::Binomial {
        trials: 1,
        logit: (p / (1.0 - p)).ln(),
    };
    let points = [0.1, 0.45, 0.8, 1.4];
    let weights = [0.25, 0.25, 0.25, 0.25];
    let upper = |t: f64| points.iter().filter(|y| **y >= t).count() as f64 / 4.0;
    assert!(points.iter().all(|&t| (upper(t) - p).abs() > 0.04));
    // The quantile form splits the atom at the level 1 - p: 0.05 of the mass at 0.8 goes to 1.
    let quantile_form = 0.25 * (0.1_f64.powi(2) + 0.45_f64.powi(2))
        + 0.2 * 0.8_f64.powi(2)
        + 0.05 * 0.2_f64.powi(2)
        + 0.25 * 0.4_f64.powi(2);
    let value = Wasserstein.value(&coin, &points).unwrap();
    assert_near(value, quantile_form, 1e-14);
    let programme = transport_on_line(&[0.0, 1.0], &[1.0 - p, p], &points, &weights);
    assert_near(value, programme, 1e-9);
    // Its gradient is 1 - 2 Q(1 - p).
    assert_near(
        Wasserstein.mean_gradient(&coin, &points).unwrap(),
        1.0 - 2.0 * 0.8,
        1e-12,
    );
}

#[test]
fn neighbouring_poisson_laws_are_a_square_root_apart() {
    for d in [1e-4, 1e-3, 1e-2, 1e-1] {
        let law = CountLaw::Poisson { rate: 5.0 };
        let other = population(&CountLaw::Poisson { rate: 5.0 + d }, |z| z);
        let value = Wasserstein.value_to(&law, &other).unwrap();
        assert_near(value / d, 1.0, 1e-6);
    }
}

#[test]
fn the_exact_projection_is_the_global_minimum_from_every_start() {
    let law = CountLaw::Poisson { rate: 5.0 };
    // Near half a step the distance has several local minima, one of them at the old mean.
    for shift in [0.47, 0.49, 0.5, 0.51, 0.55] {
        let moved = population(&law, |z| z + shift);
        let at = |mean: f64| Wasserstein.value_to(&law.with_mean(mean), &moved).unwrap();
        let best = (0..=1000)
            .map(|k| at(4.5 + f64::from(k) * 0.002))
            .fold(f64::INFINITY, f64::min);
        for start in [1.0, 4.9, 5.0, 5.6, 6.3, 12.0] {
            let mean = Wasserstein.project_to(&law.with_mean(start), &moved);
            let mean = mean.unwrap();
            assert!(at(mean) <= best + 1e-12, "{shift} from {start}: {mean}");
        }
    }
}

#[test]
fn the_exact_projection_stalls_below_half_a_step() {
    let poisson = CountLaw::Poisson { rate: 5.0 };
    let coin = CountLaw::Binomial {
        trials: 1,
        logit: (0.3_f64 / 0.7).ln(),
    };
    for law in [poisson, coin] {
        for shift in [0.05, 0.25, 0.49, -0.49] {
            let moved = population(&law, |z| z + shift);
            let mean = Wasserstein.project_to(&law, &moved).unwrap();
            assert_near(mean, law.mean(), 1e-9);
        }
    }
    let jump = Wasserstein
        .project_to(&poisson, &population(&poisson, |z| z + 0.51))
        .unwrap();
    assert_near(jump - 5.0, 0.64, 0.02);
    let edge = Wasserstein
        .project_to(&coin, &population(&coin, |z| z + 0.51))
        .unwrap();
    assert_near(edge, 1.0, 1e-9);
}
