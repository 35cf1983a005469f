//! Discrepancies of categorical laws: one-hot vectors, single coordinates and ordered atoms.
//!
//! All gradients are with respect to the logits, through `p = softmax(logits)`. The one-hot form
//! treats a draw as a vector; the theorem that makes the squared Wasserstein distance of factorised
//! laws a sum over coordinates does not apply to it, because the coordinates of a one-hot vector
//! are dependent.

use std::sync::Arc;

use super::{Atoms, Discrepancy, Mmd, ProjectionError};
use crate::distribution::CountLaw;
use crate::kernel::{Kernel, Rbf, check_bandwidth};

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
/// let p = mmd.project(&corners)?;
/// assert!((p[0] - 0.5).abs() < 1e-15 && p[2] < 1e-15);
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

    /// The gradient at the moved vectors minus the one at the original vectors, exactly 0 when
    /// nothing moved.
    ///
    /// # Errors
    ///
    /// As [`value`](Self::value), and [`ProjectionError::Length`] if the clouds differ in size.
    pub fn control_variate_gradient(
        &self,
        logits: &[f64],
        moved: &[Vec<f64>],
        original: &[Vec<f64>],
    ) -> Result<Vec<f64>, ProjectionError> {
        let p = softmax(logits)?;
        check_vectors(p.len(), moved)?;
        check_vectors(p.len(), original)?;
        if moved.len() != original.len() {
            return Err(ProjectionError::Length {
                expected: original.len(),
                got: moved.len(),
            });
        }
        let inverse = 0.5 / (self.bandwidth * self.bandwidth);
        let mut drop = vec![0.0; p.len()];
        for (z, y) in original.iter().zip(moved) {
            for (i, drop) in drop.iter_mut().enumerate() {
                let corner = |j: usize| if i == j { 1.0 } else { 0.0 };
                let (mut square, mut growth) = (0.0, 0.0);
                for (j, (z, y)) in z.iter().zip(y).enumerate() {
                    let from_corner = z - corner(j);
                    square += from_corner * from_corner;
                    growth += (y - z) * ((y - z) + 2.0 * from_corner);
                }
                // K(z) - K(y) with |e_i - y|^2 = |e_i - z|^2 + growth.
                *drop -= (-square * inverse).exp() * (-growth * inverse).exp_m1();
            }
        }
        let count = original.len() as f64;
        let by_p: Vec<f64> = drop.iter().map(|drop| 2.0 * drop / count).collect();
        Ok(through_softmax(&p, &by_p))
    }

    /// The probabilities nearest to the vectors. The squared discrepancy is
    /// `(1 - k) |p|^2 - 2 p.b` plus a constant, with `b_i = mean_n exp(-|e_i - y_n|^2 / (2 h^2))`,
    /// so the argmin is the Euclidean projection of `b / (1 - k)` onto the simplex.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::NoSamples`], [`ProjectionError::Sample`] and [`ProjectionError::Length`]
    /// for unusable vectors.
    pub fn project(&self, samples: &[Vec<f64>]) -> Result<Vec<f64>, ProjectionError> {
        let first = samples.first().ok_or(ProjectionError::NoSamples)?;
        let pull = self.pull(first.len(), samples)?;
        let spread = self.spread();
        let target: Vec<f64> = pull.iter().map(|b| b / spread).collect();
        Ok(onto_simplex(&target))
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

/// The sum over coordinates of the squared discrepancies between `Bernoulli(p_i)` and the `i`-th
/// entries of the vectors.
///
/// # Errors
///
/// As [`OneHotMmd::value`], and [`ProjectionError::Kernel`] for an unusable bandwidth.
pub fn per_coordinate_mmd(
    logits: &[f64],
    samples: &[Vec<f64>],
    bandwidth: f64,
) -> Result<f64, ProjectionError> {
    let p = softmax(logits)?;
    check_vectors(p.len(), samples)?;
    let mmd = Mmd::new(Arc::new(Rbf::new(bandwidth)?));
    let of_category = |i: usize| {
        let law = CountLaw::Binomial {
            trials: 1,
            logit: p[i].ln() - (-p[i]).ln_1p(),
        };
        let entries: Vec<f64> = samples.iter().map(|sample| sample[i]).collect();
        mmd.value(&law, &entries)
    };
    (0..p.len()).map(of_category).sum()
}

/// The gradient with respect to the logits of the sum over coordinates of the squared discrepancies
/// between `Bernoulli(p_i)` and the `i`-th entries of the vectors: `2 [(2 p_i - 1) (1 - K(1)) -
/// mean_n (K(1 - y_i) - K(y_i))]` per coordinate, then the softmax.
///
/// # Errors
///
/// As [`OneHotMmd::value`], and [`ProjectionError::Kernel`] for an unusable bandwidth.
pub fn per_coordinate_mmd_gradient(
    logits: &[f64],
    samples: &[Vec<f64>],
    bandwidth: f64,
) -> Result<Vec<f64>, ProjectionError> {
    let p = softmax(logits)?;
    check_vectors(p.len(), samples)?;
    let kernel = Rbf::new(bandwidth)?;
    let by_p = p.iter().enumerate().map(|(i, p)| {
        // K(1 - y) - K(-y) = -(K(-y) - K(-y + 1)).
        let cross = super::average(samples.iter().map(|y| -kernel.fall(-y[i], 1.0)));
        2.0 * ((2.0 * p - 1.0) * kernel.fall(0.0, 1.0) - cross)
    });
    let by_p: Vec<f64> = by_p.collect();
    Ok(through_softmax(&p, &by_p))
}

/// `W2^2` between the ordered categorical law with increasing `support` and other atoms.
///
/// # Errors
///
/// [`ProjectionError::Length`] and [`ProjectionError::Order`] for an unusable support,
/// [`ProjectionError::Sample`] for logits that are not finite.
pub fn ordered_wasserstein(
    support: &[f64],
    logits: &[f64],
    atoms: &Atoms,
) -> Result<f64, ProjectionError> {
    let p = ordered_probabilities(support, logits)?;
    let mut walk = atoms.walk();
    let pairs = support.iter().zip(&p);
    Ok(pairs.map(|(&point, &p)| walk.cost(point, p)).sum())
}

/// The gradient of [`ordered_wasserstein`] with respect to the logits. With respect to the level
/// `F_x` it is `(a_x - q)^2 - (a_{x+1} - q)^2` with the quantile `q = Q(F_x)` of the atoms, by
/// `p_i` the sum of these over `x >= i`; at kinks the mean of the two one-sided slopes.
///
/// # Errors
///
/// As [`ordered_wasserstein`].
pub fn ordered_wasserstein_gradient(
    support: &[f64],
    logits: &[f64],
    atoms: &Atoms,
) -> Result<Vec<f64>, ProjectionError> {
    let p = ordered_probabilities(support, logits)?;
    let mut by_p = vec![0.0; p.len()];
    let mut level = 0.0;
    for (x, pair) in support.windows(2).enumerate() {
        level += p[x];
        // (a - q)^2 - (b - q)^2 = (a - b) (a + b - 2 q).
        let slope = (pair[0] - pair[1]) * (pair[0] + pair[1] - 2.0 * atoms.central_quantile(level));
        by_p[..=x].iter_mut().for_each(|by_p| *by_p += slope);
    }
    Ok(through_softmax(&p, &by_p))
}

/// The point of the probability simplex nearest to a vector (Euclidean): `max(v_i - t, 0)` with the
/// threshold `t` at which these sum to one. For the mean of moved one-hot vectors this is the
/// projection by the mean difference.
pub fn onto_simplex(vector: &[f64]) -> Vec<f64> {
    let mut sorted = vector.to_vec();
    sorted.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut threshold) = (0.0, 0.0);
    for (j, entry) in sorted.iter().enumerate() {
        sum += entry;
        let candidate = (sum - 1.0) / (j + 1) as f64;
        if *entry > candidate {
            threshold = candidate;
        }
    }
    vector.iter().map(|v| (v - threshold).max(0.0)).collect()
}

fn ordered_probabilities(support: &[f64], logits: &[f64]) -> Result<Vec<f64>, ProjectionError> {
    super::check_samples(support)?;
    if support.len() != logits.len() {
        return Err(ProjectionError::Length {
            expected: support.len(),
            got: logits.len(),
        });
    }
    match support.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(index) => Err(ProjectionError::Order {
            index: index + 1,
            value: support[index + 1],
        }),
        None => softmax(logits),
    }
}

fn check_vectors(dimension: usize, samples: &[Vec<f64>]) -> Result<(), ProjectionError> {
    if samples.is_empty() {
        return Err(ProjectionError::NoSamples);
    }
    for y in samples {
        super::check_samples(y)?;
        if y.len() != dimension {
            return Err(ProjectionError::Length {
                expected: dimension,
                got: y.len(),
            });
        }
    }
    Ok(())
}
