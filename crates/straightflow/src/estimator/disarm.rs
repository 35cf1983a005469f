//! The disarmed ARM estimator, DisARM or U2G.

use serde::{Deserialize, Serialize};

use super::antithetic::{pair_outcome, rare_probability};
use super::{
    About, Bias, Entry, Estimator, EstimatorConfig, Need, Noise, NoiseSpec, Outcome, Price,
    Stacking,
};
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::objective::{CountedObjective, ObjectiveKind};

pub(super) static ENTRY: Entry = Entry::new::<DisarmConfig>(About {
    id: "disarm",
    name: "DisARM",
    families: &[FamilyKind::Bernoulli],
    objective: ObjectiveKind::Expectation,
    bias: Bias::Unbiased,
    needs: &[Need::Value],
    cost: "2 n f",
    reference: "Dong, Mnih, Tucker 2020, arXiv 2006.10680; as U2G: Yin, Ho, Yan, Qian, Zhou 2020, \
                arXiv 2006.06448",
    options: &[(
        "samples",
        "the number n of antithetic pairs of one estimate, each of two draws",
    )],
    presets: &[],
});

/// The configuration of [`Disarm`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DisarmConfig {
    /// The number of antithetic pairs of one estimate.
    pub samples: usize,
}

impl Default for DisarmConfig {
    fn default() -> Self {
        Self { samples: 1 }
    }
}

impl EstimatorConfig for DisarmConfig {
    type Estimator = Disarm;

    fn init(self) -> Result<Disarm> {
        ENTRY.need_samples(self.samples, 1)?;
        Ok(Disarm { config: self })
    }
}

/// The difference of the costs of two antithetic draws, at the coordinates where they differ.
///
/// It is [`Arm`](super::Arm) with the uniform number integrated out, given the two draws $b_1$ and
/// $b_2$ that came from it.
///
/// * **Estimates** `d/d logit E f(z)`.
/// * **With** $\frac1n \sum_i \frac12 (f(b_1^i) - f(b_2^i)) (b_1^i - b_2^i) \sigma(|\phi|)$ for logits
///   $\phi$, where $b_1 - b_2$ is $(-1)^{b_2} 1_{b_1 \ne b_2}$, for each coordinate.
/// * **Requires** the values of the cost. `samples` is the number of pairs; `values` and `samples` of
///   the estimate have both draws of each, first all $b_1$, then all $b_2$. The mean cost and the
///   gradient of the cost's own parameters are those of all $2n$ draws.
/// * **Bias**: none. Uniform numbers have 23 random bits in `f32`, so probabilities below 2^-24 are
///   taken for zero there.
/// * **Cost**: two evaluations for each pair, in one call.
/// * **Reference**: Dong, Mnih and Tucker 2020 (arXiv 2006.10680, equation 7); found at the same time
///   as U2G by Yin et al. 2020 (arXiv 2006.06448). [`Arms`](super::Arms) with two draws is the same.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// # fn main() -> Result<(), straightflow::Error> {
/// let q = Bernoulli::from_logits(Tensor::zeros([1, 1], &Device::flex()))?;
/// // At p = 1/2 the two draws of a bit always differ, and nothing is left to chance.
/// let gradient = Disarm::default().gradient(Key::new(1), &q, |z, _q| z.squeeze_dim(2))?;
/// assert_eq!(gradient.into_scalar::<f32>(), 0.25);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Disarm {
    config: DisarmConfig,
}

impl Estimator for Disarm {
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
            evaluations: 2 * n,
            gradients: 0,
        }
    }

    fn stacking(&self) -> Stacking<'_> {
        Stacking::Layerwise
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let draws = 2 * noise.get(0).dims()[0];
        pair_outcome(noise, law, objective, draws, |pair| {
            // sigmoid(|logit|) = 1 - q loses nothing: it is at least 1/2.
            let factor = (-rare_probability(law) + 1.0) * 0.5;
            (pair.first - pair.second) * factor
        })
    }
}
