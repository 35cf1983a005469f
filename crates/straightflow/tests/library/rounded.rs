//! Stochastic rounding: numbers by hand, the ends of a lattice, and the methods on it.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Distribution, FamilyKind, Rounded};
use straightflow::estimator::REGISTRY;
use straightflow::prelude::*;

use crate::scalar::build;
use crate::support::{assert_close, leaf, tensor, values};

/// `cos(1.3 z + 0.4) + 0.2 z^2`.
fn cost(z: Tensor<3>) -> Tensor<3> {
    ((z.clone() * 1.3 + 0.4).cos() + z.square() * 0.2).sum_dim(2)
}

fn rounded(step: f64, x: &[f64], dtype: DType) -> Rounded {
    Rounded::from_values(step, tensor(x, [1, x.len()], dtype)).expect("valid")
}

/// Computed apart from this library.
#[test]
fn numbers_by_hand() {
    for (dtype, tolerance) in [(DType::F32, 2e-6), (DType::F64, 1e-12)] {
        let q = rounded(0.5, &[0.8], dtype);
        let expectation = Exact::default().expectation(&q, cost).expect("two states");
        assert_eq!(expectation.states, 2);
        let value = values(expectation.value);
        assert_close("expectation", &value, &[0.261721722579], tolerance);
        let exact = values(Exact::default().gradient(&q, cost).expect("two states"));
        assert_close("exact", &exact, &[-0.952831084375], tolerance);
        let both = vec![tensor::<4>(&[0.5, 1.0], [1, 2, 1, 1], dtype)];
        let twice = Rounded::from_values(0.5, tensor(&[0.8, 0.8], [2, 1], dtype)).expect("valid");
        let single = Single::new(&twice, (), |z, _: &Rounded, ()| cost(z));
        let slopes = build("straight-through").gradient_of(both, &single);
        let slopes = values(slopes.expect("valid"));
        let mean = 0.4 * slopes[0] + 0.6 * slopes[1];
        assert_close("straight-through", &[mean], &[-0.904558629462], tolerance);
        // Of both neighbours alike: the trapezoid rule.
        let mean = 0.5 * (slopes[0] + slopes[1]);
        assert_close("trapezoid", &[mean], &[-0.908407223430], tolerance);
        let each = build("finite-difference").gradient(Key::new(1), &q, cost);
        assert_close(
            "difference",
            &values(each.expect("valid")),
            &exact,
            tolerance,
        );
        let all = build("enumerate").gradient(Key::new(1), &q, cost);
        assert_close(
            "enumeration",
            &values(all.expect("valid")),
            &exact,
            tolerance,
        );
        let entropy = -(0.4f64 * 0.4f64.ln() + 0.6 * 0.6f64.ln());
        let got = values(q.entropy().expect("closed form"));
        assert_close("entropy", &got, &[entropy], tolerance);
        assert_close("variance", &values(q.variance()), &[0.06], tolerance);
        let other = rounded(0.5, &[0.7], dtype);
        let divergence = 0.6f64 * (0.6f64 / 0.4).ln() + 0.4 * (0.4f64 / 0.6).ln();
        let got = values(q.kl(&other).expect("one lattice"));
        assert_close("divergence", &got, &[divergence], tolerance);
    }
}

/// On a lattice point the derivative is that of the cell above, at the upper bound that of the last
/// cell, and outside of the bounds it is zero.
#[test]
fn ends_and_lattice_points() {
    let x = [0.5, 0.0, -0.5, 1.5, 1.7, -3.0, 1.2];
    let points = leaf::<2>(&x, [1, 7], DType::F64);
    let q = Rounded::bounded(0.5, Some(-1.0), Some(1.5), points.clone()).expect("valid");
    let f = |z: f64| (1.3 * z + 0.4).cos() + 0.2 * z * z;
    let slope = |lo: f64| (f(lo + 0.5) - f(lo)) / 0.5;
    let want = [
        slope(0.5),
        slope(0.0),
        slope(-0.5),
        slope(1.0),
        0.0,
        0.0,
        slope(1.0),
    ];
    for spec in ["enumerate", "finite-difference"] {
        let got = build(spec).gradient(Key::new(2), &q, cost);
        assert_close(spec, &values(got.expect("valid")), &want, 1e-12);
    }
    let mean = values(q.mean());
    assert_eq!(mean, [0.5, 0.0, -0.5, 1.5, 1.5, -1.0, 1.2]);
    let z = values(q.sample(Key::new(3), 200));
    assert!(z.chunks(7).all(|z| z[..6] == mean[..6]));
    assert!(
        z.iter()
            .all(|z| (-1.0..=1.5).contains(z) && (2.0 * z).fract() == 0.0)
    );
    let z = build("straight-through")
        .draw(Key::new(4), &q)
        .expect("valid");
    let gradient = points
        .grad(&(z * 3.0).sum().backward())
        .expect("on the tape");
    assert_eq!(values(gradient), [3.0, 3.0, 3.0, 3.0, 0.0, 0.0, 3.0]);
}

/// The mean of 100,000 draws is within six standard errors of the number, an event of probability
/// 1 - 2e-9.
#[test]
fn the_mean_is_the_number() {
    let q = rounded(0.3, &[0.47], DType::F64);
    let z = values(q.sample(Key::new(5), 100_000));
    let mean = z.iter().sum::<f64>() / 1e5;
    let error = (values(q.variance())[0] / 1e5).sqrt();
    assert!((mean - 0.47).abs() < 6.0 * error, "{mean} +- {error}");
}

/// A score of `1 / P(z)` has no bounded variance, so methods that use one refuse the family.
#[test]
fn scores_are_refused() {
    let q = rounded(1.0, &[2.05], DType::F64);
    for entry in REGISTRY {
        let takes = entry.families.contains(&FamilyKind::Rounded);
        let known = ["straight-through", "finite-difference", "enumerate"];
        assert_eq!(takes, known.contains(&entry.id), "{}", entry.id);
    }
    let refused = build("reinforce").gradient(Key::new(1), &q, cost);
    assert!(matches!(refused, Err(Error::UnsupportedFamily { .. })));
    let all = FamilyKind::ALL.iter().copied();
    let with_score: Vec<FamilyKind> = all.filter(|kind| *kind != FamilyKind::Rounded).collect();
    assert_eq!(with_score, FamilyKind::WITH_SCORE);
}

#[test]
fn what_is_no_lattice_is_refused() {
    let x = || tensor::<2>(&[0.3], [1, 1], DType::F64);
    let message = |made: Result<Rounded>| made.expect_err("no lattice").to_string();
    assert_eq!(
        message(Rounded::from_values(0.0, x())),
        "the step of a lattice is 0: it must be positive and finite"
    );
    assert!(message(Rounded::bounded(0.5, Some(0.2), None, x())).contains("a multiple"));
    assert!(message(Rounded::bounded(0.5, Some(1.0), Some(1.0), x())).contains("less than"));
    Rounded::bounded(0.1, Some(-0.3), Some(0.7), x()).expect("multiples up to rounding");
}
