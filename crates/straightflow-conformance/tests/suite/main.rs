//! Every mutant against the suite, the pinned values, and what the documentation says about them.

mod docs;
mod facts;
mod mutants;
mod pins;
mod training;
