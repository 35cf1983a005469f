//! The suite that every estimator of the registry has to pass, for every family that it claims.
//!
//! A [`check::Check`] is a function of a [`subject::Subject`]: an estimator, and the target that its
//! expectation has to hit. The registry makes the subjects ([`subject::registry`]), so a new
//! estimator is covered without a new test. [`mutants`] are estimators that are wrong on purpose:
//! the suite has to reject each of them, and to pass its correct twin.

pub mod check;
pub mod device;
pub mod enumeration;
pub mod gradients;
pub mod mutants;
pub mod pins;
pub mod problem;
pub mod product;
pub mod quadrature;
pub mod reference;
pub mod stack;
pub mod subject;
mod target;

/// The README's programs, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
