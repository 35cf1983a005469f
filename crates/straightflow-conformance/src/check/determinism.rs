//! The same key gives the same bits, on one thread and on two; another key gives others.

use burn::tensor::DType;
use rayon::ThreadPoolBuilder;
use straightflow::Key;

use crate::enumeration::moments;
use crate::gradients::{elements_per_call, gradient};
use crate::problem::{Problem, problems};
use crate::subject::{Failure, Subject};

/// Enough elements that every parallel loop of the library is split.
const BATCH: usize = 9_000;

pub fn determinism(subject: &Subject) -> Result<(), Failure> {
    for kind in subject.families()? {
        // The oscillating objective: no rule is constant on it.
        let problem = problems(kind).swap_remove(3);
        let fail = |found: &str| subject.failure("determinism", &problem, found);
        let bits = |key: u64, threads: usize| -> Result<Vec<u64>, Failure> {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build();
            let work = || {
                let estimator = subject.estimator();
                let most = elements_per_call(estimator.as_ref(), &problem.law(1));
                let law = problem.law_of(BATCH.min(most), DType::F32);
                let cost = |z| problem.objective.cost(z);
                gradient(estimator.as_ref(), Key::new(key), &law, &cost)
            };
            let gradient = pool.expect("a thread pool").install(work);
            let gradient = gradient.map_err(|error| fail(&error.to_string()))?;
            Ok(gradient.into_iter().map(f64::to_bits).collect())
        };
        let first = bits(1, 1)?;
        if bits(1, 1)? != first {
            return Err(fail("the same key gives other bits"));
        }
        if bits(1, 2)? != first {
            return Err(fail("two threads give other bits than one"));
        }
        if is_random(subject, &problem)? && bits(2, 1)? == first {
            return Err(fail("another key gives the same bits"));
        }
    }
    Ok(())
}

/// Whether an estimate varies at all: some have no noise, or none that reaches the gradient.
fn is_random(subject: &Subject, problem: &Problem) -> Result<bool, Failure> {
    let estimator = subject.estimator();
    let noise = estimator.noise(&problem.law(1), estimator.samples());
    let moments = moments(estimator.as_ref(), problem)
        .map_err(|found| subject.failure("determinism", problem, found))?;
    let varies = moments.is_none_or(|moments| moments.variance.iter().any(|v| *v > 1e-12));
    Ok(!noise.is_empty() && varies)
}
