//! The drop-in and `estimate` give the same bits for the same key.

use straightflow::Key;
use straightflow::estimator::{EstimatorExt, Reduction};

use crate::device::dtypes;
use crate::gradients::{gradient, natural_gradient};
use crate::product::Product;
use crate::subject::{Failure, Subject};

/// Passes over estimators that are no drop-in.
pub fn drop_in(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        let product = Product::of(kind);
        let fail = |found: String| subject.failure("drop-in", &product, found);
        let estimator = subject.estimator();
        let Some(pathwise) = estimator.pathwise() else {
            return Ok(());
        };
        if pathwise.loss_reduction() != Reduction::Mean {
            return Ok(());
        }
        for dtype in dtypes().iter().copied() {
            let key = Key::new(21);
            let law = product.law(3, dtype);
            let leaf = law.leaf();
            let z = pathwise
                .sample(key, &leaf, estimator.draws())
                .map_err(|error| fail(error.to_string()))?;
            let loss = product.cost(z).mean();
            let dropped = natural_gradient(&leaf, &loss);
            let cost = |z| product.cost(z);
            let estimated = gradient(subject.estimator().as_ref(), key, &law, &cost)
                .map_err(|error| fail(error.to_string()))?;
            if dropped != estimated {
                return Err(fail(format!("drop-in {dropped:?}, estimate {estimated:?}")));
            }
            if dropped.iter().all(|g| *g == 0.0) {
                return Err(fail("all gradients are zero".to_owned()));
            }
        }
    }
    Ok(())
}
