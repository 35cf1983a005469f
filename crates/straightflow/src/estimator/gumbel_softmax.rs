//! The Gumbel-softmax estimator, which is the binary Concrete one for Bernoulli variables.

use std::sync::Arc;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::relaxation::{RelaxedRule, perturbed, relax};
use super::{
    About, Bias, Entry, Estimator, EstimatorConfig, Need, Noise, NoiseSpec, Pathwise, Price,
    Reduction, Temperature,
};
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::objective::ObjectiveKind;
use crate::ops::custom_grad;

pub(super) static ENTRY: Entry = Entry::new::<GumbelSoftmaxConfig>(About {
    id: "gumbel-softmax",
    name: "Gumbel-softmax (binary Concrete)",
    families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
    objective: ObjectiveKind::Expectation,
    bias: Bias::Biased {
        exact_on: "constant f",
    },
    needs: &[Need::Gradient],
    cost: "n f, n df",
    reference: "Jang, Gu, Poole 2017, arXiv 1611.01144; Maddison, Mnih, Teh 2017, arXiv 1611.00712",
    options: &[
        ("samples", "the number of draws n of one estimate"),
        (
            "temperature",
            "of the relaxation: a number, or a schedule `1>0.1@1e-5`",
        ),
    ],
    presets: &[],
});

/// The configuration of [`GumbelSoftmax`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GumbelSoftmaxConfig {
    /// The number of draws of one estimate.
    pub samples: usize,
    /// How soft the samples are.
    pub temperature: Temperature,
}

impl Default for GumbelSoftmaxConfig {
    fn default() -> Self {
        Self {
            samples: 1,
            temperature: Temperature::Constant(0.5),
        }
    }
}

impl EstimatorConfig for GumbelSoftmaxConfig {
    type Estimator = GumbelSoftmax;

    fn init(self) -> Result<GumbelSoftmax> {
        ENTRY.need_samples(self.samples, 1)?;
        self.temperature.check(&ENTRY)?;
        Ok(GumbelSoftmax { config: self })
    }
}

/// Relaxed samples, differentiated exactly.
///
/// The samples are *not* hard: the cost is evaluated at points inside of the cube or the simplex,
/// and the values of an estimate are those of the relaxed problem. Train with it, and evaluate with
/// hard samples of the distribution.
///
/// * **Estimates** `d/d natural E f(y)` without bias, and so `d/d natural E f(z)` with one.
/// * **With** $\frac1n \sum_i (\partial y_i / \partial \varphi)^\top \nabla f(y_i)$, where $y =
///   \sigma((\varphi + \log\frac{u}{1-u}) / \tau)$ for Bernoulli variables and $y =
///   \mathrm{softmax}((\varphi + G) / \tau)$, $G = -\log(-\log u)$, for categorical ones.
/// * **Requires** the gradient of the cost, and a cost that makes sense between the hard values.
/// * **Bias**: on every cost that is not constant, also on linear ones; it vanishes with $\tau$.
/// * **Cost**: one evaluation and one backward pass for each draw.
/// * **Reference**: Jang, Gu and Poole 2017 (arXiv 1611.01144), equation 2; Maddison, Mnih and Teh
///   2017 (arXiv 1611.00712).
///
/// # Towards temperature 0
///
/// The samples become hard, and the derivative $y (1-y) / \tau$ becomes a spike: it underflows to
/// zero for almost every draw and is of the order $1/\tau$ for a fraction $\tau$ of them, so the
/// variance grows as $1/\tau$. Nothing becomes infinite: noise and logits are added in log space,
/// and the noise comes from the open interval.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let device = Device::flex().autodiff();
/// let logits = Tensor::<3>::zeros([1, 2, 4], &device).require_grad();
/// let y = GumbelSoftmax::default().draw(Key::new(1), &Categorical::from_logits(logits.clone())?)?;
/// let grads = y.square().sum().backward();
/// assert_eq!(logits.grad(&grads).unwrap().dims(), [1, 2, 4]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct GumbelSoftmax {
    config: GumbelSoftmaxConfig,
}

impl Estimator for GumbelSoftmax {
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
        vec![NoiseSpec::uniform("uniform", law.sample_dims(n))]
    }

    fn price(&self, _law: &Law, n: usize) -> Price {
        Price {
            evaluations: n,
            gradients: n,
        }
    }

    fn hard_samples(&self) -> bool {
        false
    }

    fn pathwise(&self) -> Option<&dyn Pathwise> {
        Some(self)
    }
}

impl Pathwise for GumbelSoftmax {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let (family, temperature) = (law.family(), self.config.temperature.start());
        let logits = perturbed(law, noise.get(0), temperature);
        let relaxed = relax(family, logits.clone());
        let rule = RelaxedRule {
            family,
            logits,
            temperature,
        };
        custom_grad(law.natural(), relaxed, Arc::new(rule))
    }
}
