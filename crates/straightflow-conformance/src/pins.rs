//! Pinned gradients: for each specification and family, the gradient of a fixed problem for a fixed
//! key. A change of these numbers changes everyone's results, so it is a changelog event.

use std::collections::BTreeMap;
use std::path::PathBuf;

use burn::tensor::DType;
use straightflow::Key;

use crate::gradients::gradient;
use crate::product::Product;
use crate::subject::Subject;

/// Gradients by specification and family.
pub type Pins = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

/// The command that rewrites the file.
pub const REWRITE: &str =
    "STRAIGHTFLOW_PIN=1 cargo test --release -p straightflow-conformance pins";

/// Relative to the largest entry of a gradient.
const TOLERANCE: f64 = 1e-6;

/// The file.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pinned.json")
}

/// The gradients of a subject: a product of three costs, one batch element, key 2026, double
/// precision.
///
/// # Errors
///
/// What the estimator refuses.
pub fn gradients(subject: &Subject) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let families = subject.families().map_err(|failure| failure.to_string())?;
    let mut pins = BTreeMap::new();
    for kind in families {
        let product = Product::of(kind);
        let cost = |z| product.cost(z);
        let law = product.law(1, DType::F64);
        let gradient = gradient(subject.estimator().as_ref(), Key::new(2026), &law, &cost)
            .map_err(|error| format!("{}: {error}", subject.spec))?;
        pins.insert(kind.to_string(), gradient);
    }
    Ok(pins)
}

/// What differs between the pins in the file and the gradients of today, line by line.
pub fn differences(pinned: &Pins, today: &Pins) -> Vec<String> {
    let mut lines = Vec::new();
    for (spec, families) in today {
        for (family, got) in families {
            let Some(want) = pinned.get(spec).and_then(|families| families.get(family)) else {
                lines.push(format!("{spec}, {family}: not pinned"));
                continue;
            };
            let size = want.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE * size;
            if got.len() != want.len() || !got.iter().zip(want).all(close) {
                lines.push(format!("{spec}, {family}: {got:?}, pinned {want:?}"));
            }
        }
    }
    for (spec, families) in pinned {
        for family in families.keys() {
            let known = today
                .get(spec)
                .is_some_and(|today| today.contains_key(family));
            if !known {
                lines.push(format!("{spec}, {family}: pinned, but no longer there"));
            }
        }
    }
    lines
}
