//! The disarmed ARM estimator, DisARM or U2G.

use burn::tensor::Tensor;

use crate::antithetic::{Pair, pair_outcome, rare_probability};
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, Noise, Outcome};

method! {
    /// The difference of the costs of two antithetic draws, at the coordinates where they differ.
    ///
    /// It is [`Arm`](super::Arm) with the uniform number integrated out, given the two draws `b_1`
    /// and `b_2` that came from it.
    ///
    /// * **Estimates** `d/d logit E f(z)`.
    /// * **With** `(1/n) Σ_i ½ (f(b_1^i) - f(b_2^i)) (b_1^i - b_2^i) σ(|φ|)` for logits `φ`, where
    ///   `b_1 - b_2` is `(-1)^(b_2) 1[b_1 ≠ b_2]`, for each coordinate.
    /// * **Requires** the values of the cost. `samples` is the number of pairs; `values` and
    ///   `samples` of the estimate have both draws of each, first all `b_1`, then all `b_2`. The
    ///   mean cost and the gradient of the cost's own parameters are those of all `2n` draws.
    /// * **Bias**: none. Uniform numbers have 23 random bits in `f32`, so probabilities below 2^-24
    ///   are taken for zero there.
    /// * **Note**: [`Arms`](super::Arms) with two draws is the same.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 1], &Device::flex()))?;
    /// // At p = 1/2 the two draws of a bit always differ, and nothing is left to chance.
    /// let gradient = Disarm::default().gradient(Key::new(1), &q, |z| z)?;
    /// assert_eq!(gradient.into_scalar::<f32>(), 0.25);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Disarm {}

    options DisarmConfig {
        /// The number n of antithetic pairs of one estimate, each of two draws.
        samples: usize = 1,
    }

    facts {
        id: "disarm",
        name: "DisARM",
        families: &[FamilyKind::Bernoulli],
        bias: none,
        needs: [Value],
        price: [2, 0],
        reference: "Dong, Mnih, Tucker 2020, arXiv 2006.10680; as U2G: Yin, Ho, Yan, Qian, Zhou \
                    2020, arXiv 2006.06448",
        layers: Layerwise,
        noise: Uniform,
    }
}

impl Estimator for Disarm {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let draws = 2 * noise.get(0).dims()[0];
        pair_outcome(noise, law, objective, draws, |pair| weight(pair, law))
    }
}

/// What the difference of the costs of two antithetic draws is multiplied with.
pub(super) fn weight(pair: Pair, law: &Law) -> Tensor<4> {
    // sigmoid(|logit|) = 1 - q loses nothing: it is at least 1/2.
    let factor = (-rare_probability(law) + 1.0) * 0.5;
    (pair.first - pair.second) * factor
}
