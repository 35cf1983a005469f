//! The mean of many gradients of two layers against the exact one, or against a scalar
//! reference for a biased estimator.

use burn::tensor::DType;
use straightflow::objective::ObjectiveKind;
use straightflow::{Error, Key};

use super::statistical::{CRITICAL, ROUNDING, hash};
use crate::reference::{Expected, bound_gradient, expected_layers};
use crate::stack::{FAMILIES, Scalar, Stack};
use crate::subject::{Failure, Subject, Target};

/// Independent gradients in one call, and calls at most.
const BATCH: usize = 20_000;
const CALLS: u64 = 16;
/// The least ratio of the largest target to its standard error.
const POWER: f64 = 10.0;

/// Two layers of bits and of categories, where the estimator takes them.
///
/// # Errors
///
/// The first coordinate whose mean is too far away, or layers that are refused without a reason.
pub fn layers(subject: &Subject) -> Result<(), Failure> {
    let estimator = subject.estimator();
    for (kind, family, k) in FAMILIES {
        if !subject.families()?.contains(&kind) {
            continue;
        }
        let problem = format!("chain of {kind} layers");
        let fail = |found: String| subject.failure("layers", &problem, found);
        let scalar = Scalar { k };
        let Some(want) = target(subject, scalar).map_err(fail)? else {
            continue;
        };
        let key = Key::new(hash(&format!("{}, {problem}", subject.spec)));
        let kind = estimator.entry().objective;
        let mut sample = Sums::new(want.mean.len());
        for call in 0..CALLS {
            let stack = Stack::new(family, k, kind, BATCH, DType::F32);
            let estimate = match stack.estimate(subject.estimator().as_ref(), key.child(call)) {
                // Said with its own error; a test of the library knows that defaults are never
                // refused.
                Err(Error::UnsupportedLayers { .. }) => return Ok(()),
                other => other.map_err(|error| fail(error.to_string()))?,
            };
            stack
                .gradients(&estimate)
                .iter()
                .for_each(|row| sample.add(row));
            compare(&sample, &want).map_err(fail)?;
            if sample.has_power(&want) {
                break;
            }
            if call + 1 == CALLS {
                return Err(fail("no power: every target is below its error".to_owned()));
            }
        }
    }
    Ok(())
}

/// `None` for a biased estimator of which the reference has no form for several layers.
fn target(subject: &Subject, scalar: Scalar) -> Result<Option<Expected>, String> {
    let estimator = subject.estimator();
    match &subject.target {
        Target::Exact if estimator.entry().objective == ObjectiveKind::Bound => {
            let gradient = bound_gradient(scalar.outcomes(), estimator.draws())?;
            Ok(Some(Expected::exact(gradient)))
        }
        Target::Exact => Ok(Some(Expected::exact(scalar.exact_gradient()))),
        Target::Reference { id, config } => Ok(expected_layers(id, config, scalar)),
    }
}

/// Sums of independent gradients.
struct Sums {
    count: f64,
    sum: Vec<f64>,
    square: Vec<f64>,
}

impl Sums {
    fn new(size: usize) -> Self {
        Self {
            count: 0.0,
            sum: vec![0.0; size],
            square: vec![0.0; size],
        }
    }

    fn add(&mut self, row: &[f64]) {
        self.count += 1.0;
        for (i, g) in row.iter().enumerate() {
            self.sum[i] += g;
            self.square[i] += g * g;
        }
    }

    fn mean(&self, i: usize) -> f64 {
        self.sum[i] / self.count
    }

    /// The standard error of the difference to a target.
    fn error(&self, i: usize, want: &Expected) -> f64 {
        let variance = self.square[i] / self.count - self.mean(i).powi(2);
        (variance.max(0.0) / (self.count - 1.0) + want.error[i].powi(2)).sqrt()
    }

    fn has_power(&self, want: &Expected) -> bool {
        (0..want.mean.len()).any(|i| want.mean[i].abs() >= POWER * self.error(i, want))
    }
}

fn compare(sample: &Sums, want: &Expected) -> Result<(), String> {
    for (i, target) in want.mean.iter().enumerate() {
        let (mean, error) = (sample.mean(i), sample.error(i, want));
        let near = (mean - target).abs() <= CRITICAL * error + ROUNDING;
        if !near {
            return Err(format!(
                "coordinate {i}: the mean of {} gradients is {mean:.6} +- {error:.1e}, should be {target:.6}",
                sample.count
            ));
        }
    }
    Ok(())
}
