//! The laboratory as an experiment of the list: a cell for each cost of a variable.

use straightflow_report::page::Page;

use super::arguments::{Arguments, EXAMPLES};
use super::{Lab, LabConfig, Row, Summary, plots, show};
use crate::experiment::{Ended, Experiment, File, Outcomes, Plan, Recalled};
use crate::runner::{Desk, RunError};

impl Experiment for Lab {
    const ID: &'static str = "lab";
    const ABOUT: &'static str = "Every estimator against the exact gradient: bias, standard deviation, error, price, recommendations.";
    const EXAMPLES: &'static str = EXAMPLES;
    const SMALL: &'static str = "--family binomial --replicates 2000 --training-steps 50";
    const QUICK: &'static [Plan] = &[("lab", "--replicates 2000")];
    const FULL: &'static [Plan] = &[("lab", "")];
    const CELLS_AT_ONCE: bool = false;

    type Arguments = Arguments;
    type Config = LabConfig;
    type Record = Vec<Row>;
    type Outcome = Vec<Row>;
    type Summary = Summary;

    fn prepare(arguments: &Arguments, recorded: Option<LabConfig>) -> Result<Self, RunError> {
        let config = arguments.config(recorded.unwrap_or_default());
        Self::new(config).map_err(RunError::refused)
    }

    fn config(&self) -> &LabConfig {
        &self.config
    }

    fn cells(&self) -> Vec<String> {
        (0..self.units()).map(|unit| self.unit_name(unit)).collect()
    }

    fn recall(&self, place: usize, rows: Vec<Row>) -> Result<Recalled<Vec<Row>>, RunError> {
        Ok(Recalled::Complete(place, rows))
    }

    fn run(&self, cell: usize, desk: &Desk) -> Result<Vec<Row>, RunError> {
        let rows = self.unit_until(cell, &|| desk.is_stopped());
        rows.map_err(RunError::failed)?.ok_or(RunError::Stopped)
    }

    fn record(&self, _cell: usize, rows: &Vec<Row>) -> Option<Vec<Row>> {
        Some(rows.clone())
    }

    fn summarise(&self, outcomes: &Outcomes<Vec<Row>>) -> Summary {
        self.summary(outcomes.iter().flatten().flatten().cloned().collect())
    }

    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError> {
        Ok(plots::draw(ended.summary))
    }

    fn show(summary: &Summary) -> Page {
        show::page(summary)
    }

    fn select(arguments: &Arguments, summary: &mut Summary) {
        if arguments.unbiased {
            summary.recommendations.retain(|one| one.unbiased);
        }
    }
}
