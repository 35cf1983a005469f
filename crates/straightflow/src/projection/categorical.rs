//! Discrepancies of categorical laws as one-hot vectors.
//!
//! All gradients are with respect to the logits, through `p = softmax(logits)`. The one-hot form
//! treats a draw as a vector; the theorem that makes the squared Wasserstein distance of factorised
//! laws a sum over coordinates does not apply to it, because the coordinates of a one-hot vector
//! are dependent.

use super::ProjectionError;
use crate::kernel::check_bandwidth;

/// The probabilities `softmax(logits)`.
///
/// # Errors
///
/// [`ProjectionError::NoSamples`] for no logit, [`ProjectionError::Sample`] for one that is not
/// finite.
pub fn softmax(logits: &[f64]) -> Result<Vec<f64>, ProjectionError> {
    super::check_samples(logits)?;
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut p: Vec<f64> = logits.iter().map(|logit| (logit - top).exp()).collect();
    let total: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= total);
    Ok(p)
}

/// `J g = p_i (g_i - sum_j p_j g_j)`, the gradient with respect to the logits from the one with
/// respect to the probabilities.
pub fn through_softmax(p: &[f64], gradient: &[f64]) -> Vec<f64> {
    let mean: f64 = p.iter().zip(gradient).map(|(p, g)| p * g).sum();
    p.iter()
        .zip(gradient)
        .map(|(p, g)| p * (g - mean))
        .collect()
}

/// The squared maximum mean discrepancy of one-hot vectors with the Gaussian kernel
/// `exp(-|x - y|^2 / (2 h^2))`.
///
/// Two different corners are at squared distance 2, so with `k = exp(-1 / h^2)` the expected kernel
/// between draws is `k + (1 - k) sum_i p_i^2`.
///
/// ```
/// use straightflow::projection::categorical::OneHotMmd;
///
/// let mmd = OneHotMmd::new(1.0)?;
/// let corners = [vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]];
/// // Nothing is left to gain when the law already has the frequencies of the samples.
/// let gradient = mmd.logit_gradient(&[0.0, 0.0, -60.0], &corners)?;
/// assert!(gradient.iter().all(|g| g.abs() < 1e-15));
/// # Ok::<(), straightflow::projection::ProjectionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneHotMmd {
    bandwidth: f64,
}

impl OneHotMmd {
    /// The discrepancy with bandwidth `h`.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Kernel`] unless `h` is positive and finite.
    pub fn new(bandwidth: f64) -> Result<Self, ProjectionError> {
        let bandwidth = check_bandwidth(bandwidth)?;
        Ok(Self { bandwidth })
    }

    /// The squared discrepancy between `softmax(logits)` and vectors `y_n`.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::NoSamples`], [`ProjectionError::Sample`] and [`ProjectionError::Length`]
    /// for unusable logits or vectors.
    pub fn value(&self, logits: &[f64], samples: &[Vec<f64>]) -> Result<f64, ProjectionError> {
        let p = softmax(logits)?;
        let pull = self.pull(p.len(), samples)?;
        let k = self.between_corners();
        let own: f64 = k + (1.0 - k) * p.iter().map(|p| p * p).sum::<f64>();
        let cross: f64 = p.iter().zip(&pull).map(|(p, b)| p * b).sum();
        let mut pairs = 0.0;
        for x in samples {
            for y in samples {
                let square: f64 = x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum();
                pairs += (-0.5 * square / (self.bandwidth * self.bandwidth)).exp();
            }
        }
        let count = samples.len() as f64;
        Ok(own - 2.0 * cross + pairs / (count * count))
    }

    /// The gradient with respect to the logits: `2 p_i (u_i - sum_j p_j u_j)` with the witness
    /// `u_i = k + (1 - k) p_i - mean_n exp(-|e_i - y_n|^2 / (2 h^2))`.
    ///
    /// # Errors
    ///
    /// As [`value`](Self::value).
    pub fn logit_gradient(
        &self,
        logits: &[f64],
        samples: &[Vec<f64>],
    ) -> Result<Vec<f64>, ProjectionError> {
        let p = softmax(logits)?;
        let pull = self.pull(p.len(), samples)?;
        // The constant k falls out of the softmax, and 1 - k is computed without cancellation.
        let spread = self.spread();
        let by_p = p.iter().zip(&pull).map(|(p, b)| 2.0 * (spread * p - b));
        let by_p: Vec<f64> = by_p.collect();
        Ok(through_softmax(&p, &by_p))
    }

    /// `k = exp(-1 / h^2)`, the kernel between two corners.
    fn between_corners(&self) -> f64 {
        (-1.0 / (self.bandwidth * self.bandwidth)).exp()
    }

    /// `1 - k`.
    fn spread(&self) -> f64 {
        -(-1.0 / (self.bandwidth * self.bandwidth)).exp_m1()
    }

    /// `mean_n exp(-|e_i - y_n|^2 / (2 h^2))` for every corner.
    fn pull(&self, dimension: usize, samples: &[Vec<f64>]) -> Result<Vec<f64>, ProjectionError> {
        check_vectors(dimension, samples)?;
        let inverse = 0.5 / (self.bandwidth * self.bandwidth);
        let mut pull = vec![0.0; dimension];
        for y in samples {
            let square: f64 = y.iter().map(|y| y * y).sum();
            for (pull, y) in pull.iter_mut().zip(y) {
                // |e_i - y|^2 = |y|^2 - 2 y_i + 1.
                *pull += (-(square - 2.0 * y + 1.0) * inverse).exp();
            }
        }
        let count = samples.len() as f64;
        pull.iter_mut().for_each(|pull| *pull /= count);
        Ok(pull)
    }
}

fn check_vectors(dimension: usize, samples: &[Vec<f64>]) -> Result<(), ProjectionError> {
    if samples.is_empty() {
        return Err(ProjectionError::NoSamples);
    }
    for y in samples {
        super::check_samples(y)?;
        super::check_length(dimension, y.len())?;
    }
    Ok(())
}
