//! The score-function estimator, REINFORCE.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::Key;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, part};
use crate::estimate::{
    Estimator, LayerState, MovingAverage, Network, NoiseSource, Outcome, Pass, Stacked, StateShape,
};

/// What is subtracted from the cost of a draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReinforceBaseline {
    /// Nothing.
    #[default]
    None,
    /// The average of the mean costs of earlier estimates.
    MovingAverage,
    /// The mean cost of the other draws; it needs at least two.
    Loo,
    /// What a network predicts from the conditioning input.
    Learned,
}

method! {
    /// The cost of each draw, less a baseline, times the score of that draw.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i (f(z_i) - b_i) ∇ log q(z_i)`, where `b_i` does not depend on `z_i`:
    ///
    ///   | `baseline` | `b_i` |
    ///   |---|---|
    ///   | `none` | 0 |
    ///   | `moving-average` | the average mean cost of earlier estimates, weighted with `decay^age` |
    ///   | `loo` | `1/(n-1) Σ_{j ≠ i} f(z_j)` |
    ///   | `learned` | a network of the conditioning input, trained on `(1/n) Σ_i (f(z_i) - b)²` |
    ///
    ///   `loo` is the one to take: it has no state, follows the cost without delay, and for two
    ///   draws it is `½ (f(z_1) - f(z_2)) (∇ log q(z_1) - ∇ log q(z_2))`. The default is `none`
    ///   only because the default is one draw, as for every estimator, and one draw has no others.
    /// * **Requires** the values of the cost. `moving-average` and `learned` have
    ///   [`State`](crate::estimator::State); the surrogate contains the network's squared error for
    ///   it, with everything else stopped, so that it changes neither the value nor the model's
    ///   gradient.
    /// * **Bias**: none.
    /// * **Note**: the learned baseline is that of NVIL, without its normalisation of the variance.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let logits = Tensor::<2>::zeros([1, 1], &Device::flex());
    /// let q = Bernoulli::from_logits(logits)?;
    /// let estimator = estimator("reinforce:baseline=loo,samples=1000")?;
    /// // The cost need not be differentiable.
    /// let gradient = estimator.gradient(Key::new(1), &q, |z| z.round())?;
    /// // p (1 - p) (f(1) - f(0))
    /// assert!((gradient.into_scalar::<f32>() - 0.25).abs() < 0.01);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Reinforce { attached: Attached }

    options ReinforceConfig {
        /// What is subtracted from the cost: `none`, `moving-average` (of earlier estimates), `loo`
        /// (the mean of the other draws) or `learned` (a network on the conditioning input).
        baseline: ReinforceBaseline = ReinforceBaseline::None,
        /// The decay of the moving average.
        decay: f64 [0.0..1.0] = 0.9,
        /// The tanh units of the learned network.
        hidden: usize [1..] = 100,
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "reinforce",
        name: "REINFORCE",
        families: FamilyKind::WITH_SCORE,
        bias: none,
        needs: [Value],
        price: [1, 0],
        reference: "Williams 1992, doi 10.1007/BF00992696; learned baseline (NVIL): Mnih, Gregor \
                    2014, arXiv 1402.0030; leave-one-out: Kool, van Hoof, Welling 2019",
        layers: Own,
        learns: attached,
    }
}

impl Reinforce {
    fn learns(&self) -> bool {
        matches!(
            self.config.baseline,
            ReinforceBaseline::MovingAverage | ReinforceBaseline::Learned
        )
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        match self.config.baseline {
            ReinforceBaseline::MovingAverage if state.average.is_none() => Some("moving average"),
            ReinforceBaseline::Learned if state.baseline.is_none() => Some("baseline network"),
            _ => None,
        }
    }

    /// The baseline `[batch]` or `[1]`, if it comes from a state, on the network's tape.
    fn predicted(&self, law: &Law) -> Result<Option<Tensor<1>>> {
        if !self.learns() {
            return Ok(None);
        }
        // The cost is one number for all layers, so one prediction is enough.
        let state = self.attached.layer(&ENTRY, 0)?;
        let predicted = match self.config.baseline {
            ReinforceBaseline::Learned => {
                part(&state.baseline).forward(self.attached.input.as_ref(), law)
            }
            _ => part(&state.average).predict(law),
        };
        predicted.map(Some)
    }

    /// The score times the cost less the baseline, and the squared error of a prediction.
    fn scalar(
        &self,
        values: Tensor<2>,
        log_prob: Tensor<2>,
        predicted: Option<Tensor<1>>,
    ) -> Tensor<1> {
        let Some(predicted) = predicted else {
            let advantage = match self.config.baseline {
                ReinforceBaseline::Loo => leave_one_out(values),
                _ => values,
            };
            return (log_prob * advantage).mean();
        };
        let error = values - predicted.unsqueeze_dim(0);
        (log_prob * error.clone().inner() + error.square()).mean()
    }
}

impl Stacked for Reinforce {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let pass = Pass::hard(self, noise, objective)?;
        // Before the cost, because it can fail.
        let predicted = self.predicted(&pass.laws[0])?;
        let cost = objective.evaluate_layers(&pass.z, &pass.laws)?;
        let scalar = self.scalar(cost.clone().inner(), pass.log_prob(), predicted);
        Ok(pass.outcome(cost, scalar))
    }
}

impl Estimator for Reinforce {
    fn least_samples(&self) -> usize {
        match self.config.baseline {
            ReinforceBaseline::Loo => 2,
            _ => 1,
        }
    }

    fn init_layer(&self, key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let ReinforceConfig { decay, hidden, .. } = self.config;
        let average = || MovingAverage::new(decay, device, shape.dtype);
        let network = || Network::new(key, shape.features, hidden, device, shape.dtype);
        let learned = self.config.baseline == ReinforceBaseline::Learned;
        self.learns().then(|| LayerState {
            average: (!learned).then(average),
            baseline: learned.then(network),
            ..LayerState::default()
        })
    }
}

/// `f_i - mean of f_j, j /= i`, for costs `[n, batch]`: it is `n / (n - 1)` times the deviation
/// from the mean of all.
pub(super) fn leave_one_out(cost: Tensor<2>) -> Tensor<2> {
    let n = cost.dims()[0] as f64;
    (cost.clone() - cost.mean_dim(0)) * (n / (n - 1.0))
}
