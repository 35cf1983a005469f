//! The augment-REINFORCE-merge estimator, ARM.

use serde::{Deserialize, Serialize};

use crate::antithetic::pair_outcome;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, Noise, Outcome, Preset};

/// Which draws of a pair train the parameters of the cost itself, a decoder's say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArmModel {
    /// Both, as they are evaluated anyway.
    #[default]
    All,
    /// The first of each pair, as in the authors' code.
    First,
}

method! {
    /// The difference of the costs of two antithetic draws, times the uniform number behind them.
    ///
    /// With `u` uniform, `b_1 = 1[u > σ(-φ)]` and `b_2 = 1[u < σ(φ)]` for logits `φ` are two
    /// samples that are as different as they can be.
    ///
    /// * **Estimates** `d/d logit E f(z)`.
    /// * **With** `(1/n) Σ_i (f(b_1^i) - f(b_2^i)) (u_i - ½)`, for each coordinate with its own
    ///   `u`. It is averaged over the batch, as everything here; the authors' code sums.
    /// * **Requires** the values of the cost. `samples` is the number of pairs; `values` and
    ///   `samples` of the estimate have both draws of each, first all `b_1`, then all `b_2`. The
    ///   mean cost is that of all `2n` draws, and so is the gradient of the cost's own parameters,
    ///   unless `model=first` leaves it to the `b_1`, as the authors' code does.
    /// * **Bias**: none. Uniform numbers have 23 random bits in `f32`, so probabilities below 2^-24
    ///   are taken for zero there.
    /// * **Note**: [`Disarm`](super::Disarm) is its expectation given the two draws: the same price
    ///   and never more variance.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 1], &Device::flex()))?;
    /// let arm = ArmConfig { samples: 1000, ..ArmConfig::default() }.init()?;
    /// let gradient = arm.gradient(Key::new(1), &q, |z| z)?;
    /// // p (1 - p) (f(1) - f(0))
    /// assert!((gradient.into_scalar::<f32>() - 0.25).abs() < 0.02);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Arm {}

    options ArmConfig {
        /// Which draws train the cost's own parameters: `all`, or `first` for one of each pair.
        model: ArmModel = ArmModel::All,
        /// The number n of antithetic pairs of one estimate, each of two draws.
        samples: usize = 1,
    }

    facts {
        id: "arm",
        name: "ARM",
        families: &[FamilyKind::Bernoulli],
        bias: none,
        needs: [Value],
        price: [2, 0],
        reference: "Yin, Zhou 2019, arXiv 1807.11143",
        layers: Layerwise,
        noise: Uniform,
        presets: &[Preset {
            name: "paper",
            about: "the authors' code, which trains the decoder on one draw of each pair",
            options: &[("model", "first")],
        }],
    }
}

impl Estimator for Arm {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let pairs = noise.get(0).dims()[0];
        let trained = match self.config.model {
            ArmModel::All => 2 * pairs,
            ArmModel::First => pairs,
        };
        pair_outcome(noise, law, objective, trained, |_| noise.get(0) - 0.5)
    }
}
