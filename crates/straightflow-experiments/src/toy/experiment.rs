//! The toy as an experiment of the list: a cell for each estimator.

use straightflow_report::page::Page;

use super::arguments::{Arguments, EXAMPLES};
use super::{Row, Summary, Toy, ToyConfig, show};
use crate::experiment::{Ended, Experiment, File, Outcomes, Plan, Recalled};
use crate::runner::{Desk, RunError};

impl Experiment for Toy {
    const ID: &'static str = "toy";
    const ABOUT: &'static str =
        "A one-bit toy problem for every estimator: success rate, steps to the optimum, variance.";
    const EXAMPLES: &'static str = EXAMPLES;
    const SMALL: &'static str = "--estimators arm disarm reinforce muprop --seeds 4 --steps 600 --p0 0.45 --variance-steps 100 --variance-replicates 2000";
    const QUICK: &'static [Plan] = &[("toy", "--seeds 2")];
    const FULL: &'static [Plan] = &[("toy", "")];
    const CELLS_AT_ONCE: bool = false;

    type Arguments = Arguments;
    type Config = ToyConfig;
    type Record = Row;
    type Outcome = Row;
    type Summary = Summary;

    fn prepare(arguments: &Arguments, recorded: Option<ToyConfig>) -> Result<Self, RunError> {
        let config = arguments.config(recorded.unwrap_or_default());
        Self::new(config).map_err(RunError::refused)
    }

    fn config(&self) -> &ToyConfig {
        &self.config
    }

    fn cells(&self) -> Vec<String> {
        let subjects = self.config.estimators.iter();
        subjects.map(|subject| subject.spec.to_string()).collect()
    }

    fn recall(&self, place: usize, record: Row) -> Result<Recalled<Row>, RunError> {
        Ok(Recalled::Complete(place, record))
    }

    fn run(&self, cell: usize, desk: &Desk) -> Result<Row, RunError> {
        let row = self.row_until(cell, &|| desk.is_stopped());
        row.map_err(RunError::failed)?.ok_or(RunError::Stopped)
    }

    fn record(&self, _cell: usize, row: &Row) -> Option<Row> {
        Some(row.clone())
    }

    fn summarise(&self, outcomes: &Outcomes<Row>) -> Summary {
        self.summary(outcomes.iter().flatten().cloned().collect())
    }

    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError> {
        Ok(show::plots(ended.summary))
    }

    fn show(summary: &Summary) -> Page {
        show::page(summary)
    }
}
