//! What the entries say is what the methods do.

use burn::tensor::Device;
use straightflow::Key;
use straightflow::estimator::{REGISTRY, StateShape};
use straightflow_conformance::gradients::{estimate, to_vec};
use straightflow_conformance::problem;
use straightflow_conformance::subject::of_entry;

/// Some configuration has state, if and only if the entry says that the method learns.
#[test]
fn methods_that_learn_have_state() {
    for entry in REGISTRY {
        let has_state = of_entry(entry).iter().any(|subject| {
            let kind = subject.families().expect("families")[0];
            let law = problem::problems(kind)[0].law(1);
            let shape = StateShape::of(&law, 1);
            let state = subject.estimator();
            let state = state.init_state(Key::new(1), shape, &Device::flex().autodiff());
            state.is_some()
        });
        assert_eq!(has_state, entry.learns, "{}", entry.id);
    }
}

/// The cost sees whole numbers, if and only if the method says so. Sixteen batch elements are enough
/// for a relaxed sample to differ from a hard one.
#[test]
fn hard_samples_are_whole_and_relaxed_ones_are_not() {
    for entry in REGISTRY {
        for subject in of_entry(entry) {
            let estimator = subject.estimator();
            for kind in subject.families().expect("families") {
                let problem = &problem::problems(kind)[0];
                let q = problem.law(16);
                let cost = |z| problem.objective.cost(z);
                let estimate = estimate(estimator.as_ref(), Key::new(7), &q, &cost);
                let estimate = estimate.expect("an estimate");
                let samples = to_vec(estimate.samples[0].clone());
                let whole = samples.iter().all(|x| x.fract() == 0.0);
                let spec = &subject.spec;
                assert_eq!(whole, estimator.hard_samples(), "{spec}, {kind}");
            }
        }
    }
}
