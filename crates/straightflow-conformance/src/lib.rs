//! The suite that every estimator of the registry has to pass, for every family that it claims.

pub mod problem;
pub mod reference;

/// The README's programs, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
