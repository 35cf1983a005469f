//! `straightflow bench`.

use serde_json::Value;

use crate::common::{errors, refused, run};

const SHORT: &[&str] = &[
    "bench",
    "--arch",
    "linear",
    "--batch",
    "50",
    "--steps",
    "2",
    "--warmup",
    "1",
    "--repetitions",
    "1",
    "--estimators",
];

#[test]
fn the_times_of_steps_are_json() {
    let output = run(&[SHORT, &["straight-through", "--json"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(table["latent"], "bernoulli");
    let rows = table["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{table}");
    assert_eq!(rows[0]["arch"], "linear");
    assert_eq!(rows[0]["estimator"], "straight-through");
    assert_eq!(rows[0]["steps"], 2);
    let [least, median] = ["least_ms", "median_ms"].map(|field| rows[0][field].as_f64());
    let (least, median) = (least.expect("a time"), median.expect("a time"));
    assert!(0.0 < least && least <= median, "{least}, {median}");
}

#[test]
fn the_times_of_steps_are_a_table() {
    let output = run(&[SHORT, &["straight-through", "arm"]].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let table = String::from_utf8(output.stdout).expect("text");
    for estimator in ["straight-through", "arm"] {
        let row = table.lines().find(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["linear", estimator, "50"])
        });
        assert!(row.is_some(), "{estimator}: {table}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let place = crate::Place::new();
    let root = place.root.path();
    let unknown = [SHORT, &["straight-thru"]].concat();
    refused(&unknown, "did you mean straight-through", root);
    let empty = [SHORT, &["arm", "--batch", "0"]].concat();
    refused(&empty, "the batch size must be at least 1", root);
    let output = run(&["bench", "--steps", "0"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
}
