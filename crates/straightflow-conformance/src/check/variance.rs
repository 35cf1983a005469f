//! The variance of one estimate: by enumeration of the declared noise against the closed form, and
//! of drawn estimates against both.

use burn::tensor::DType;
use straightflow::Key;

use super::statistical::{CRITICAL, hash};
use crate::enumeration::{Moments, moments};
use crate::gradients::{error, replicate};
use crate::problem::Problem;
use crate::reference;
use crate::subject::{Failure, Subject, Target};

/// Of enumeration against the closed form.
const TOLERANCE: f64 = 1e-8;
/// Estimates that are drawn.
const DRAWS: usize = 20_000;

pub fn variance(subject: &Subject) -> Result<(), Failure> {
    for problem in subject.problems()? {
        let fail = |found: String| subject.failure("variance", &problem, found);
        let estimator = subject.estimator();
        let closed = closed_form(subject, &problem);
        let enumerated = moments(estimator.as_ref(), &problem).map_err(fail)?;
        if let (Some(closed), Some(enumerated)) = (&closed, &enumerated) {
            let gap = error(&enumerated.variance, closed);
            if gap > TOLERANCE {
                return Err(fail(format!(
                    "variance {:?} by enumeration, {closed:?} in closed form",
                    enumerated.variance
                )));
            }
        }
        if closed.is_some() || enumerated.is_some() {
            drawn(subject, &problem, closed.as_deref(), enumerated.as_ref()).map_err(fail)?;
        }
    }
    Ok(())
}

fn closed_form(subject: &Subject, problem: &Problem) -> Option<Vec<f64>> {
    if let Some(variance) = subject.variance {
        return Some(variance(problem));
    }
    let estimator = subject.estimator();
    let config = estimator.config();
    let (id, config) = match &subject.target {
        Target::Exact => (estimator.entry().id, &config),
        Target::Reference { id, config } => (*id, config),
    };
    reference::variance(id, config, problem, estimator.draws())
}

/// The variance of a sample has the variance `(m4 - v^2) / R`; the fourth moment comes from the
/// enumeration if there is one, else from the sample.
fn drawn(
    subject: &Subject,
    problem: &Problem,
    closed: Option<&[f64]>,
    enumerated: Option<&Moments>,
) -> Result<(), String> {
    let key = Key::new(hash(&format!("variance of {}, {problem}", subject.spec)));
    let law = |batch| problem.law_of(batch, DType::F32);
    let cost = |z| problem.objective.cost(z);
    let estimator = subject.estimator();
    let draws = match estimator.noise(&law(1), estimator.draws()).as_slice() {
        [] => 2,
        _ => DRAWS,
    };
    let gradients = replicate(|| subject.estimator(), key, draws, law, &cost)
        .map_err(|error| error.to_string())?;
    let k = problem.natural.len();
    let count = draws as f64;
    for i in 0..k {
        let column = || gradients.iter().skip(i).step_by(k);
        let mean = column().sum::<f64>() / count;
        let moment = |power| column().map(|g| (g - mean).powi(power)).sum::<f64>() / count;
        let got = moment(2);
        let want = match (enumerated, closed) {
            (Some(moments), _) => moments.variance[i],
            (None, Some(closed)) => closed[i],
            (None, None) => continue,
        };
        let fourth = enumerated.map_or_else(|| moment(4), |moments| moments.fourth[i]);
        let deviation = ((fourth - want * want).max(0.0) / count).sqrt();
        // Single precision: 1e-6 of the squared size of a gradient.
        let rounding = 1e-6 * (want + mean * mean + 1e-6);
        let near = (got - want).abs() <= CRITICAL * deviation + rounding;
        if !near {
            return Err(format!(
                "coordinate {i}: {draws} estimates have the variance {got:.6}, should be \
                 {want:.6} +- {deviation:.1e}"
            ));
        }
    }
    Ok(())
}
