//! The projection as an argmin.

use std::sync::Arc;

use straightflow::distribution::CountLaw;
use straightflow::projection::categorical::OneHotMmd;
use straightflow::projection::{
    Discrepancy, MeanDifference, Mmd, MmdLaw, ProjectionError, SelfTerms, Wasserstein, project,
};

use crate::{assert_near, expectation, kernels, laws, mmd, population, rbf};

const CLOUD: [f64; 7] = [0.3, 0.8, 1.2, 2.6, 2.9, 3.4, 5.1];

#[test]
fn projections_beat_a_fine_grid() {
    let mut discrepancies: Vec<Arc<dyn Discrepancy>> =
        vec![Arc::new(MeanDifference), Arc::new(Wasserstein)];
    for kernel in kernels() {
        discrepancies.push(Arc::new(Mmd::new(kernel)));
    }
    for shape in laws() {
        let largest = shape.maximum().map_or(9.0, |last| last as f64);
        for discrepancy in &discrepancies {
            let mean = project(&shape, &CLOUD, discrepancy.as_ref()).unwrap();
            let at = |mean: f64| discrepancy.value(&shape.with_mean(mean), &CLOUD).unwrap();
            let best = at(mean);
            for k in 0..=300 {
                let other = largest * f64::from(k) / 300.0;
                assert!(
                    best <= at(other) + 1e-12,
                    "{shape:?} {discrepancy:?}: {mean} loses to {other}"
                );
            }
        }
    }
}

#[test]
fn the_family_is_recovered_from_its_own_law() {
    for law in laws() {
        let own = population(&law, |z| z);
        let start = law.with_mean(0.8 * law.mean());
        for kernel in kernels() {
            let mean = Mmd::new(kernel).project_to(&start, &own).unwrap();
            assert_near(mean, law.mean(), 1e-9);
        }
        let mean = MeanDifference.project_to(&start, &own).unwrap();
        assert_near(mean, law.mean(), 1e-12);
        let mean = Wasserstein.project_to(&start, &own).unwrap();
        assert_near(mean, law.mean(), 1e-7);
    }
}

/// In the geometry of a kernel the family is a curve with tangent `d mu / dm` of squared length
/// `M`, and a small move of the samples along `-f'` projects onto it: the argmin moves the mean by
/// `-eps E[c f'] / M`, where `E[c f']` is the inner product of the move with the tangent.
#[test]
fn for_small_steps_the_argmin_moves_along_the_projected_gradient() {
    let slope = |z: f64| 0.4 * (z - 3.3) + (0.9 * z).sin();
    for law in laws() {
        for h in [1.0, 2.5] {
            let kernel = rbf(h);
            let prepared = MmdLaw::new(&law, &kernel).unwrap();
            let inner = expectation(&law, |z| prepared.c(z) * slope(z));
            let predicted = -inner / prepared.self_terms().curvature;
            let error = |eps: f64| {
                let moved = population(&law, |z| z - eps * slope(z));
                let mean = mmd(h).project_to(&law, &moved).unwrap();
                (mean - law.mean()) / eps - predicted
            };
            let (coarse, fine) = (error(2e-3), error(2e-4));
            assert!(
                fine.abs() < 5e-3 * (1.0 + predicted.abs()),
                "{law:?} {h}: {fine:e}"
            );
            // The deviation is linear in eps.
            assert_near(coarse / fine, 10.0, 0.6);
        }
    }
}

#[test]
fn the_curvature_is_half_the_second_derivative_at_the_minimum() {
    for law in laws() {
        for kernel in kernels() {
            let own = population(&law, |z| z);
            let curvature = SelfTerms::new(&law, kernel.as_ref()).curvature;
            let discrepancy = Mmd::new(kernel);
            let step = 1e-4 * law.mean();
            let gradient = |mean: f64| {
                discrepancy
                    .mean_gradient_to(&law.with_mean(mean), &own)
                    .unwrap()
            };
            let bend = (gradient(law.mean() + step) - gradient(law.mean() - step)) / (2.0 * step);
            assert_near(bend, 2.0 * curvature, 1e-6 * curvature.max(0.1));
        }
    }
}

#[test]
fn means_are_kept_inside_the_family() {
    let coin = CountLaw::Binomial {
        trials: 1,
        logit: 0.0,
    };
    assert_eq!(project(&coin, &[1.4, 1.9], &MeanDifference), Ok(1.0));
    assert_eq!(project(&coin, &[-0.4], &MeanDifference), Ok(0.0));
    assert_eq!(project(&coin, &[0.9, 1.3], &mmd(1.0)), Ok(1.0));
    assert_eq!(project(&coin, &[1.6, 1.7], &Wasserstein), Ok(1.0));
    let poisson = CountLaw::Poisson { rate: 2.0 };
    assert_eq!(project(&poisson, &[-0.1, -0.2], &mmd(1.0)), Ok(0.0));
    assert_eq!(project(&poisson, &[-1.0, -2.0], &Wasserstein), Ok(0.0));
}

#[test]
fn unusable_arguments_are_named() {
    let law = CountLaw::Poisson { rate: 5.0 };
    let kernel = rbf(1.0);
    assert_eq!(
        project(&law, &[], &Wasserstein),
        Err(ProjectionError::NoSamples)
    );
    assert_eq!(
        mmd(1.0).value(&law, &[1.0, f64::INFINITY]),
        Err(ProjectionError::Sample {
            index: 1,
            value: f64::INFINITY
        })
    );
    let bad = CountLaw::Poisson { rate: -1.0 };
    assert_eq!(
        MmdLaw::new(&bad, &kernel).map(|_| ()),
        Err(ProjectionError::Law(bad))
    );
    let still = CountLaw::Binomial {
        trials: 0,
        logit: 0.0,
    };
    assert_eq!(
        Wasserstein.mean_gradient(&still, &[1.0]),
        Err(ProjectionError::PointMass)
    );
    assert_eq!(
        MeanDifference.control_variate_gradient(&law, &[1.0], &[1.0, 2.0]),
        Err(ProjectionError::Length {
            expected: 2,
            got: 1
        })
    );
}

/// The squared discrepancy of one-hot vectors is `(1 - k) |p|^2 - 2 p.b` plus a constant, with `k =
/// exp(-1 / h^2)` and `b_i = mean_n exp(-|e_i - y_n|^2 / (2 h^2))`, so its argmin is the Euclidean
/// projection of `b / (1 - k)` onto the simplex.
fn one_hot_projection(h: f64, samples: &[Vec<f64>]) -> Vec<f64> {
    let spread = -(-1.0 / (h * h)).exp_m1();
    let target = (0..samples[0].len()).map(|i| {
        let kernels = samples.iter().map(|y| {
            let square: f64 = y.iter().map(|y| y * y).sum();
            (-(square - 2.0 * y[i] + 1.0) * 0.5 / (h * h)).exp()
        });
        kernels.sum::<f64>() / samples.len() as f64 / spread
    });
    onto_simplex(&target.collect::<Vec<_>>())
}

/// The nearest point of the simplex, `max(v_i - t, 0)` with the threshold `t` at which these sum to
/// one.
fn onto_simplex(vector: &[f64]) -> Vec<f64> {
    let mut sorted = vector.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut threshold) = (0.0, 0.0);
    for (j, entry) in sorted.iter().enumerate() {
        sum += entry;
        let candidate = (sum - 1.0) / (j + 1) as f64;
        if *entry > candidate {
            threshold = candidate;
        }
    }
    vector.iter().map(|v| (v - threshold).max(0.0)).collect()
}

#[test]
fn one_hot_projections_lie_on_the_simplex_and_are_minimal() {
    let samples = vec![
        vec![1.2, -0.1, 0.0],
        vec![0.3, 0.9, -0.2],
        vec![1.0, 0.1, 0.05],
    ];
    for h in [0.7, 1.5] {
        let one_hot = OneHotMmd::new(h).unwrap();
        let p = one_hot_projection(h, &samples);
        assert_near(p.iter().sum(), 1.0, 1e-14);
        assert!(p.iter().all(|p| *p >= 0.0));
        let value = |p: &[f64]| {
            let logits: Vec<f64> = p.iter().map(|p| p.max(1e-300).ln()).collect();
            one_hot.value(&logits, &samples).unwrap()
        };
        let best = value(&p);
        for i in 0..=40 {
            for j in 0..=40 - i {
                let q = [f64::from(i), f64::from(j), f64::from(40 - i - j)].map(|q| q / 40.0);
                assert!(best <= value(&q) + 1e-12, "h = {h}: {p:?} loses to {q:?}");
            }
        }
    }
    assert_eq!(onto_simplex(&[0.2, 0.3, 0.5]), vec![0.2, 0.3, 0.5]);
    assert_eq!(onto_simplex(&[2.0, 0.0, -1.0]), vec![1.0, 0.0, 0.0]);
    let even = onto_simplex(&[0.6, 0.6, -3.0]);
    assert_near(even[0], 0.5, 1e-15);
}
