//! What an estimator learns beside the model, with an optimiser of its own.

use burn::optim::{AdamConfig, ModuleOptimizer};

pub(crate) use straightflow::compare::Learner;

/// Adam with the epsilon of the papers; burn's own default is 1e-5.
pub(crate) fn adam() -> ModuleOptimizer {
    AdamConfig::new().with_epsilon(1e-8).init()
}
