//! The game as an experiment of the list: a cell for each row and block of seeds.

use straightflow_report::page::Page;

use super::arguments::{Arguments, EXAMPLES};
use super::cells::{Cell, PoissonGame};
use super::config::{Config, Settings};
use super::error::GameError;
use super::summary::Summary;
use super::{plots, show};
use crate::experiment::{Ended, Experiment, File, Outcomes, Plan, Recalled};
use crate::runner::{Desk, RunError};

impl From<GameError> for RunError {
    fn from(error: GameError) -> Self {
        match error.is_bad_input() {
            true => Self::refused(error),
            false => Self::failed(error),
        }
    }
}

impl Experiment for PoissonGame {
    const ID: &'static str = "poisson";
    const ABOUT: &'static str = "The paper's Table 1: a Poisson generator against a discriminator, with rows that explain the result.";
    const EXAMPLES: &'static str = EXAMPLES;
    const SMALL: &'static str =
        "--seeds 6 --block 2 --epochs 20 --estimators pwgf muprop reinforce:baseline=loo";
    const QUICK: &'static [Plan] = &[("poisson", "--seeds 10")];
    const FULL: &'static [Plan] = &[("poisson", "")];

    type Arguments = Arguments;
    type Config = Config;
    type Record = Cell;
    type Outcome = Cell;
    type Summary = Summary;

    fn prepare(arguments: &Arguments, recorded: Option<Config>) -> Result<Self, RunError> {
        if let Some(config) = &recorded {
            config.check()?;
        }
        let from = recorded
            .as_ref()
            .map_or_else(Settings::default, Config::settings);
        let settings = arguments.changed(from.clone());
        let config = match recorded.filter(|_| settings == from) {
            // Word for word, also what no setting leads to.
            Some(config) => config,
            None => settings.config()?,
        };
        Ok(Self::new(config)?)
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn cells(&self) -> Vec<String> {
        let name = |(row, seeds): &(usize, std::ops::Range<usize>)| {
            format!("{}, seeds from {}", self.config.rows[*row].id, seeds.start)
        };
        self.plan.iter().map(name).collect()
    }

    fn recall(&self, _place: usize, cell: Cell) -> Result<Recalled<Cell>, RunError> {
        Ok(Recalled::Complete(self.place(&cell)?, cell))
    }

    fn run(&self, cell: usize, desk: &Desk) -> Result<Cell, RunError> {
        let progress = |share: f64| {
            desk.progress(share);
            !desk.is_stopped()
        };
        self.play(cell, &progress)?.ok_or(RunError::Stopped)
    }

    fn record(&self, _cell: usize, cell: &Cell) -> Option<Cell> {
        Some(cell.clone())
    }

    fn summarise(&self, outcomes: &Outcomes<Cell>) -> Summary {
        Summary::new(&self.config, &cells(outcomes))
    }

    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError> {
        let cells = cells(ended.outcomes);
        Ok(plots::draw(&self.config, &cells, ended.summary)?)
    }

    fn show(summary: &Summary) -> Page {
        show::page(summary)
    }
}

fn cells(outcomes: &Outcomes<Cell>) -> Vec<Cell> {
    outcomes.iter().flatten().cloned().collect()
}
