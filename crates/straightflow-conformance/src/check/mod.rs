//! The checks: each is a function that accepts a subject or says why not.

mod batch;
mod cost;
mod determinism;
mod drop_in;
mod errors;
mod expectation;
mod extremes;
mod layers;
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
    /// Whether it is one test for each family, or one for all.
    pub per_family: bool,
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
        per_family: false,
        run: spec::spec,
    },
    Check {
        name: "errors",
        per_family: false,
        run: errors::errors,
    },
    Check {
        name: "cost",
        per_family: true,
        run: cost::cost,
    },
    Check {
        name: "batch",
        per_family: true,
        run: batch::batch,
    },
    Check {
        name: "drop-in",
        per_family: true,
        run: drop_in::drop_in,
    },
    Check {
        name: "expectation",
        per_family: true,
        run: expectation::expectation,
    },
    Check {
        name: "statistical",
        per_family: true,
        run: statistical::statistical,
    },
    Check {
        name: "variance",
        per_family: true,
        run: variance::variance,
    },
    Check {
        name: "state",
        per_family: true,
        run: state::state,
    },
    Check {
        name: "layers",
        per_family: true,
        run: layers::layers,
    },
    Check {
        name: "extremes",
        per_family: true,
        run: extremes::extremes,
    },
    Check {
        name: "determinism",
        per_family: true,
        run: determinism::determinism,
    },
];

/// The first check of the list that rejects a subject, with its failure.
pub fn first_rejection(subject: &Subject) -> Option<Failure> {
    CHECKS.iter().find_map(|check| (check.run)(subject).err())
}
