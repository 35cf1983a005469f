//! At the ends of the parameter range gradients are finite numbers, in both precisions.

use straightflow::distribution::Law;
use straightflow::{Error, Key};

use crate::device::dtypes;
use crate::gradients::{gradient, tensor};
use crate::problem::{OBJECTIVES, problems};
use crate::subject::{Failure, Subject};

pub fn extremes(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        let moderate = &problems(kind)[0];
        let k = moderate.natural.len();
        let counts = !moderate.family.is_finite();
        let ends = match counts {
            true => [1e-6f64.ln(), 1e6f64.ln()],
            false => [-1e4, 1e4],
        };
        for first in ends {
            let mut natural = vec![0.0; k];
            natural[0] = first;
            let large = counts && first > 0.0;
            for objective in OBJECTIVES {
                for dtype in dtypes().iter().copied() {
                    let what = format!("{kind} {natural:?}, {}, {dtype:?}", objective.name);
                    let fail = |found: String| subject.failure("extremes", &what, found);
                    let law = Law::new(moderate.family, tensor(natural.clone(), [1, 1, k], dtype));
                    let law = law.map_err(|error| fail(error.to_string()))?;
                    let cost = |z| objective.cost(z);
                    let estimator = subject.estimator();
                    match gradient(estimator.as_ref(), Key::new(5), &law, &cost) {
                        Ok(gradient) if gradient.iter().all(|g| g.is_finite()) => {}
                        Ok(gradient) => return Err(fail(format!("gradient {gradient:?}"))),
                        // An enumeration may say that it would take for ever.
                        Err(Error::TooManyStates { .. }) => {}
                        // And noise that grows with the rate may be refused beforehand.
                        Err(_) if large && estimator.check(&law, estimator.draws()).is_err() => {}
                        Err(error) => return Err(fail(error.to_string())),
                    }
                }
            }
        }
    }
    Ok(())
}
