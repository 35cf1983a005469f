//! Counted evaluations and backward passes are the declared price, and the surrogate's value is
//! the estimate of the objective.

use straightflow::Key;
use straightflow::distribution::Distribution;
use straightflow::estimator::EstimatorExt;
use straightflow::objective::ObjectiveKind;

use crate::device::tolerance;
use crate::gradients::{error, estimate, to_vec};
use crate::product::Product;
use crate::subject::{Failure, Subject};

pub fn cost(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        let product = Product::of(kind);
        let fail = |found: String| subject.failure("cost", &product, found);
        let estimator = subject.estimator();
        let leaf = product.law(2, burn::tensor::DType::F64).leaf();
        let cost = |z| product.cost(z);
        let estimate = estimate(estimator.as_ref(), Key::new(1), &leaf, &cost)
            .map_err(|error| fail(error.to_string()))?;
        let value = to_vec(estimate.surrogate.clone())[0];
        if estimate.surrogate.is_tracked() {
            let _ = estimate.surrogate.backward();
        }
        let price = estimator.price(leaf.law(), estimator.draws());
        let counted = [estimate.counts.evaluations(), estimate.counts.gradients()];
        if counted != [price.evaluations, price.gradients] {
            return Err(fail(format!("counted {counted:?}, declared {price:?}")));
        }
        if estimator.entry().objective == ObjectiveKind::Expectation {
            let values = to_vec(estimate.values);
            let noise = estimator.noise(leaf.law(), estimator.draws());
            let mean = if noise.is_empty() {
                // Nothing is drawn, so the value is the expectation itself.
                let costs = product.factors.iter().map(|factor| factor.expected_cost());
                costs.product()
            } else {
                values.iter().sum::<f64>() / values.len() as f64
            };
            let (least, most) = values
                .iter()
                .fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            if estimator.entry().weighted {
                // Each draw counts, none negatively; the library's tests have the weights.
                if !(least..=most).contains(&value) {
                    return Err(fail(format!("{value} is no weighted mean of {values:?}")));
                }
            } else if error(&[value], &[mean]) > tolerance(1e-12) {
                return Err(fail(format!("the surrogate is {value}, should be {mean}")));
            }
        }
        // The same call with the other objective is refused, and that is an error, not a count.
        if estimator.entry().objective == ObjectiveKind::Bound
            && estimator
                .estimate(Key::new(1), &leaf, |z| product.cost(z))
                .is_ok()
        {
            return Err(fail("a bound estimator took an expectation".to_owned()));
        }
    }
    Ok(())
}
