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

#[cfg(test)]
mod tests {
    use super::super::Discrepancy;
    use super::*;

    #[test]
    fn small_steps_tend_to_the_limit() {
        let law = CountLaw::Poisson { rate: 3.0 };
        let z = [2.0, 3.0, 3.0, 5.0, 1.0, 3.0, 0.0];
        let slopes = [0.3, -1.0, 0.7, 2.0, -0.2, 0.1, 1.5];
        let limit = Wasserstein.limit_gradient(&law, &z, &slopes).unwrap();
        for eps in [1e-3, 1e-6] {
            let moved: Vec<f64> = z.iter().zip(&slopes).map(|(z, s)| z - eps * s).collect();
            let gradient = Wasserstein.control_variate_gradient(&law, &moved, &z);
            let error = (gradient.unwrap() / eps - limit).abs();
            assert!(error < 1e-9, "{error}");
        }
    }

    /// On a linear cost all slopes are one, and the weights sum to one.
    #[test]
    fn linear_costs_are_exact() {
        for law in [
            CountLaw::Poisson { rate: 5.0 },
            CountLaw::Binomial {
                trials: 1,
                logit: -0.7,
            },
        ] {
            let gradient = Wasserstein.limit_gradient(&law, &[1.0, 0.0, 4.0], &[1.0; 3]);
            assert!((gradient.unwrap() - 2.0).abs() < 1e-12);
        }
    }
}
