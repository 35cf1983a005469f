//! The committed runs against the results of an independent implementation.

use std::path::PathBuf;

use straightflow_experiments::table2::{TableRow, TableSummary};

fn rows(name: &str) -> Vec<TableRow> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let path = place.join(name).join("summary.json");
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let summary: TableSummary = serde_json::from_slice(&bytes).expect("a summary of a table");
    assert!(summary.failures.is_empty());
    summary.rows
}

fn row(name: &str, arch: &str, estimator: &str) -> TableRow {
    let mut rows = rows(name).into_iter();
    let row = rows.find(|row| row.arch == arch && row.estimator == estimator);
    row.unwrap_or_else(|| panic!("{name} has no row {arch} {estimator}"))
}

/// Test negative ELBOs after 10, 50 and 100 epochs, means over three seeds, of a program that shares no
/// code with this one: protocol A, linear, the direct term dropped, the same initialisation.
const INDEPENDENT: [(&str, [f64; 3], f64); 2] = [
    ("straight-through", [137.6, 128.8, 124.1], 0.7),
    ("arm:preset=paper", [143.6, 127.5, 120.6], 1.5),
];

#[test]
fn three_seeds_agree_with_an_independent_implementation() {
    for (estimator, expected, within) in INDEPENDENT {
        let row = row("2026-11-16-table2-linear", "linear", estimator);
        assert_eq!((row.seeds, row.epochs, row.unfinished), (3, 100, 0));
        for (epoch, expected) in [10, 50, 100].into_iter().zip(expected) {
            let measured = &row.curve[epoch - 1];
            assert_eq!(measured.epoch, epoch as u64);
            let difference = measured.test_nelbo - expected;
            assert!(
                difference.abs() <= within,
                "{estimator} after {epoch} epochs: {} is {difference:+.2} from {expected}",
                measured.test_nelbo
            );
        }
    }
}

#[test]
fn the_runs_that_the_page_cites_are_there() {
    let table = "2026-11-16-table2-linear";
    let deep = "2026-11-16-table2-deep";
    let pwgf = "2026-11-16-table2-pwgf";
    let runs = [
        (table, "linear", "straight-through"),
        (table, "linear", "arm:preset=paper"),
        (table, "linear", "arm"),
        (pwgf, "linear", "pwgf:preset=paper"),
        (deep, "two-layer", "straight-through"),
        (deep, "two-layer", "arm"),
        (deep, "nonlinear", "straight-through"),
        (deep, "nonlinear", "arm"),
    ];
    for (name, arch, estimator) in runs {
        let row = row(name, arch, estimator);
        assert_eq!(
            (row.epochs, row.curve.len()),
            (100, 100),
            "{arch} {estimator}"
        );
        assert!(row.test_bound_100 < row.test_nelbo, "{arch} {estimator}");
        assert!(row.paper.is_some(), "{arch} {estimator}");
    }
}

/// What the page of debiased straight-through claims: three seeds after 100 epochs on the linear model,
/// beside ARM's, and the order of the variances at several times of training.
#[test]
fn debiased_straight_through_is_ahead_of_arm() {
    let table = "2026-11-16-table2-debiased";
    let arm = row("2026-11-16-table2-linear", "linear", "arm").test_nelbo;
    for (estimator, most) in [
        ("debiased-st", 115.5),
        ("debiased-st:choice=variance", 116.5),
    ] {
        let row = row(table, "linear", estimator);
        assert_eq!((row.seeds, row.epochs, row.unfinished), (3, 100, 0));
        assert!(row.test_nelbo <= most, "{estimator}: {}", row.test_nelbo);
        assert!(
            row.test_nelbo <= arm - 3.0,
            "{estimator}: {}",
            row.test_nelbo
        );
    }
    let variance = |estimator: &str, epoch: usize| {
        let row = row("2026-11-16-table2-unbiased", "linear", estimator);
        row.curve[epoch - 1]
            .gradient_variance
            .expect("it was measured")
    };
    for epoch in [1, 5, 10, 20, 50, 100] {
        let order = ["debiased-st", "arms", "disarm"].map(|estimator| variance(estimator, epoch));
        assert!(order.is_sorted(), "after {epoch} epochs: {order:?}");
    }
}
