//! Training of what an estimator learns, on a model that stands still.

use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Gradients, Tensor};

use crate::Key;
use crate::distribution::{Distribution, Law};
use crate::error::Result;
use crate::estimate::objective::IntoCost;
use crate::estimate::{Estimate, Estimator, EstimatorExt, State, StateShape};

/// The state of an estimator, its optimiser and its learning rate, for costs without a conditioning
/// input. The optimiser is Adam with an epsilon of 1e-8.
pub struct Learner {
    state: State,
    optimiser: ModuleOptimizer,
    learning_rate: f64,
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Learner")
            .field("state", &self.state)
            .field("learning_rate", &self.learning_rate)
            .finish_non_exhaustive()
    }
}

impl Learner {
    /// New state that fits a law; `None` if the estimator has none.
    pub fn new(estimator: &dyn Estimator, key: Key, law: &Law, learning_rate: f64) -> Option<Self> {
        let device = law.leaf().natural().device();
        let state = estimator.init_state(key, StateShape::of(law, 0), &device)?;
        Some(Self {
            state,
            optimiser: AdamConfig::new().with_epsilon(1e-8).init(),
            learning_rate,
        })
    }

    /// The estimator with the state as it is now.
    ///
    /// # Errors
    ///
    /// If the state is that of another estimator.
    pub fn bind(&self, estimator: &dyn Estimator) -> Result<Box<dyn Estimator>> {
        estimator.bind(&self.state, None)
    }

    /// One step on the gradients of the surrogate of an estimate.
    pub fn learn<D: Distribution>(&mut self, gradients: &mut Gradients, estimate: &Estimate<D>) {
        let own = GradientsParams::from_module(gradients, &self.state);
        let state = std::mem::take(&mut self.state);
        self.state = self.optimiser.step(self.learning_rate, state, own);
        self.state.update(estimate);
    }
}

/// The state of an estimator after so many steps on one law; `None` if it has none.
///
/// # Errors
///
/// Those of an estimate.
pub fn trained<R: IntoCost>(
    key: Key,
    estimator: &dyn Estimator,
    law: &Law,
    cost: impl Fn(Tensor<4>) -> R,
    steps: usize,
    learning_rate: f64,
) -> Result<Option<Learner>> {
    let [initial, draws] = key.split();
    let Some(mut learner) = Learner::new(estimator, initial, law, learning_rate) else {
        return Ok(None);
    };
    for step in 0..steps as u64 {
        let bound = learner.bind(estimator.at_step(step)?.as_ref())?;
        let estimate = bound.estimate(draws.child(step), &law.leaf(), &cost)?;
        learner.learn(&mut estimate.surrogate.backward(), &estimate);
    }
    Ok(Some(learner))
}
