//! The antithetic REINFORCE estimator with more than two draws, ARMS.

use burn::tensor::{Tensor, activation::log_sigmoid};

use super::reinforce::leave_one_out;
use crate::antithetic::{along, bits};
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::{Estimator, Noise, Outcome};
use crate::ops::fused::sigmoid;

method! {
    /// Leave-one-out REINFORCE with draws that avoid each other, and the factor that corrects for
    /// it.
    ///
    /// For each coordinate, `(d_1, …, d_n)` is uniform on the simplex (a Dirichlet variable, made
    /// of exponential ones). The `u_k = (1 - d_k)^(n-1)` are then uniform numbers, and antithetic:
    /// where one is small, its share `d_k` leaves little to the others, and they are large. The
    /// less likely value, of probability `q = min(p, 1-p)`, occurs in draw `k` where `u_k < q`.
    ///
    /// * **Estimates** `d/d logit E f(z)`.
    /// * **With** `1/(n-1) Σ_k (f_k - f̄) (b_k - p) · p (1-p) / (q - q_2)`, where
    ///   `q_2 = max(2 q^(1/(n-1)) - 1, 0)^(n-1)` is the probability that two draws both have the
    ///   less likely value. The factor is computed as `σ(|φ|) / (1 - q_2 / q)` with `q_2 / q =
    ///   max(2 - q^(-1/(n-1)), 0)^(n-1) ≤ q`, so that a tiny `q` cancels nothing.
    /// * **Requires** the values of the cost, and at least two draws.
    /// * **Bias**: none. Random numbers have 23 bits in `f32`, so probabilities below 2^-24 are not
    ///   met there with their own frequency.
    /// * **Note**: it is the smaller probability `q` that stands in the factor: `p` in its place is
    ///   wrong above one half. With two draws it is [`Disarm`](super::Disarm).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 1], &Device::flex()))?;
    /// let arms = ArmsConfig { samples: 2 }.init()?;
    /// // At p = 1/2 the two draws of a bit always differ, and nothing is left to chance.
    /// let gradient = arms.gradient(Key::new(1), &q, |z| z)?;
    /// assert_eq!(gradient.into_scalar::<f32>(), 0.25);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Arms {}

    options ArmsConfig {
        /// The number of draws n of one estimate, at least 2: one set of mutually antithetic ones.
        samples: usize = 4,
    }

    facts {
        id: "arms",
        name: "ARMS",
        families: &[FamilyKind::Bernoulli],
        bias: none,
        needs: [Value],
        price: [1, 0],
        reference: "Dimitriev, Zhou 2021, arXiv 2105.14141",
        layers: Layerwise,
        noise: Uniform,
        least: 2,
    }
}

impl Estimator for Arms {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let copula = Copula::new(law, noise.get(0).dims()[0]);
        let z = copula.draws(noise.get(0), law);
        let cost = objective.evaluate(z.clone(), law)?;
        // The mean over draws of the leave-one-out deviations is 1/(n-1) sum (f - mean f).
        let deviation = leave_one_out(cost.clone().inner()).unsqueeze_dims::<4>(&[2, 3]);
        let score = law.constant().score(z.clone());
        let gradient = deviation * score * copula.factor();
        Ok(Outcome::new(cost, along(law, gradient), z))
    }
}

/// The Dirichlet copula of `n` draws with the marginals of a law.
struct Copula {
    /// `|logit|`, `[1, batch, d, 1]`.
    size: Tensor<4>,
    /// `-log(q) / (n - 1)`.
    depth: Tensor<4>,
    /// `n - 1`.
    others: f64,
}

impl Copula {
    fn new(law: &Law, n: usize) -> Self {
        let size = law.natural().inner().abs().unsqueeze::<4>();
        let others = n as f64 - 1.0;
        Self {
            depth: -log_sigmoid(-size.clone()) / others,
            size,
            others,
        }
    }

    /// Bits from independent uniform numbers, both `[n, batch, d, 1]`.
    fn draws(&self, uniform: Tensor<4>, law: &Law) -> Tensor<4> {
        let exponential = -uniform.log();
        let share = exponential.clone() / exponential.sum_dim(0);
        // u = (1 - d)^(n-1) < q where d > 1 - q^(1/(n-1)) = -expm1(-depth).
        let limit = -expm1(-self.depth.clone());
        let rare = share.clone().greater(limit.expand(share.dims()));
        bits(rare, law)
    }

    /// `p (1 - p) / (q - q2)`, between 1/2 and 1.
    fn factor(&self) -> Tensor<4> {
        // q2 / q = (2 - exp(depth))^(n-1), or 0 where that is negative.
        let gap = expm1(self.depth.clone()).clamp_max(1.0);
        let ratio = ((-gap).log1p() * self.others).exp();
        sigmoid(self.size.clone()) / (-ratio + 1.0)
    }
}

/// `exp(x) - 1` without cancellation at 0: with `t = tanh(x / 2)` it is `2 t / (1 - t)`, infinite
/// where `t` rounds to 1.
fn expm1(x: Tensor<4>) -> Tensor<4> {
    let t = (x * 0.5).tanh();
    t.clone() * 2.0 / (-t + 1.0)
}
