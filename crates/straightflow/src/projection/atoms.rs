//! Laws with finitely many weighted atoms, and their quantile functions.

use super::{ProjectionError, check_length, check_samples};

/// Levels that differ by less than this are the same: the rounding of a sum of probabilities.
const LEVEL_TOLERANCE: f64 = 1e-12;

/// Sorted points with cumulative weights.
///
/// ```
/// use straightflow::projection::Atoms;
///
/// let atoms = Atoms::weighted(&[2.0, 1.0], &[0.25, 0.75])?;
/// assert_eq!(atoms.quantile(0.7), 1.0);
/// assert_eq!(atoms.quantile(0.8), 2.0);
/// # Ok::<(), straightflow::projection::ProjectionError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Atoms {
    points: Vec<f64>,
    weights: Vec<f64>,
    /// The cumulative weights, increasing; the last is 1.
    levels: Vec<f64>,
}

impl Atoms {
    /// The empirical law of samples.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::NoSamples`] and [`ProjectionError::Sample`].
    pub fn empirical(samples: &[f64]) -> Result<Self, ProjectionError> {
        check_samples(samples)?;
        let mut points = samples.to_vec();
        points.sort_unstable_by(f64::total_cmp);
        let count = points.len() as f64;
        let levels = (1..=points.len()).map(|k| k as f64 / count).collect();
        Ok(Self {
            weights: vec![1.0 / count; points.len()],
            points,
            levels,
        })
    }

    /// Points with weights, which are scaled to sum to one. Points without weight are left out.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Length`], [`ProjectionError::NoSamples`], [`ProjectionError::Sample`] and
    /// [`ProjectionError::Weight`] for unusable points or weights.
    pub fn weighted(points: &[f64], weights: &[f64]) -> Result<Self, ProjectionError> {
        check_samples(points)?;
        check_length(points.len(), weights.len())?;
        let total: f64 = weights.iter().sum();
        let refused = |weight: f64| !weight.is_finite() || weight < 0.0 || total <= 0.0;
        if let Some(index) = weights.iter().position(|&weight| refused(weight)) {
            return Err(ProjectionError::Weight {
                index,
                value: weights[index],
            });
        }
        let pairs = points.iter().copied().zip(weights.iter().copied());
        let mut pairs: Vec<_> = pairs.filter(|(_, weight)| *weight > 0.0).collect();
        pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut level = 0.0;
        let weights: Vec<f64> = pairs.iter().map(|(_, weight)| weight / total).collect();
        let mut levels: Vec<f64> = Vec::with_capacity(pairs.len());
        for weight in &weights {
            level += weight;
            levels.push(level.min(1.0));
        }
        if let Some(last) = levels.last_mut() {
            *last = 1.0;
        }
        let points = pairs.into_iter().map(|(point, _)| point).collect();
        Ok(Self {
            points,
            weights,
            levels,
        })
    }

    /// The cumulative weights.
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.average(|point| point)
    }

    /// The expectation of a function.
    pub fn average(&self, function: impl Fn(f64) -> f64) -> f64 {
        let pairs = self.points.iter().zip(&self.weights);
        pairs.map(|(&point, weight)| weight * function(point)).sum()
    }

    /// `Q(u)`, the smallest point whose cumulative weight reaches `u`.
    pub fn quantile(&self, level: f64) -> f64 {
        let index = self.levels.partition_point(|&reached| reached < level);
        self.points[index.min(self.points.len() - 1)]
    }

    /// The mean of the quantiles just below and just above a level. They differ only at a step.
    pub fn central_quantile(&self, level: f64) -> f64 {
        let below = self.quantile(level - LEVEL_TOLERANCE);
        let above = self.quantile(level + LEVEL_TOLERANCE);
        0.5 * (below + above)
    }

    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk {
            atoms: self,
            index: 0,
            left: self.weights[0],
        }
    }
}

/// The monotone coupling: masses of another law are given to the atoms in increasing order. Masses
/// rather than levels are compared, because near level one the rounding of a level is larger than
/// the probabilities of a tail.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    atoms: &'a Atoms,
    index: usize,
    /// What the current atom can still take.
    left: f64,
}

impl Walk<'_> {
    /// The cost of moving `mass` from `point` to the next atoms; the points of successive calls
    /// must not decrease.
    pub(crate) fn cost(&mut self, point: f64, mut mass: f64) -> f64 {
        let mut total = 0.0;
        while mass > 0.0 {
            let gap = point - self.atoms.points[self.index];
            let is_last = self.index + 1 == self.atoms.points.len();
            let taken = if is_last { mass } else { mass.min(self.left) };
            total += gap * gap * taken;
            mass -= taken;
            self.left -= taken;
            if self.left <= 0.0 && !is_last {
                self.index += 1;
                self.left = self.atoms.weights[self.index];
            }
        }
        total
    }
}
