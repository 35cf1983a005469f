//! What an estimator learns beside the model, with an optimiser of its own.

use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::Gradients;
use straightflow::distribution::{Distribution, Law};
use straightflow::estimator::{Estimate, Estimator, State, StateShape};
use straightflow::{Key, Result};

/// Adam with the epsilon of the papers; burn's own default is 1e-5.
pub(crate) fn adam() -> ModuleOptimizer {
    AdamConfig::new().with_epsilon(1e-8).init()
}

/// The state of an estimator, its optimiser and its learning rate, for costs without a conditioning
/// input.
pub(crate) struct Learner {
    state: State,
    optimiser: ModuleOptimizer,
    learning_rate: f64,
}

impl Learner {
    /// New state that fits a law; `None` if the estimator has none.
    pub(crate) fn new(
        estimator: &dyn Estimator,
        key: Key,
        law: &Law,
        learning_rate: f64,
    ) -> Option<Self> {
        let device = law.leaf().natural().device();
        let state = estimator.init_state(key, StateShape::of(law, 0), &device)?;
        Some(Self {
            state,
            optimiser: adam(),
            learning_rate,
        })
    }

    /// The estimator with the state as it is now.
    pub(crate) fn bind(&self, estimator: &dyn Estimator) -> Result<Box<dyn Estimator>> {
        estimator.bind(&self.state, None)
    }

    /// One step on the gradients of the surrogate of an estimate.
    pub(crate) fn learn<D: Distribution>(
        &mut self,
        gradients: &mut Gradients,
        estimate: &Estimate<D>,
    ) {
        let own = GradientsParams::from_module(gradients, &self.state);
        let state = std::mem::take(&mut self.state);
        self.state = self.optimiser.step(self.learning_rate, state, own);
        self.state.update(estimate);
    }
}
