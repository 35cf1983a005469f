//! The expectation of an estimate without Monte Carlo, against the exact gradient or the published
//! target.

use crate::enumeration::moments;
use crate::gradients::error;
use crate::subject::{Failure, Subject};

/// Relative to the larger of 1 and the target.
const TOLERANCE: f64 = 1e-9;

/// Passes over noise that cannot be enumerated; for that there is the statistical check.
pub fn expectation(subject: &Subject) -> Result<(), Failure> {
    for problem in subject.problems()? {
        let fail = |found: String| subject.failure("expectation", &problem, found);
        let estimator = subject.estimator();
        let Some(moments) = moments(estimator.as_ref(), &problem).map_err(fail)? else {
            continue;
        };
        let expected = subject.expected(&problem)?;
        // A target that was sampled itself is for the statistical check.
        if expected.error.iter().any(|error| *error > 0.0) {
            continue;
        }
        let want = expected.mean;
        let gap = error(&moments.mean, &want);
        if gap > TOLERANCE {
            return Err(fail(format!(
                "expected gradient {:?}, should be {want:?}, error {gap:.1e}",
                moments.mean
            )));
        }
        // The estimates of a constant vary, their mean does not: no tolerance is hidden above.
        if problem.objective.name == "constant" && moments.mean.iter().any(|g| g.abs() > TOLERANCE)
        {
            return Err(fail(format!("gradient {:?} of a constant", moments.mean)));
        }
    }
    Ok(())
}
