//! What an experiment is: its settings, its cells, and what becomes of them. Everything else is the
//! [`runner`](crate::runner)'s.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use straightflow_report::page::Page;

use crate::runner::{Desk, RunError};

/// What the record of a cell says.
#[derive(Clone, Debug, PartialEq)]
pub enum Recalled<O> {
    /// The cell of this number is complete, with this outcome.
    Complete(usize, O),
    /// The cell of this number is complete, and has its outcome in a directory of its own.
    Elsewhere(usize),
    /// It is a part of a cell, which resumes from its checkpoint.
    Part,
}

/// The outcomes of all cells, in their order. One that failed says why; that is for experiments that
/// [outlive](Experiment::OUTLIVES_FAILURES) it.
pub type Outcomes<O> = [Result<O, String>];

/// A command of a reproduction: the name of its directory, and its space-separated settings.
pub type Plan = (&'static str, &'static str);

/// The places of the experiments in the argument of a report: the paper's claims first, then what is
/// behind them.
pub(crate) mod place {
    pub const POISSON: usize = 1;
    pub const TABLE2: usize = 2;
    pub const VAE: usize = 3;
    pub const LAB: usize = 4;
    pub const TOY: usize = 5;
}

/// A file of results: its name and what is in it.
pub type File = (String, Vec<u8>);

/// A run whose cells have ended.
pub struct Ended<'a, E: Experiment> {
    /// The results.
    pub summary: &'a E::Summary,
    /// What the cells ended with.
    pub outcomes: &'a Outcomes<E::Outcome>,
    /// The directory of the run.
    pub directory: &'a Path,
}

impl<E: Experiment> std::fmt::Debug for Ended<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ended")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// An experiment. A value of the type is a configuration whose every part was looked at, with the data
/// that it needs.
pub trait Experiment: Sized + Send + Sync {
    /// The name in commands and records, the same as that of the folder.
    const ID: &'static str;
    /// What it is, in a line.
    const ABOUT: &'static str;
    /// Examples of command lines.
    const EXAMPLES: &'static str;
    /// The space-separated settings of a run of a second or two that shows everything, for tests.
    const SMALL: &'static str;
    /// Its part of a quick reproduction.
    const QUICK: &'static [Plan] = &[];
    /// Its part of a whole reproduction.
    const FULL: &'static [Plan] = &[];
    /// Whether cells run at once, on one thread each. Otherwise they follow each other, and each may take
    /// all threads.
    const CELLS_AT_ONCE: bool = true;
    /// Whether a run needs a directory.
    const NEEDS_DIRECTORY: bool = false;
    /// Whether the other cells continue when one fails, and the summary names it.
    const OUTLIVES_FAILURES: bool = false;
    /// Whether a directory with a summary is complete, whatever its records say.
    const SUMMARY_SUFFICES: bool = false;
    /// Whether a run may [become](Self::may_become) a longer or larger one.
    const GROWS: bool = false;
    /// Whether the records start over when the configuration [grows](Self::may_become).
    const FORGETS: bool = false;

    /// What the command line offers.
    type Arguments: clap::Args;
    /// What is recorded: all that is needed to repeat the run.
    type Config: Clone + PartialEq + Serialize + DeserializeOwned;
    /// A line of the records.
    type Record: Serialize + DeserializeOwned;
    /// What a cell ends with.
    type Outcome: Send;
    /// The results, and nothing that differs when they are repeated.
    type Summary: Serialize + DeserializeOwned;

    /// What was asked for, in place of the settings of a recorded configuration or of the defaults.
    ///
    /// # Errors
    ///
    /// The first invalid setting, or data that cannot be read.
    fn prepare(
        arguments: &Self::Arguments,
        recorded: Option<Self::Config>,
    ) -> Result<Self, RunError>;

    /// The configuration.
    fn config(&self) -> &Self::Config;

    /// The names of the cells, which are independent of each other.
    fn cells(&self) -> Vec<String>;

    /// What a record says, from its place in the file.
    ///
    /// # Errors
    ///
    /// If the record is not one of this configuration.
    fn recall(
        &self,
        place: usize,
        record: Self::Record,
    ) -> Result<Recalled<Self::Outcome>, RunError>;

    /// Works on a cell, on the thread that it is called on. It may be killed at any moment; where it asks
    /// [`Desk::check`], it can be stopped as well.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`], and whatever can go wrong.
    fn run(&self, cell: usize, desk: &Desk) -> Result<Self::Outcome, RunError>;

    /// The record of a complete cell; none if the cell itself recorded what it did.
    fn record(&self, cell: usize, outcome: &Self::Outcome) -> Option<Self::Record>;

    /// The results: the same bits no matter which process ran the cells, in any order.
    fn summarise(&self, outcomes: &Outcomes<Self::Outcome>) -> Self::Summary;

    /// Plots and pictures, for a run in a directory.
    ///
    /// # Errors
    ///
    /// If something cannot be drawn or read.
    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError>;

    /// What is said about a summary, also about one of an older run.
    fn show(summary: &Self::Summary) -> Page;

    /// Leaves out of the results what is not to be printed.
    fn select(_arguments: &Self::Arguments, _summary: &mut Self::Summary) {}

    /// Whether a run of one configuration becomes one of the other when it resumes.
    fn may_become(_from: &Self::Config, _to: &Self::Config) -> bool {
        false
    }

    /// Whether the run in a directory, which has another configuration, has not gone too far for this one.
    ///
    /// # Errors
    ///
    /// If it has, or if that cannot be told.
    fn check_growth(&self, _directory: &Path) -> Result<(), RunError> {
        Ok(())
    }

    /// The words that repeat a run without the file that its settings were read from, if there are any.
    fn repeating(&self, _arguments: &Self::Arguments) -> Option<Vec<String>> {
        None
    }
}
