//! The gapped straight-through estimator.

use burn::tensor::Tensor;

use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction, Temperature};
use crate::relaxation::{shifted, with_relaxed_gradient};

method! {
    /// Straight-through with logits that are moved until they agree with the sample.
    ///
    /// It has the benefit of the Gumbel noise, that the relaxed sample points to the hard one,
    /// without the noise.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i (1/τ) J(x_i / τ)ᵀ ∇f(z_i)` with the Jacobian `J` of a softmax. The
    ///   logits `x` are `φ` with the sampled one raised to the largest, `max φ`, and every other
    ///   lowered to `max φ - g` where it is above that; `g` is the gap. The moves are constants of
    ///   the derivative. For a Bernoulli variable, as two categories with logits `(φ, 0)`, their
    ///   difference is `max(φ, g)` if `z = 1` and `-max(-φ, g)` otherwise.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: on every cost that is not constant, also on linear ones.
    ///
    /// Given the hard sample nothing is random, so the expectation is a sum over the samples.
    /// Towards temperature 0 the gradient vanishes for any gap that is not 0: it is of the order
    /// `exp(-g/τ) / τ`.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([1, 1], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let z = GappedStraightThrough::default().draw(Key::new(1), &q)?;
    /// let gradient: f32 = logits.grad(&z.sum().backward()).unwrap().into_scalar();
    /// // sigmoid(1) sigmoid(-1), whichever side was drawn.
    /// assert!((gradient - 0.19661193).abs() < 1e-6);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct GappedStraightThrough {}

    options GappedStraightThroughConfig {
        /// The least margin by which the sampled logit exceeds the others.
        gap: f64 [0.0..=f64::MAX] = 1.0,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(1.0),
    }

    facts {
        id: "gapped-straight-through",
        name: "Gapped straight-through",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: exact on "constant f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Fan et al. 2022, arXiv 2206.07235",
        layers: Tape,
        step: temperature,
    }
}

impl Estimator for GappedStraightThrough {}

impl Pathwise for GappedStraightThrough {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let hard = noise.get(0);
        let temperature = self.config.temperature.start();
        let logits = gapped(law, hard.clone(), self.config.gap) / temperature;
        with_relaxed_gradient(law, hard, logits, temperature)
    }
}

/// The logits minus their largest, moved until the sampled one leads by the gap.
fn gapped(law: &Law, hard: Tensor<4>, gap: f64) -> Tensor<4> {
    let natural = law.natural().inner().unsqueeze::<4>();
    match law.family().is_one_hot() {
        // The sampled one is at 0, the others at most at -gap.
        true => (-hard + 1.0) * shifted(natural).clamp_max(-gap),
        false => {
            let side = hard * 2.0 - 1.0;
            (natural * side.clone()).clamp_min(gap) * side
        }
    }
}
