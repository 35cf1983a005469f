//! The straight-through estimator.

use burn::tensor::Tensor;

use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction};
use crate::gradient::with_gradient;

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
        let family = law.family();
        // Linear in the incoming gradient, so a loss that sums and one that averages differ by
        // their factor only.
        with_gradient(law.natural(), noise.get(0), move |natural, _, dz| {
            Law::unchecked(family, natural).chain(dz.sum_dim(0).squeeze_dim(0))
        })
    }
}
