//! `compare`: against enumeration of the estimates themselves, with a reference in the place of the
//! truth, and what it says.

use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::compare::{Comparison, Measured, Moments, Source};
use straightflow::prelude::*;

fn tensor<const D: usize>(values: &[f64], shape: [usize; D], dtype: DType) -> Tensor<D> {
    let data = TensorData::new(values.to_vec(), shape);
    Tensor::from_data(data, (&Device::flex(), dtype))
}

const LOGITS: [f64; 3] = [0.4, -0.8, 1.1];

fn bits(batch: usize) -> Bernoulli {
    let logits = tensor(&LOGITS.repeat(batch), [batch, 3], DType::F64);
    Bernoulli::from_logits(logits).expect("valid")
}

/// `sin(1.3 t + .2) + t^2 / 2 + .6 b0 b2` with `t = .7 b0 - 1.1 b1 + .4 b2`.
fn cost(z: Tensor<3>) -> Tensor<3> {
    let bit = |j: usize| z.clone().narrow(2, j, 1);
    let t = bit(0) * 0.7 - bit(1) * 1.1 + bit(2) * 0.4;
    (t.clone() * 1.3 + 0.2).sin() + t.square() * 0.5 + bit(0) * bit(2) * 0.6
}

fn measured(table: &Comparison, row: usize) -> &Measured {
    table.rows[row].result.as_ref().expect("it was measured")
}

/// The variances of RLOO(2) and DisARM on this cost are known, and so is the exact gradient. The relative
/// standard error of a variance of 4,000 estimates is below 5 %; five times that is allowed.
#[test]
fn known_variances_are_found() {
    let exact: [f64; 3] = [0.290_349_713_175, -0.264_257_659_656, 0.144_609_854_153];
    let specs = [
        "reinforce:baseline=loo,samples=2",
        "disarm",
        "straight-through",
    ];
    let budget = Budget::evaluations(2)
        .with_replicates(4_000)
        .with_copies(500);
    let table = compare(Key::new(1), &bits(1), cost, specs, budget).expect("valid");
    assert_eq!(table.truth, Source::Enumeration { states: 8 });
    let norm = exact.iter().map(|g| g * g).sum::<f64>().sqrt();
    assert!((table.norm - norm).abs() < 1e-9, "{}", table.norm);
    for (row, variance) in [(0, 0.534_015_497_433), (1, 0.393_663_902_569)] {
        let one = measured(&table, row);
        assert!((one.std.powi(2) / variance - 1.0).abs() < 0.25, "{one:?}");
        assert!(one.bias <= 5.0 * one.bias_error, "{one:?}");
        assert!((one.slope - 1.0).abs() < 0.2, "{one:?}");
    }
    assert_eq!((table.rows[0].evaluations, table.rows[0].gradients), (2, 0));
    assert!(table.rows[1].unbiased && !table.rows[2].unbiased);
    // Two evaluations buy one draw with its backward pass.
    assert_eq!((table.rows[2].evaluations, table.rows[2].gradients), (1, 1));
    assert_eq!(table.best_unbiased, Some(1), "{table}");
    // Noise averages out and a bias does not: over one step the least noisy one is best.
    let once = Budget::evaluations(2)
        .with_replicates(4_000)
        .with_copies(500)
        .with_horizon(1);
    let table = compare(Key::new(1), &bits(1), cost, specs, once).expect("valid");
    assert_eq!(table.best, Some(2), "{table}");
    let one = measured(&table, 2);
    assert_eq!(one.lasting, one.error);
}

/// The bias of straight-through, from all eight samples: with the truth enumerated, and with a
/// reference in its place.
#[test]
fn a_bias_is_found_with_and_without_enumeration() {
    let p = LOGITS.map(|x| 1.0 / (1.0 + (-x).exp()));
    let states: Vec<f64> = (0..8)
        .flat_map(|i| [0, 1, 2].map(|j| f64::from(i >> j & 1)))
        .collect();
    let noise = vec![tensor(&states, [1, 8, 3, 1], DType::F64)];
    let each = StraightThrough::default().gradient(noise, &bits(8), cost);
    let each = each.expect("valid").into_data();
    let each: Vec<f64> = each.try_into_vec().expect("f64");
    let exact: [f64; 3] = [0.290_349_713_175, -0.264_257_659_656, 0.144_609_854_153];
    let mut gap = exact.map(|g| -g);
    for (i, row) in each.chunks(3).enumerate() {
        let bit = |j: usize| i >> j & 1 == 1;
        let weight: f64 = (0..3)
            .map(|j| if bit(j) { p[j] } else { 1.0 - p[j] })
            .product();
        for (gap, g) in gap.iter_mut().zip(row) {
            *gap += weight * g;
        }
    }
    let want = gap.iter().map(|g| g * g).sum::<f64>().sqrt();
    for states in [8, 7] {
        let budget = Budget {
            states,
            ..Budget::evaluations(2)
                .with_replicates(4_000)
                .with_copies(500)
        };
        let table = compare(Key::new(3), &bits(1), cost, ["straight-through"], budget);
        let table = table.expect("valid");
        let one = measured(&table, 0);
        println!("{table}\nthe bias should be {want}");
        assert!(
            (one.bias - want).abs() < 5.0 * one.bias_error,
            "{one:?} {want}"
        );
        assert!(one.bias_error < 0.2 * want, "{one:?}");
        assert_eq!(matches!(table.truth, Source::Reference { .. }), states == 7);
    }
}

/// What cannot be measured says why, and the rest is compared; mistakes of the caller are errors.
#[test]
fn failures_are_rows_and_mistakes_are_errors() {
    let budget = || {
        Budget::evaluations(2)
            .with_replicates(20)
            .with_training(5, 0.01)
    };
    let specs = [
        "vimco",
        "carms",
        "finite-difference",
        "double-cv",
        "rebar",
        "arm",
        "reinforce:baseline=loo",
        "arms:sampels=4",
    ];
    let table = compare(Key::new(1), &bits(2), cost, specs, budget()).expect("valid");
    let because = |row: usize| table.rows[row].result.clone().expect_err("it fails");
    assert!(because(0).contains("bound"), "{}", because(0));
    assert!(because(1).contains("categorical"), "{}", because(1));
    assert!(because(2).contains("takes more than"), "{}", because(2));
    assert!(because(3).contains("takes more than"), "{}", because(3));
    assert!(table.rows[5].result.is_ok());
    // Options that do not fit by themselves.
    assert_eq!(
        because(6),
        "`reinforce` needs at least 2 samples with these options, got 1; set `samples=2`",
        "{table}"
    );
    assert!(because(7).contains("samples"), "{}", because(7));
    let refused = &table.rows[6];
    assert_eq!(refused.spec.to_string(), "reinforce:baseline=loo");
    assert!(refused.unbiased && !refused.trained);
    assert_eq!((refused.evaluations, refused.gradients), (0, 0));
    assert_eq!((table.best, table.best_unbiased), (Some(5), Some(5)));
    let text = table.to_string();
    assert!(
        text.contains("Averaged over 1000 steps `arm` has the smallest error"),
        "{text}"
    );

    // A step has no gradient, but values.
    let step = |z: Tensor<3>| {
        z.sum_dim(2)
            .inner()
            .greater_elem(1.5)
            .float()
            .cast(DType::F64)
    };
    let specs = ["straight-through", "disarm"];
    let few = Budget {
        states: 1,
        ..budget()
    };
    let table = compare(Key::new(1), &bits(1), step, specs, few).expect("valid");
    assert!(table.rows[0].result.is_err() && table.rows[1].result.is_ok());
    let Source::Reference { spec, .. } = &table.truth else {
        panic!("{:?}", table.truth);
    };
    assert_eq!(spec.id(), "reinforce");

    let error = |specs: &[&str], budget| {
        let table = compare(Key::new(1), &bits(1), cost, specs, budget);
        table.map(|_| ()).expect_err("a mistake")
    };
    let error_of = error(&["disram"], budget());
    assert!(
        matches!(error_of, Error::UnknownEstimator { .. }),
        "{error_of}"
    );
    let malformed = error(&["disarm:samples"], budget());
    assert!(
        matches!(malformed, Error::MalformedSpec { .. }),
        "{malformed:?}"
    );
    let few = budget().with_replicates(3);
    assert!(matches!(
        error(&["disarm"], few),
        Error::InvalidOption { .. }
    ));
}

/// Everything but the time is a function of the key.
#[test]
fn a_key_gives_the_same_table() {
    let run = |seed: u64| {
        let budget = Budget::evaluations(8)
            .with_replicates(50)
            .with_training(10, 0.01);
        let specs = ["relax", "debiased-st", "rodeo"];
        let table = compare(Key::new(seed), &bits(2), cost, specs, budget).expect("valid");
        let row = |row: usize| {
            let one = measured(&table, row);
            [one.bias, one.bias_error, one.std, one.error, one.slope]
        };
        [row(0), row(1), row(2)]
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn moments_of_known_estimates() {
    // Mean (2, 0), truth (1, 0): the bias is 1, the squared distances from the mean are 1 and
    // 1.
    let moments = Moments::of(&[1.0, 0.0, 3.0, 0.0], &[1.0, 0.0]);
    assert_eq!(moments.bias, 1.0);
    assert_eq!(moments.std, 2.0f64.sqrt());
    assert_eq!(moments.rmse, 2.0f64.sqrt());
    assert_eq!(moments.slope, Some(2.0));
    assert_eq!(Moments::of(&[-1.0, -1.0], &[0.5]).bias, -1.5);
}
