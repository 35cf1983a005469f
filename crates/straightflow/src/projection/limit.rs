//! The Wasserstein gradient for infinitely small moves.

use super::wasserstein::cells;
use super::{ProjectionError, Wasserstein, check_pair};
use crate::distribution::CountLaw;

impl Wasserstein {
    /// The limit of `G / eps` as `eps` tends to 0, where `G` is the
    /// [control-variate gradient](super::Discrepancy::control_variate_gradient) of samples
    /// `z_n - eps f'_n`: `2 sum_x w(x) f'(F(x))`, with the slopes ordered as the moved samples are.
    ///
    /// Samples that are equal part in the order of their slopes, the largest downwards. At a level
    /// between two samples the mean of both is taken.
    ///
    /// For many draws the expectation tends to `sum_x w(x) (f'(x) + f'(x + 1))`: twice the
    /// trapezoid rule for `f(x + 1) - f(x)`.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::Length`], [`ProjectionError::NoSamples`] and [`ProjectionError::Sample`]
    /// for unusable samples or slopes, [`ProjectionError::PointMass`] if the mean cannot move.
    pub fn limit_gradient(
        &self,
        law: &CountLaw,
        original: &[f64],
        slopes: &[f64],
    ) -> Result<f64, ProjectionError> {
        check_pair(slopes, original)?;
        let weight = law.weight().ok_or(ProjectionError::PointMass)?;
        let mut order: Vec<(f64, f64)> = original
            .iter()
            .zip(slopes)
            .map(|(z, slope)| (*z, -slope))
            .collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let count = order.len();
        let at = |level: f64| {
            let index = (level * count as f64).ceil() as usize;
            -order[index.clamp(1, count) - 1].1
        };
        // Levels within the rounding of a sum of probabilities are the same.
        let tolerance = 1e-12;
        let terms = cells(law)?.into_iter().map(|cell| {
            let slope = 0.5 * (at(cell.level - tolerance) + at(cell.level + tolerance));
            2.0 * weight.pmf(cell.point) * slope
        });
        Ok(terms.sum())
    }
}
