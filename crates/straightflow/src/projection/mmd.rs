//! The maximum mean discrepancy.

mod cross;
mod fourier;
mod gain;
mod gaussian;
mod panels;
mod responses;
mod stencil;

use std::sync::Arc;

use super::{Atoms, Discrepancy, ProjectionError, average, check_law, check_pair};
use crate::distribution::CountLaw;
use crate::kernel::Kernel;

pub use cross::MmdLaw;
pub use fourier::SelfTerms;
pub use gain::{GainTable, Gains};
pub(crate) use responses::LawResponses;

/// `D = E K(Z - Z') - 2 mean_n E K(Z - y_n) + mean_{n,n'} K(y_n - y_n')`, the squared maximum mean
/// discrepancy, all pairs of samples included.
///
/// Its gradient with respect to the mean is `d/dm E K(Z - Z') - 2 mean_n r(y_n)` with the response
/// `r` of [`MmdLaw`]; with the control variate the first term cancels and `G = 2 mean_n [r(z_n) -
/// r(y_n)]` remains.
///
/// ```
/// use std::sync::Arc;
///
/// use straightflow::distribution::CountLaw;
/// use straightflow::kernel::Rbf;
/// use straightflow::projection::{Discrepancy, Mmd};
///
/// let law = CountLaw::Poisson { rate: 5.0 };
/// let mmd = Mmd::new(Arc::new(Rbf::new(1.0)?));
/// let gradient = mmd.mean_gradient(&law, &[3.2, 4.9, 5.5, 8.1])?;
/// assert!((gradient + 2.587820305671e-2).abs() < 1e-13);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mmd {
    kernel: Arc<dyn Kernel>,
}

impl Mmd {
    /// The discrepancy of a kernel.
    pub fn new(kernel: Arc<dyn Kernel>) -> Self {
        Self { kernel }
    }

    /// The kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        self.kernel.as_ref()
    }

    /// `E K(Z - Z') - 2 mean_n E K(Z - y_n)`: the part that depends on the law, at a cost linear in
    /// the number of samples.
    pub(super) fn part_of_law(
        &self,
        law: &CountLaw,
        atoms: &Atoms,
    ) -> Result<f64, ProjectionError> {
        check_law(law)?;
        let own = SelfTerms::new(law, self.kernel()).kernel_mean;
        let cross = cross::kernel_mean(law, self.kernel());
        Ok(own - 2.0 * atoms.average(cross))
    }

    /// The gradient with respect to the mean and half of the curvature, `M`, at a law.
    pub(super) fn slope_and_curvature(
        &self,
        law: &CountLaw,
        atoms: &Atoms,
    ) -> Result<(f64, f64), ProjectionError> {
        let prepared = MmdLaw::new(law, self.kernel())?;
        let own = prepared.self_terms();
        let cross = atoms.average(|y| prepared.r(y));
        Ok((own.mean_slope(law) - 2.0 * cross, own.curvature))
    }
}

impl Discrepancy for Mmd {
    fn value_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        let pairs = atoms.average(|x| atoms.average(|y| self.kernel.value(x - y)));
        Ok(self.part_of_law(law, atoms)? + pairs)
    }

    fn mean_gradient_to(&self, law: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        Ok(self.slope_and_curvature(law, atoms)?.0)
    }

    fn project_to(&self, shape: &CountLaw, atoms: &Atoms) -> Result<f64, ProjectionError> {
        super::project::newton(self, shape, atoms)
    }

    fn control_variate_gradient(
        &self,
        law: &CountLaw,
        moved: &[f64],
        original: &[f64],
    ) -> Result<f64, ProjectionError> {
        check_pair(moved, original)?;
        let prepared = MmdLaw::new(law, self.kernel())?;
        let drops = original.iter().zip(moved);
        Ok(2.0 * average(drops.map(|(&z, &y)| prepared.fall(z, z - y))))
    }
}
