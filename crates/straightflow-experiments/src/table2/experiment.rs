//! The table as an experiment of the list: its cells are autoencoders, each in a directory of its own.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use straightflow_report::RecordError;
use straightflow_report::page::Page;

use super::arguments::{Arguments, EXAMPLES};
use super::config::{TableCell, TableConfig};
use super::summary::TableSummary;
use super::{plots, show};
use crate::experiment::{Ended, Experiment, File, Outcomes, Plan, Recalled};
use crate::runner::{CELLS, Desk, RunError};
use crate::vae::{Config, RECONSTRUCTIONS, Source, Summary, VaeRun};

/// A table that is to be filled: a configuration that was looked at, its images and its runs.
#[derive(Clone, Debug)]
pub struct Table2 {
    config: TableConfig,
    data: Arc<Source>,
    cells: Vec<TableCell>,
}

/// The record of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    cell: String,
    test_nelbo: f64,
    test_bound_100: f64,
}

impl Table2 {
    fn training(&self, cell: &TableCell) -> VaeRun {
        VaeRun::new(cell.config.clone(), Arc::clone(&self.data))
    }
}

impl Experiment for Table2 {
    const ID: &'static str = "table2";
    const ABOUT: &'static str =
        "The paper's Table 2: autoencoders, one for each architecture, estimator and seed.";
    const EXAMPLES: &'static str = EXAMPLES;
    const SMALL: &'static str =
        "--images 100 --bound-samples 2 --epochs 3 --arch linear two-layer --estimators arm rebar";
    const QUICK: &'static [Plan] = &[(
        "table2",
        "--arch linear nonlinear --epochs 2 --bound-samples 10",
    )];
    const FULL: &'static [Plan] = &[
        ("table2", "--beyond"),
        ("counts", "--latent poisson --arch nonlinear"),
        ("categories", "--latent categorical --arch nonlinear"),
    ];
    const NEEDS_DIRECTORY: bool = true;
    const OUTLIVES_FAILURES: bool = true;
    const GROWS: bool = true;
    // The records are of shorter runs; the runs themselves resume.
    const FORGETS: bool = true;

    type Arguments = Arguments;
    type Config = TableConfig;
    type Record = Line;
    type Outcome = Summary;
    type Summary = TableSummary;

    fn prepare(arguments: &Arguments, recorded: Option<TableConfig>) -> Result<Self, RunError> {
        let (config, data) = arguments.config(recorded)?;
        Ok(Self {
            cells: config.cells(&data)?,
            config,
            data: Arc::new(data),
        })
    }

    fn config(&self) -> &TableConfig {
        &self.config
    }

    fn cells(&self) -> Vec<String> {
        self.cells.iter().map(|cell| cell.name.clone()).collect()
    }

    fn recall(&self, _place: usize, line: Line) -> Result<Recalled<Summary>, RunError> {
        let cell = self.cells.iter().position(|cell| cell.name == line.cell);
        Ok(cell.map_or(Recalled::Part, Recalled::Elsewhere))
    }

    fn run(&self, cell: usize, desk: &Desk) -> Result<Summary, RunError> {
        let TableCell { name, .. } = &self.cells[cell];
        let summary = desk.run(&self.training(&self.cells[cell]), name)?;
        desk.note(format!(
            "{name}: test negative ELBO {:.2}",
            summary.test_nelbo
        ));
        Ok(summary)
    }

    fn record(&self, cell: usize, summary: &Summary) -> Option<Line> {
        Some(Line {
            cell: self.cells[cell].name.clone(),
            test_nelbo: summary.test_nelbo,
            test_bound_100: summary.test_bound_100,
        })
    }

    fn summarise(&self, outcomes: &Outcomes<Summary>) -> TableSummary {
        let cells = || self.cells.iter().zip(outcomes);
        let runs: Vec<(Config, Option<Summary>)> = cells()
            .map(|(cell, outcome)| (cell.config.clone(), outcome.as_ref().ok().cloned()))
            .collect();
        let failures = cells().filter_map(|(cell, outcome)| {
            let reason = outcome.as_ref().err()?;
            Some((cell.name.clone(), reason.clone()))
        });
        TableSummary::new(&runs, failures.collect())
    }

    /// The plots, and the reconstructions of the first run of each row.
    fn files(&self, ended: &Ended<Self>) -> Result<Vec<File>, RunError> {
        let mut files = Vec::new();
        for (cell, outcome) in self.cells.iter().zip(ended.outcomes) {
            if outcome.is_err() || cell.config.seed != 1 {
                continue;
            }
            let path = ended
                .directory
                .join(CELLS)
                .join(&cell.name)
                .join(RECONSTRUCTIONS);
            let bytes = match std::fs::read(&path) {
                Ok(bytes) => bytes,
                // Records are kept without pictures.
                Err(source) if source.kind() == ErrorKind::NotFound => continue,
                Err(source) => return Err(RecordError::Read { path, source }.into()),
            };
            let name = cell.name.strip_suffix("-1").unwrap_or(&cell.name);
            files.push((format!("{name}-{RECONSTRUCTIONS}"), bytes));
        }
        files.extend(plots::draw(ended.summary));
        Ok(files)
    }

    fn show(summary: &TableSummary) -> Page {
        show::page(summary)
    }

    /// A table may get longer runs, more of them, and more rows.
    fn may_become(from: &TableConfig, to: &TableConfig) -> bool {
        fn all_in<T: PartialEq>(old: &[T], new: &[T]) -> bool {
            old.iter().all(|one| new.contains(one))
        }
        let same = TableConfig {
            epochs: from.epochs,
            seeds: from.seeds,
            archs: from.archs.clone(),
            estimators: from.estimators.clone(),
            ..to.clone()
        };
        same == *from
            && to.seeds >= from.seeds
            && all_in(&from.archs, &to.archs)
            && all_in(&from.estimators, &to.estimators)
    }

    fn check_growth(&self, directory: &Path) -> Result<(), RunError> {
        for cell in &self.cells {
            let place = directory.join(CELLS).join(&cell.name);
            let checked = self.training(cell).check_length(&place);
            checked.map_err(|error| RunError::Cell {
                cell: cell.name.clone(),
                source: Box::new(error),
            })?;
        }
        Ok(())
    }
}
