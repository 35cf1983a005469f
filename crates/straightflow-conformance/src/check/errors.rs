//! What cannot work is refused with the error that says so.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{EstimatorExt, Spec};
use straightflow::objective::ObjectiveKind;
use straightflow::{Error, Key};

use crate::gradients::{estimate, gradient};
use crate::problem;
use crate::subject::{Failure, Subject};

pub fn errors(subject: &Subject) -> Result<(), Failure> {
    unsupported_family(subject)?;
    too_few_samples(subject)?;
    temperature(subject)?;
    let Some(kind) = subject.families()?.first().copied() else {
        return Err(subject.failure("errors", "families", "it supports none"));
    };
    non_finite_cost(subject, kind)?;
    other_objective(subject, kind)
}

fn expect<T: std::fmt::Debug>(
    subject: &Subject,
    what: impl std::fmt::Display,
    result: Result<T, Error>,
    right: fn(&Error) -> bool,
) -> Result<(), Failure> {
    match result {
        Err(error) if right(&error) => Ok(()),
        Err(error) => Err(subject.failure("errors", what, format!("wrong error: {error}"))),
        Ok(_) => Err(subject.failure("errors", what, "accepted")),
    }
}

fn unsupported_family(subject: &Subject) -> Result<(), Failure> {
    let supported = subject.families()?;
    for kind in FamilyKind::ALL
        .iter()
        .filter(|kind| !supported.contains(kind))
    {
        let problem = &problem::problems(*kind)[0];
        let cost = |z| problem.objective.cost(z);
        let estimator = subject.estimator();
        let result = gradient(estimator.as_ref(), Key::new(1), &problem.law(1), &cost);
        expect(subject, problem, result, |error| {
            // The latter where it is an option that narrows the families of the entry.
            matches!(
                error,
                Error::UnsupportedFamily { .. } | Error::InvalidOption { .. }
            )
        })?;
    }
    Ok(())
}

fn too_few_samples(subject: &Subject) -> Result<(), Failure> {
    let right = |error: &Error| matches!(error, Error::TooFewSamples { .. });
    let estimator = subject.estimator();
    if let Some(kind) = subject.families()?.first() {
        let law = problem::problems(*kind)[0].law(1);
        if let Some(few) = estimator.least_samples().checked_sub(1) {
            let what = format!("{few} samples");
            expect(subject, what, estimator.check(&law, few), right)?;
        }
    }
    let mut config = estimator.config();
    if let Some(samples) = config.get_mut("samples") {
        *samples = 0.into();
        let built = estimator.entry().build(config);
        expect(subject, "samples=0", built, right)?;
    }
    Ok(())
}

fn temperature(subject: &Subject) -> Result<(), Failure> {
    let entry = subject.entry();
    for option in entry
        .defaults()
        .keys()
        .filter(|key| key.contains("temperature"))
    {
        for value in ["0", "-1"] {
            let mut spec = Spec::new(entry.id);
            spec.set(option, value);
            expect(subject, &spec, entry.build_spec(&spec), |error| {
                matches!(error, Error::InvalidOption { .. })
            })?;
        }
    }
    Ok(())
}

fn non_finite_cost(subject: &Subject, kind: FamilyKind) -> Result<(), Failure> {
    for (dtype, bad) in [(DType::F64, f64::NAN), (DType::F32, f64::INFINITY)] {
        let q = problem::problems(kind)[0].law_of(2, dtype);
        let cost = |z: Tensor<4>| -> Tensor<2> {
            let [n, batch, ..] = z.dims();
            let finite = z.sum_dims(&[2, 3]).reshape([n, batch]);
            finite.zeros_like() + bad + finite
        };
        let estimator = subject.estimator();
        let result = estimate(estimator.as_ref(), Key::new(1), &q, &cost);
        expect(subject, format!("a cost of {bad}"), result, |error| {
            matches!(error, Error::NonFiniteCost { .. })
        })?;
    }
    Ok(())
}

fn other_objective(subject: &Subject, kind: FamilyKind) -> Result<(), Failure> {
    let problem = &problem::problems(kind)[0];
    let q = problem.law(1);
    let estimator = subject.estimator();
    let cost = |z: Tensor<4>| problem.objective.cost(z);
    let result = match estimator.entry().objective {
        ObjectiveKind::Expectation => estimator.estimate_bound(Key::new(1), &q, cost),
        ObjectiveKind::Bound => estimator.estimate(Key::new(1), &q, cost),
    };
    expect(subject, "an objective of the other kind", result, |error| {
        matches!(error, Error::UnsupportedObjective { .. })
    })
}
