//! The straight-through estimator.

use std::sync::Arc;

use burn::tensor::Tensor;

use crate::distribution::{Family, FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction};
use crate::ops::{Rule, custom_grad};

method! {
    /// Hard samples forwards; backwards, the gradient of the cost at the samples is taken for the
    /// gradient with respect to the mean.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i Jᵀ ∇f(z_i)`, where `J` is the Jacobian of the mean with respect to the
    ///   natural parameter: `p (1 - p)` for a Bernoulli logit, the mean for a log-rate.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: none on linear costs; on a quadratic one it misses the derivative of the
    ///   variance, `-½ f'' V'(m)` in the mean parametrisation.
    /// * **Note**: it is the projected Wasserstein gradient flow with the mean-difference
    ///   projection (arXiv 1910.02176, section 2.1).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let log_rates = Tensor::<2>::zeros([1, 2], &device).require_grad();
    /// let q = Poisson::from_log_rates(log_rates.clone())?;
    /// let z = StraightThrough::default().draw(Key::new(1), &q)?;
    /// // The cost is linear, so the gradient is exact: slope times rate.
    /// let gradient = log_rates.grad(&(z * 3.0).sum().backward()).unwrap();
    /// assert_eq!(gradient.into_data().try_to_vec::<f32>().unwrap(), [3.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct StraightThrough {}

    options StraightThroughConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "straight-through",
        name: "Straight-through",
        families: FamilyKind::ALL,
        bias: exact on "linear f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Bengio, Leonard, Courville 2013, arXiv 1308.3432; as a projection: Cheng et \
                    al. 2019, arXiv 1910.02176",
        layers: Tape,
    }
}

impl Estimator for StraightThrough {}

impl Pathwise for StraightThrough {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let rule = Arc::new(StraightThroughRule(law.family()));
        custom_grad(law.natural(), noise.get(0), rule)
    }
}

/// `d natural = J^T sum_n dz_n`. It is linear in the incoming gradient, so a loss that sums and
/// one that averages differ by their factor only.
#[derive(Debug)]
struct StraightThroughRule(Family);

impl Rule for StraightThroughRule {
    fn backward(&self, natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        Law::unchecked(self.0, natural).chain(dz.sum_dim(0).squeeze_dim(0))
    }
}
