//! From the attempts that count to the records of the run.

use std::path::Path;

use serde::Serialize;
use straightflow_report::Run;
use straightflow_report::record::{CONFIG, METRICS, SUMMARY, read_metrics};

use super::lease::{Ending, Place};
use super::{CellState, Grid, GridError, files, place_of, status};
use crate::experiment::{Experiment, Recalled};
use crate::runner::RunError;

/// The name of the file that says which machine ran which cell.
const MACHINES: &str = "machines.json";

/// Which machine ran a cell.
#[derive(Serialize)]
struct Machine<'a> {
    cell: usize,
    name: &'a str,
    #[serde(flatten)]
    ending: Ending,
}

/// Records in the directory of a run what the tasks of its grid have done, if it has one. What is recorded
/// already stays as it is.
pub(crate) fn collect<E: Experiment>(
    experiment: &E,
    names: &[String],
    run: &mut Run,
) -> Result<(), RunError> {
    let directory = run.path().to_owned();
    let Some(grid) = Grid::find(&directory)? else {
        return Ok(());
    };
    // A run that has grown since then has nothing to gain from its old cells.
    if !grid.fits(&directory)? {
        return Ok(());
    }
    let mut recorded = recorded_cells(experiment, &directory, names.len())?;
    let mut machines = Vec::new();
    for (cell, name) in names.iter().enumerate() {
        let place = place_of(&directory, cell);
        let Some(ending) = Place(&place).done()? else {
            continue;
        };
        let from = Place(&place).run(ending.attempt);
        machines.push(Machine { cell, name, ending });
        match names.len() {
            1 => collect_whole::<E>(run, &from)?,
            // Records that do not say which cell they are of are in the order of the cells.
            _ if !E::CELLS_AT_ONCE && recorded[..cell].contains(&false) => continue,
            _ if recorded[cell] => continue,
            _ => {
                files::copy_nested(&from, &directory, name)?;
                for record in read_metrics::<E::Record>(&from)? {
                    run.append(&record)?;
                }
                recorded[cell] = true;
            }
        }
    }
    if !machines.is_empty() {
        run.write_json(MACHINES, &machines)?;
    }
    Ok(())
}

/// The only cell of a run is the run.
fn collect_whole<E: Experiment>(run: &mut Run, from: &Path) -> Result<(), RunError> {
    if run.path().join(SUMMARY).exists() {
        return Ok(());
    }
    run.forget_records()?;
    for record in read_metrics::<E::Record>(from)? {
        run.append(&record)?;
    }
    files::copy_run_without(from, run.path(), &[CONFIG, METRICS])?;
    Ok(())
}

/// The cells that the records of a run are of.
pub(super) fn recorded_cells<E: Experiment>(
    experiment: &E,
    directory: &Path,
    count: usize,
) -> Result<Vec<bool>, RunError> {
    let mut recorded = vec![false; count];
    for (place, record) in read_metrics(directory)?.into_iter().enumerate() {
        let cell = match experiment.recall(place, record)? {
            Recalled::Complete(cell, _) | Recalled::Elsewhere(cell) => cell,
            Recalled::Part => continue,
        };
        match recorded.get_mut(cell) {
            Some(recorded) => *recorded = true,
            None => {
                return Err(RunError::TooManyRecords {
                    path: directory.to_owned(),
                });
            }
        }
    }
    Ok(recorded)
}

/// The cells that failed, with their reasons, of a grid that has come to its end.
///
/// # Errors
///
/// If cells are missing, or have failed and the experiment needs all of them.
pub(crate) fn failures_of<E: Experiment>(
    directory: &Path,
) -> Result<Vec<(usize, String)>, RunError> {
    let status = status(directory)?;
    let mut failures = Vec::new();
    let mut missing = 0;
    for cell in &status.cells {
        match &cell.state {
            CellState::Done { .. } | CellState::Recorded => {}
            CellState::Failed { reason, .. } if E::OUTLIVES_FAILURES => {
                failures.push((cell.cell, reason.clone()));
            }
            _ => missing += 1,
        }
    }
    match missing {
        0 => Ok(failures),
        missing => Err(GridError::Incomplete {
            missing,
            count: status.cells.len(),
            states: status.counts(),
        }
        .into()),
    }
}
