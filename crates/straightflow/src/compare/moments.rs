//! Moments of many estimates about their mean and about the truth.

use crate::Key;
use crate::error::Result;

/// Moments of estimates about their mean and about the truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    /// The mean of the estimates.
    pub mean: Vec<f64>,
    /// The mean less the truth; the norm of that if there are several coordinates.
    pub bias: f64,
    /// The standard deviation of one estimate: the root of the trace of the covariance.
    pub std: f64,
    /// The standard error of that.
    pub std_error: f64,
    /// The root of the mean squared distance from the truth.
    pub rmse: f64,
    /// The standard error of that.
    pub rmse_error: f64,
    /// The mean along the truth, relative to that; none if the truth is zero.
    pub slope: Option<f64>,
}

impl Moments {
    /// Of estimates, one after the other, each as long as the truth.
    pub fn of(estimates: &[f64], truth: &[f64]) -> Self {
        let rows = estimates.chunks(truth.len());
        let count = rows.len() as f64;
        let mut mean = vec![0.0; truth.len()];
        for row in rows.clone() {
            for (sum, g) in mean.iter_mut().zip(row) {
                *sum += g / count;
            }
        }
        let squares = |centre: &[f64]| -> Vec<f64> {
            let distance = |row: &[f64]| {
                let gaps = row.iter().zip(centre).map(|(a, b)| (a - b) * (a - b));
                gaps.sum::<f64>()
            };
            rows.clone().map(distance).collect()
        };
        let (std, std_error) = root_mean(&squares(&mean), count - 1.0);
        let (rmse, rmse_error) = root_mean(&squares(truth), count);
        let gaps: Vec<f64> = mean.iter().zip(truth).map(|(a, b)| a - b).collect();
        let bias = match gaps.as_slice() {
            [gap] => *gap,
            gaps => norm(gaps),
        };
        let along: f64 = mean.iter().zip(truth).map(|(a, b)| a * b).sum();
        let square = norm(truth).powi(2);
        Self {
            mean,
            bias,
            std,
            std_error,
            rmse,
            rmse_error,
            slope: (square > 0.0).then(|| along / square),
        }
    }
}

/// The length of a vector.
pub(super) fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The root of the mean of squares and its standard error, by the delta method.
fn root_mean(squares: &[f64], degrees: f64) -> (f64, f64) {
    let count = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / degrees;
    let root = mean.sqrt();
    if root == 0.0 {
        return (0.0, 0.0);
    }
    let spread = squares.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (root, (spread / count).sqrt() / (2.0 * root))
}

/// Independent estimates, one after the other, `per_call` of them in a call that is given a key and
/// their number. A call has the child of the key that its first estimate numbers.
///
/// # Errors
///
/// The first error of a call.
pub fn replicate(
    key: Key,
    replicates: usize,
    per_call: usize,
    mut call: impl FnMut(Key, usize) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let mut estimates = Vec::new();
    let mut done = 0;
    while done < replicates {
        let count = per_call.min(replicates - done);
        estimates.extend(call(key.child(done as u64), count)?);
        done += count;
    }
    Ok(estimates)
}

/// Groups of estimates whose means are taken for independent observations.
const GROUPS: usize = 10;

/// An unbiased estimate of the squared distance between the expectation of the estimates and the
/// truth, with its standard error. The truth may itself be the mean of estimates.
///
/// The squared length of a difference of means is too large by their noise, which in many dimensions
/// is all that one sees. So the estimates are cut into groups, and only products of the differences
/// of two groups are averaged; their noise is independent. The standard error is the jackknife's.
pub(super) fn squared_bias(
    estimates: &[f64],
    truth: &[f64],
    reference: Option<&[f64]>,
) -> (f64, f64) {
    let width = truth.len();
    let own = group_means(estimates, width);
    let of_truth = match reference {
        Some(reference) => group_means(reference, width),
        None => vec![truth.to_vec(); GROUPS],
    };
    let gaps: Vec<Vec<f64>> = own
        .iter()
        .zip(&of_truth)
        .map(|(own, truth)| own.iter().zip(truth).map(|(a, b)| a - b).collect())
        .collect();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    // The mean product of two different groups, of all but one.
    let without = |left_out: Option<usize>| {
        let kept = || (0..GROUPS).filter(move |g| Some(*g) != left_out);
        let pairs = kept().flat_map(|a| kept().filter(move |b| *b < a).map(move |b| (a, b)));
        let products: Vec<f64> = pairs.map(|(a, b)| product(&gaps[a], &gaps[b])).collect();
        products.iter().sum::<f64>() / products.len() as f64
    };
    let all = without(None);
    let parts: Vec<f64> = (0..GROUPS).map(|g| without(Some(g))).collect();
    let mean = parts.iter().sum::<f64>() / GROUPS as f64;
    let spread: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
    let scale = (GROUPS - 1) as f64 / GROUPS as f64;
    (all, (scale * spread).sqrt())
}

/// The means of groups of estimates, every tenth one of which is in the same group.
fn group_means(estimates: &[f64], width: usize) -> Vec<Vec<f64>> {
    let rows = estimates.len() / width;
    let mean = |group: usize| {
        let mut sum = vec![0.0; width];
        let members = (group..rows).step_by(GROUPS);
        let count = members.len() as f64;
        for row in members {
            for (sum, g) in sum.iter_mut().zip(&estimates[row * width..]) {
                *sum += g / count;
            }
        }
        sum
    };
    (0..GROUPS).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise in many dimensions: the plain norm of the difference is mostly noise, the corrected
    /// square is the true one within its own error. Standard normal numbers by Box and Muller.
    #[test]
    fn the_squared_bias_is_corrected_for_noise() {
        let (width, rows) = (400, 50);
        let normal = |key: Key, count: usize| -> Vec<f64> {
            let mut uniform = vec![0.0; 2 * count];
            key.fill_uniform_f64(&mut uniform);
            let pair = |u: &[f64]| (-2.0 * u[0].ln()).sqrt() * (std::f64::consts::TAU * u[1]).cos();
            uniform.chunks(2).map(pair).collect()
        };
        let truth = vec![0.0; width];
        for (seed, shift) in [(1, 0.0), (2, 0.1)] {
            let noisy = normal(Key::new(seed), width * rows);
            let estimates: Vec<f64> = noisy.iter().map(|x| x + shift).collect();
            let reference = normal(Key::new(seed + 10), width * rows);
            let want = shift * shift * width as f64;
            // Against zero, and against a truth that is as noisy.
            for reference in [None, Some(reference.as_slice())] {
                let (square, error) = squared_bias(&estimates, &truth, reference);
                // The variance of the square is about 2 width / rows^2, four times that with a
                // noisy truth, and 4 want / rows besides.
                let noise = (8.0 * width as f64).sqrt() / rows as f64;
                let known = (noise.powi(2) + 8.0 * want / rows as f64).sqrt();
                assert!(
                    (square - want).abs() < 4.5 * known,
                    "{square} {want} {known}"
                );
                assert!(
                    error < 3.0 * known && error > 0.1 * known,
                    "{error} {known}"
                );
            }
            let plain = Moments::of(&estimates, &truth).bias.powi(2);
            assert!(plain > want + 4.0, "the noise is {plain}");
        }
    }
}
