//! Experiments with gradient estimators: model and loop readable in one file each.

pub mod adam;
mod host;
pub mod lab;
mod learner;
pub mod poisson;
pub mod toy;
pub mod vae;
