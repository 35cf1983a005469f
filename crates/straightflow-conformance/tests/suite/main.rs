//! Every estimator of the registry against every check, every mutant against the suite, and what
//! the documentation says about both.

mod docs;
mod mutants;
mod pins;
mod registry;
mod training;
