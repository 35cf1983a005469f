//! The straight-through estimator.

use std::sync::Arc;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    About, Bias, Entry, Estimator, EstimatorConfig, Need, Noise, NoiseSpec, Pathwise, Price,
    Reduction,
};
use crate::distribution::{Family, FamilyKind, Law};
use crate::error::Result;
use crate::objective::ObjectiveKind;
use crate::ops::{Rule, custom_grad};

pub(super) static ENTRY: Entry = Entry::new::<StraightThroughConfig>(About {
    id: "straight-through",
    name: "Straight-through",
    families: FamilyKind::ALL,
    objective: ObjectiveKind::Expectation,
    bias: Bias::Biased {
        exact_on: "linear f",
    },
    needs: &[Need::Gradient],
    cost: "n f, n df",
    reference: "Bengio, Leonard, Courville 2013, arXiv 1308.3432; as a projection: Cheng et al. \
                2019, arXiv 1910.02176",
    options: &[("samples", "the number of draws n of one estimate")],
    presets: &[],
});

/// The configuration of [`StraightThrough`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StraightThroughConfig {
    /// The number of draws of one estimate.
    pub samples: usize,
}

impl Default for StraightThroughConfig {
    fn default() -> Self {
        Self { samples: 1 }
    }
}

impl EstimatorConfig for StraightThroughConfig {
    type Estimator = StraightThrough;

    fn init(self) -> Result<StraightThrough> {
        ENTRY.need_samples(self.samples, 1)?;
        Ok(StraightThrough { config: self })
    }
}

/// Hard samples forwards; backwards, the gradient of the cost at the samples is taken for the
/// gradient with respect to the mean.
///
/// * **Estimates** `d/d natural E f(z)`.
/// * **With** $\frac1n \sum_i J^\top \nabla f(z_i)$, where $J$ is the Jacobian of the mean by the
///   natural parameter: `p (1 - p)` for a Bernoulli logit, the mean for a log-rate.
/// * **Requires** the gradient of the cost.
/// * **Bias**: none on linear costs; on a quadratic one it misses the derivative of the variance,
///   $-\frac12 f'' V'(m)$ in the mean parametrisation.
/// * **Cost**: one evaluation and one backward pass for each draw.
/// * **Reference**: Bengio, Leonard and Courville 2013 (arXiv 1308.3432). It is the projected
///   Wasserstein gradient flow with the mean-difference projection (arXiv 1910.02176, section 2.1).
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let device = Device::flex().autodiff();
/// let log_rates = Tensor::<2>::zeros([1, 2], &device).require_grad();
/// let z = StraightThrough::default().draw(Key::new(1), &Poisson::from_log_rates(log_rates.clone())?)?;
/// let grads = (z * 3.0).sum().backward();
/// // The cost is linear, so the gradient is exact: slope times rate.
/// assert_eq!(log_rates.grad(&grads).unwrap().into_data().try_to_vec::<f32>().unwrap(), [3.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct StraightThrough {
    config: StraightThroughConfig,
}

impl Estimator for StraightThrough {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn config(&self) -> serde_json::Value {
        ENTRY.record(&self.config)
    }

    fn samples(&self) -> usize {
        self.config.samples
    }

    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        vec![NoiseSpec::samples(law, n)]
    }

    fn price(&self, _law: &Law, n: usize) -> Price {
        Price {
            evaluations: n,
            gradients: n,
        }
    }

    fn pathwise(&self) -> Option<&dyn Pathwise> {
        Some(self)
    }
}

impl Pathwise for StraightThrough {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let rule = Arc::new(StraightThroughRule {
            family: law.family(),
        });
        custom_grad(law.natural(), noise.get(0), rule)
    }
}

/// `d natural = J^T sum_n dz_n`. It is linear in the incoming gradient, so a loss that sums and
/// one that averages differ by their factor only.
#[derive(Debug)]
struct StraightThroughRule {
    family: Family,
}

impl Rule for StraightThroughRule {
    fn backward(&self, natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        Law::unchecked(self.family, natural).chain(dz.sum_dim(0).squeeze_dim(0))
    }
}
