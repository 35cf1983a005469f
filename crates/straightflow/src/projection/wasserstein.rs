//! The Wasserstein-2 distance on the line.

use super::{Atoms, Discrepancy, ProjectionError, check_law, check_pair};
use crate::distribution::CountLaw;

/// `D = W2^2 = int_0^1 (F^-1(u) - Q(u))^2 du`, with the quantile functions of the law and of the
/// samples: on the line the optimal coupling is the monotone one.
///
/// Its gradient is `dD/dm = 2 sum_x w(x) [x + 1/2 - Q(F(x))]`. Where `F(x)` meets a step of `Q` the
/// distance has a kink, and the mean of the two one-sided slopes is taken. The projection is the
/// global argmin, which for a discrete family does not move at all until the samples have moved by
/// half the distance of two integers.
///
/// The cost is that of sorting the samples plus one step per integer of the law's window. The law
/// is cut where a tail has probability below `exp(-40)`.
///
/// ```
/// use straightflow::distribution::CountLaw;
/// use straightflow::projection::{Discrepancy, Wasserstein};
///
/// let law = CountLaw::Poisson { rate: 5.0 };
/// let value = Wasserstein.value(&law, &[3.2, 4.9, 5.5, 8.1])?;
/// assert!((value - 1.0753687575).abs() < 1e-10);
/// # Ok::<(), straightflow::projection::ProjectionError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wasserstein;

impl Wasserstein {
    /// The widest window that is visited, in integers.
    pub const LIMIT: u64 = 1 << 22;

    /// Checks that a law is narrow enough to be visited integer by integer.
    ///
    /// # Errors
    ///
    /// [`ProjectionError::TooWide`] if it is not.
    pub fn accepts(law: &CountLaw) -> Result<(), ProjectionError> {
        let (lo, hi) = law.window(40.0);
        let width = (hi - lo).saturating_add(1);
        if width > Self::LIMIT {
            return Err(ProjectionError::TooWide {
                width,
                limit: Self::LIMIT,
            });
        }
        Ok(())
    }
}

impl Discrepancy for Wasserstein {
    fn value_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        check_law(law)?;
        let mut walk = atoms.walk();
        let costs = cells(law)?
            .into_iter()
            .map(|cell| walk.cost(cell.point, cell.mass));
        Ok(costs.sum())
    }

    fn mean_gradient_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        weighted_quantiles(law, |x, level| {
            2.0 * (x + 0.5 - atoms.central_quantile(level))
        })
    }

    fn project_to(&self, shape: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        super::project::breakpoint_search(self, shape, atoms)
    }

    /// `2 sum_x w(x) [Q_z(F(x)) - Q_y(F(x))]`.
    fn control_variate_gradient(
        &self,
        law: &CountLaw,
        moved: &[f64],
        original: &[f64],
    ) -> Result<f64, ProjectionError> {
        check_pair(moved, original)?;
        let (moved, original) = (Atoms::empirical(moved)?, Atoms::empirical(original)?);
        weighted_quantiles(law, |_, level| {
            2.0 * (original.central_quantile(level) - moved.central_quantile(level))
        })
    }
}

/// One integer with its probability and the level `F(x)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) point: f64,
    pub(super) mass: f64,
    pub(super) level: f64,
}

/// The integers of a law's window, with probabilities scaled by their sum.
pub(super) fn cells(law: &CountLaw) -> Result<Vec<Cell>, ProjectionError> {
    Wasserstein::accepts(law)?;
    let (lo, hi) = law.window(40.0);
    let masses: Vec<f64> = (lo..=hi).map(|x| law.pmf(x as f64)).collect();
    let total: f64 = masses.iter().sum();
    let mut level = 0.0;
    let cell = |(x, mass): (u64, f64)| {
        let mass = mass / total;
        level = f64::min(level + mass, 1.0);
        Cell {
            point: x as f64,
            mass,
            level,
        }
    };
    Ok((lo..=hi).zip(masses).map(cell).collect())
}

/// `sum_x w(x) g(x, F(x))`.
fn weighted_quantiles(
    law: &CountLaw,
    part: impl Fn(f64, f64) -> f64,
) -> Result<f64, ProjectionError> {
    check_law(law)?;
    let weight = law.weight().ok_or(ProjectionError::PointMass)?;
    let terms = cells(law)?
        .into_iter()
        .map(|cell| weight.pmf(cell.point) * part(cell.point, cell.level));
    Ok(terms.sum())
}
