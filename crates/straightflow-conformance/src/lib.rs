//! The suite that every estimator of the registry has to pass, for every family that it claims.

pub mod problem;
pub mod reference;
