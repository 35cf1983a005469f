//! The checks: each is a function that accepts a subject or says why not.

mod batch;
mod chain;
mod cost;
mod determinism;
mod drop_in;
mod errors;
mod expectation;
mod extremes;
mod spec;
mod state;
pub mod statistical;
mod variance;

use crate::subject::{Failure, Subject};

/// A check.
#[derive(Clone, Copy)]
pub struct Check {
    /// The name in failures, tests and documentation.
    pub name: &'static str,
    /// The function.
    pub run: fn(&Subject) -> Result<(), Failure>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Check").field(&self.name).finish()
    }
}

/// All checks, cheap and sharp ones first: the first that rejects is the one that a mutant is
/// listed with.
pub const CHECKS: &[Check] = &[
    Check {
        name: "spec",
        run: spec::spec,
    },
    Check {
        name: "errors",
        run: errors::errors,
    },
    Check {
        name: "cost",
        run: cost::cost,
    },
    Check {
        name: "batch",
        run: batch::batch,
    },
    Check {
        name: "drop-in",
        run: drop_in::drop_in,
    },
    Check {
        name: "expectation",
        run: expectation::expectation,
    },
    Check {
        name: "statistical",
        run: statistical::statistical,
    },
    Check {
        name: "variance",
        run: variance::variance,
    },
    Check {
        name: "state",
        run: state::state,
    },
    Check {
        name: "chain",
        run: chain::chain,
    },
    Check {
        name: "extremes",
        run: extremes::extremes,
    },
    Check {
        name: "determinism",
        run: determinism::determinism,
    },
];

/// The check of a name.
///
/// # Panics
///
/// If there is none.
pub fn find(name: &str) -> Check {
    let check = CHECKS.iter().find(|check| check.name == name);
    *check.expect("a check of that name")
}

/// Runs a check over subjects on all cores and collects what it rejects, in the order of the
/// subjects.
///
/// Plain threads, not a pool: an estimator waits for its own parallel loops while it holds the lock
/// of a tape, and must not be handed another subject meanwhile.
pub fn run_all(check: Check, subjects: &[Subject]) -> Vec<Failure> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failures = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(subject) = subjects.get(index) else {
                return failures;
            };
            if let Err(failure) = (check.run)(subject) {
                failures.push((index, failure));
            }
        }
    };
    let mut failures: Vec<(usize, Failure)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(failures) => failures,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        handles.into_iter().flat_map(join).collect()
    });
    failures.sort_by_key(|(index, _)| *index);
    failures.into_iter().map(|(_, failure)| failure).collect()
}

/// The first check of the list that rejects a subject, with its failure.
pub fn first_rejection(subject: &Subject) -> Option<Failure> {
    CHECKS.iter().find_map(|check| (check.run)(subject).err())
}
