//! The estimator with double control variates.

use burn::tensor::{Device, Tensor};

use super::reinforce::leave_one_out;
use crate::Key;
use crate::antithetic::along;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, has, numbers, part, read};
use crate::estimate::{Estimator, LayerState, Noise, Outcome, StateShape};

method! {
    /// REINFORCE with the costs of the other draws as a baseline, after each cost was corrected by
    /// the slope that the other draws have.
    ///
    /// * **Estimates** `d/d logit E f(z)`.
    /// * **With** `(1/n) Σ_k [(f̃_k - 1/(n-1) Σ_{j ≠ k} f̃_j)(z_k - p) - α p (1-p) ∇f(z_k)]`, where
    ///   `f̃_k = f(z_k) + α/(n-1) Σ_{j ≠ k} ∇f(z_j) · (z_k - p)`.
    /// * **Requires** values and gradients of the cost at hard samples, and at least two draws. The
    ///   number `α` is [`State`](crate::estimator::State); the surrogate contains the mean square
    ///   of the gradient for it, with everything else stopped. It starts at `alpha`; `tune=off`
    ///   leaves it there.
    /// * **Bias**: none, whatever `α` is. With `α = 0` it is REINFORCE with `loo`; with `α = -1`
    ///   the variance on a linear cost is zero, and on a cost that is flat between its hard values
    ///   but steep at them it is large.
    /// * **Price**: the second evaluation is that of the model's own gradients, because burn's tape
    ///   is consumed by the first backward pass.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 3], &Device::flex()))?;
    /// let fixed = estimator("double-cv:alpha=-1,tune=off")?;
    /// let gradient = fixed.gradient(Key::new(1), &q, |z| {
    ///     z.sum_dim(2) * 2.0
    /// })?;
    /// // Two draws are exact on a linear cost.
    /// let gradient = gradient.into_data().try_to_vec::<f32>().unwrap();
    /// assert!(gradient.iter().all(|g| (g - 0.5).abs() < 1e-6));
    /// # Ok::<(), Error>(())
    /// ```
    pub struct DoubleCv { attached: Attached }

    options DoubleCvConfig {
        /// The scale of the second control variate, at its start if it is tuned.
        alpha: f64 [f64::MIN..=f64::MAX] = 0.0,
        /// The number of draws n of one estimate, at least 2.
        samples: usize = 2,
        /// Whether alpha is learned to lower the variance.
        tune: bool = true,
    }

    facts {
        id: "double-cv",
        name: "Double control variates",
        families: &[FamilyKind::Bernoulli],
        bias: none,
        needs: [Value, Gradient],
        price: [2, 1],
        reference: "Titsias, Shi 2022, arXiv 2111.05300",
        layers: Layerwise,
        learns: attached,
        least: 2,
    }
}

impl DoubleCv {
    fn learns(&self) -> bool {
        self.config.tune
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        (!has(&state.coefficients, 1)).then_some("coefficient")
    }

    fn alpha(&self, law: &Law) -> Result<Tensor<1>> {
        if !self.config.tune {
            let natural = law.natural().inner();
            let options = (&natural.device(), natural.dtype());
            return Ok(Tensor::full([1], self.config.alpha, options));
        }
        let state = self.attached.layer(&ENTRY, 0)?;
        read(part(&state.coefficients), law)
    }
}

impl Estimator for DoubleCv {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let alpha = self.alpha(law)?;
        let z = noise.get(0);
        let n = z.dims()[0] as f64;
        let constant = law.constant();
        let (values, slope) = objective.value_and_gradient(z.clone(), law)?;
        let others = (slope.clone().sum_dim(0) - slope.clone()) * (n - 1.0).recip();
        let deviation = z.clone() - constant.mean().unsqueeze::<4>();
        let linear = (others * deviation).sum_dim(3).sum_dim(2);
        let linear = linear.squeeze_dims::<2>(&[2, 3]);
        // On the tape of alpha, if that is learned.
        let advantage = leave_one_out(values + linear * alpha.clone().reshape([1, 1]));
        let correction = constant.chain(slope) * -alpha.reshape([1, 1, 1, 1]);

        let cost = objective.evaluate(z.clone(), law)?;
        let score = law.log_prob(z.clone()) * advantage.clone().inner();
        let mut scalar = score.mean() + along(law, correction.clone().inner());
        if self.config.tune {
            let score = constant.score(z.clone());
            let each = advantage.unsqueeze_dims::<4>(&[2, 3]) * score + correction;
            scalar = scalar + each.mean_dim(0).square().mean();
        }
        Ok(Outcome::new(cost, scalar, z))
    }

    fn init_layer(&self, _key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let alpha = self.config.alpha;
        self.config.tune.then(|| LayerState {
            coefficients: Some(numbers(&[alpha], device, shape.dtype)),
            ..LayerState::default()
        })
    }
}
