//! At the ends of the parameter range gradients are finite numbers, in both precisions.

use burn::tensor::DType;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::{Error, Key};

use crate::gradients::{gradient, tensor};
use crate::problem::{OBJECTIVES, problems};
use crate::subject::{Failure, Subject};

pub fn extremes(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        let moderate = &problems(kind)[0];
        let k = moderate.natural.len();
        let parameters: Vec<Vec<f64>> = match kind {
            FamilyKind::Bernoulli | FamilyKind::Binomial => vec![vec![-1e4], vec![1e4]],
            FamilyKind::Poisson | FamilyKind::NegativeBinomial => {
                vec![vec![1e-6f64.ln()], vec![1e6f64.ln()]]
            }
            FamilyKind::Categorical => [1e4, -1e4]
                .map(|first| {
                    let mut logits = vec![0.0; k];
                    logits[0] = first;
                    logits
                })
                .to_vec(),
        };
        for natural in parameters {
            let large = matches!(kind, FamilyKind::Poisson | FamilyKind::NegativeBinomial)
                && natural[0] > 0.0;
            for objective in OBJECTIVES {
                for dtype in [DType::F32, DType::F64] {
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
                        Err(_) if large && estimator.check(&law, estimator.samples()).is_err() => {}
                        Err(error) => return Err(fail(error.to_string())),
                    }
                }
            }
        }
    }
    Ok(())
}
