//! Experiments with gradient estimators, each in a folder of its own: model, loop, settings, tables and
//! plots. What they have in common is [`Experiment`], and what is not science is the [`runner`]'s.

pub mod adam;
pub mod arguments;
pub mod device;
mod entry;
mod experiment;
pub mod grid;
mod host;
pub mod lab;
mod learner;
pub mod limits;
mod looks;
pub mod poisson;
pub mod runner;
pub mod table2;
mod tested;
pub mod toy;
pub mod vae;

pub use entry::{Completed, Entry, Session};
pub use experiment::{Ended, Experiment, File, Outcomes, Plan, Recalled};
pub use tested::Tested;

/// The entries of the experiments in these modules, each of which has a type `This`.
macro_rules! experiments {
    ($($name:ident),* $(,)?) => {
        /// Every experiment, in the order of a report. The command line, reports, reproductions and the
        /// tests of records are made from this list.
        pub static EXPERIMENTS: &[Entry] = &[$(Entry::of::<$name::This>()),*];
    };
}

experiments! { poisson, toy, lab, vae, table2 }
