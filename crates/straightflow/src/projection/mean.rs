//! The squared difference of the means.

use super::{Atoms, Discrepancy, ProjectionError, average, check_law, check_pair, largest_mean};
use crate::distribution::CountLaw;

/// `D = (m - mean y)^2`, a lower bound of the squared Wasserstein distance.
///
/// Its gradient with the control variate, `2 mean(z - y)`, is `2 eps` times the straight-through
/// estimator when `y = z - eps f'(z)`.
///
/// ```
/// use straightflow::distribution::CountLaw;
/// use straightflow::projection::{Discrepancy, MeanDifference, project};
///
/// let law = CountLaw::Poisson { rate: 5.0 };
/// assert_eq!(project(&law, &[3.5, 5.5], &MeanDifference)?, 4.5);
/// assert_eq!(MeanDifference.mean_gradient(&law, &[3.5, 5.5])?, 1.0);
/// # Ok::<(), straightflow::projection::ProjectionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeanDifference;

impl Discrepancy for MeanDifference {
    fn value_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        let half = 0.5 * self.mean_gradient_to(law, atoms)?;
        Ok(half * half)
    }

    fn mean_gradient_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        check_law(law)?;
        let mean = law.mean();
        Ok(2.0 * atoms.average(|y| mean - y))
    }

    /// The mean of the atoms, moved to the nearest mean of the family.
    fn project_to(&self, shape: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        check_law(shape)?;
        Ok(atoms.mean().clamp(0.0, largest_mean(shape)))
    }

    fn control_variate_gradient(
        &self,
        law: &CountLaw,
        moved: &[f64],
        original: &[f64],
    ) -> Result<f64, ProjectionError> {
        check_law(law)?;
        check_pair(moved, original)?;
        Ok(2.0 * average(original.iter().zip(moved).map(|(z, y)| z - y)))
    }
}
