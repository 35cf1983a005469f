//! The mean of many independent gradients, drawn from keys in single precision, against the same
//! targets as the exact check: a two-sided test of each coordinate.

use burn::tensor::DType;
use straightflow::Key;
use straightflow::distribution::Law;

use crate::gradients::{Cost, replicate};
use crate::reference::Expected;
use crate::subject::{Failure, Subject};

/// The nominal probability that a correct registry is rejected anywhere, over all tests together.
pub const FALSE_ALARM: f64 = 1e-4;
/// An upper bound for the number of tests: 120 specifications with 100 coordinates each, on average
/// over those of one variable and of three, each in three rounds on average (one has at most five).
pub const TESTS: f64 = 36_000.0;
/// `|z|` above this has probability `FALSE_ALARM / TESTS = 2.8e-9` for a normal variable
/// (Bonferroni).
pub const CRITICAL: f64 = 5.95;
/// The least ratio of a target to its standard error. A factor of two then shifts the mean by ten
/// standard errors, which the test sees with a probability above 0.9999.
const POWER: f64 = 10.0;
/// Independent gradients at first, and at most.
const REPLICATES: usize = 20_000;
const MOST: usize = 256 * REPLICATES;
/// What single precision may add to the mean of numbers of size 1.
pub const ROUNDING: f64 = 2e-6;

/// `STRAIGHTFLOW_LONG=k` multiplies the number of gradients by `k`.
fn long() -> usize {
    let value = std::env::var("STRAIGHTFLOW_LONG").ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}

/// One variable with every objective, and three variables with a product of costs, for every
/// family.
///
/// # Errors
///
/// The first coordinate whose mean is too far away, or whose test would not see a factor of two.
pub fn statistical(subject: &Subject) -> Result<(), Failure> {
    for problem in subject.problems()? {
        let want = subject.expected(&problem)?;
        let cost = |z| problem.objective.cost(z);
        test(
            subject,
            &problem.to_string(),
            &want,
            &cost,
            |batch, dtype| problem.law_of(batch, dtype),
        )?;
    }
    for kind in subject.families()? {
        let product = subject.product(kind);
        let want = subject.expected_product(&product)?;
        let cost = |z| product.cost(z);
        test(
            subject,
            &product.to_string(),
            &want,
            &cost,
            |batch, dtype| product.law(batch, dtype),
        )?;
    }
    Ok(())
}

/// Sums of independent gradients.
struct Sample {
    count: f64,
    sum: Vec<f64>,
    square: Vec<f64>,
}

impl Sample {
    fn mean(&self, i: usize) -> f64 {
        self.sum[i] / self.count
    }

    /// The variance of the mean, from that of the sample.
    fn squared_error(&self, i: usize) -> f64 {
        let variance = self.square[i] / self.count - self.mean(i).powi(2);
        variance.max(0.0) / (self.count - 1.0)
    }
}

/// Gradients of `count` independent estimates: equal elements of a batch.
fn sample(
    subject: &Subject,
    key: Key,
    count: usize,
    shift: &[f64],
    cost: Cost<'_>,
    law: &impl Fn(usize) -> Law,
) -> straightflow::Result<Sample> {
    let size = shift.len();
    let (mut sum, mut square) = (vec![0.0; size], vec![0.0; size]);
    let gradients = replicate(|| subject.estimator(), key, count, law, cost)?;
    for row in gradients.chunks(size) {
        for (i, g) in row.iter().enumerate() {
            // Around the target, so that the variance does not cancel.
            sum[i] += g - shift[i];
            square[i] += (g - shift[i]).powi(2);
        }
    }
    Ok(Sample {
        count: count as f64,
        sum,
        square,
    })
}

fn test(
    subject: &Subject,
    problem: &str,
    expected: &Expected,
    cost: Cost<'_>,
    law: impl Fn(usize, DType) -> Law,
) -> Result<(), Failure> {
    let want = &expected.mean;
    let key = Key::new(hash(&format!("{}, {problem}", subject.spec)));
    let estimator = subject.estimator();
    let specs = estimator.noise(&law(1, DType::F32), estimator.draws());
    let (mut count, dtype) = match specs.as_slice() {
        // Nothing is drawn: two gradients tell as much as many, and only rounding is left, which
        // for a sum over all states is best kept out.
        [] => (2, DType::F64),
        _ => (REPLICATES * long(), DType::F32),
    };
    let law = |batch| law(batch, dtype);
    loop {
        let sample = sample(subject, key.child(count as u64), count, want, cost, &law)
            .map_err(|error| subject.failure("statistical", problem, error))?;
        let errors: Vec<f64> = (0..want.len())
            .map(|i| (sample.squared_error(i) + expected.error[i].powi(2)).sqrt())
            .collect();
        let size = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
        let deviant = (0..want.len()).find(|i| {
            let gap = sample.mean(*i).abs();
            // Negated, so that a mean that is not a number is rejected as well.
            let near = gap <= CRITICAL * errors[*i] + ROUNDING * size;
            !near
        });
        if let Some(i) = deviant {
            let found = format!(
                "coordinate {i}: the mean of {count} gradients is {:.6} +- {:.1e}, should be {:.6}",
                want[i] + sample.mean(i),
                errors[i],
                want[i]
            );
            return Err(subject.failure("statistical", problem, found));
        }
        let largest = (0..want.len()).max_by(|a, b| want[*a].abs().total_cmp(&want[*b].abs()));
        let i = largest.expect("a gradient has a coordinate");
        if want[i] == 0.0 || want[i].abs() < 1e-12 || want[i].abs() >= POWER * errors[i] {
            return Ok(());
        }
        count *= 4;
        if count > MOST * long() {
            let found = format!(
                "no power: the target {:.2e} is not {POWER} standard errors of {:.2e}",
                want[i], errors[i]
            );
            return Err(subject.failure("statistical", problem, found));
        }
    }
}

/// FNV-1a: a key of its own for each test, the same in every run.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::registry;
    use statrs::function::erf::erfc;

    /// The critical value is the one of the stated rate.
    #[test]
    fn the_critical_value_has_the_stated_rate() {
        let tail = erfc(CRITICAL / std::f64::consts::SQRT_2);
        let stated = FALSE_ALARM / TESTS;
        assert!(tail <= stated && tail > 0.8 * stated, "{tail:e} {stated:e}");
    }

    /// The number of tests leaves room for further rounds.
    #[test]
    fn the_number_of_tests_is_bounded() {
        let coordinates = |subject: &Subject| -> usize {
            let one = subject.problems().expect("problems");
            let one: usize = one.iter().map(|problem| problem.natural.len()).sum();
            let three = subject.families().expect("families").into_iter();
            let three = three.flat_map(|kind| subject.product(kind).factors);
            one + three.map(|factor| factor.natural.len()).sum::<usize>()
        };
        let tests: usize = registry().iter().map(coordinates).sum();
        assert!(3 * tests <= TESTS as usize, "{tests}");
    }
}
