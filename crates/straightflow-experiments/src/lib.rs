//! Experiments with gradient estimators: model and loop readable in one file each.

pub mod poisson;
