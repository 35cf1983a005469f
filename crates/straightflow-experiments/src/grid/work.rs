//! A task of a grid: one cell, from its claim to its end.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use straightflow_report::record::CONFIG;

use super::lease::{BEATS, How, Place};
use super::{Claim, Grid, GridError, claim, files, place_of};
use crate::experiment::Experiment;
use crate::runner::{
    Assignment, RunError, Screen, command_line, in_one_line, read_config, work_on_cell,
};

/// What a task is to do, and where.
pub(crate) struct Task<'a> {
    pub(crate) grid: &'a Grid,
    /// The directory of the whole run.
    pub(crate) directory: &'a Path,
    pub(crate) cell: usize,
    pub(crate) jobs: usize,
    pub(crate) stop: &'a (dyn Fn() -> bool + Sync),
}

/// Works on a cell until it is recorded, which others may have done before: then the answer is false. The
/// configuration is that of the directory, and `prepare` makes an experiment of it.
pub(crate) fn work_on<E: Experiment>(
    task: &Task,
    prepare: impl FnOnce(E::Config) -> Result<E, RunError>,
    screen: &mut dyn Screen,
) -> Result<bool, RunError> {
    let Task { grid, cell, .. } = *task;
    grid.check(cell)?;
    if !grid.fits(task.directory)? {
        let path = task.directory.to_owned();
        return Err(GridError::OtherSettings { path }.into());
    }
    if grid.recorded.contains(&cell) {
        return Ok(false);
    }
    let place = place_of(task.directory, cell);
    let Some(claim) = claim(&place, cell, grid.lease(), task.stop)? else {
        return Ok(false);
    };
    let alive = Alive::new(claim);
    let result = alive.renewed(grid.lease() / BEATS, || {
        let config = read_config(&task.directory.join(CONFIG), E::ID)?;
        let experiment = prepare(config)?;
        attempt(task, &experiment, &alive, screen)
    });
    let lost = alive.lost.load(Ordering::Relaxed);
    let claim = alive.into_claim();
    match result {
        Ok(()) => match claim.complete()? {
            true => Ok(true),
            false => Err(GridError::TakenOver { cell }.into()),
        },
        Err(RunError::Stopped) if lost => {
            claim.give_up(How::SteppedBack, None)?;
            Err(GridError::TakenOver { cell }.into())
        }
        Err(RunError::Stopped) => {
            claim.give_up(How::Stopped, None)?;
            Err(RunError::Stopped)
        }
        Err(error) => {
            claim.give_up(How::Failed, Some(in_one_line(&error)))?;
            Err(error)
        }
    }
}

/// Brings what is known of the cell to the place of this attempt, and goes on from there.
fn attempt<E: Experiment>(
    task: &Task,
    experiment: &E,
    alive: &Alive,
    screen: &mut dyn Screen,
) -> Result<(), RunError> {
    let Task { grid, cell, .. } = *task;
    let place = place_of(task.directory, cell);
    let run = alive.claim().run();
    match Place(&place).last_ready()? {
        Some(before) => files::copy_run(&Place(&place).run(before), &run)?,
        None => {
            let alone = grid.cells.len() == 1;
            files::copy_cell(task.directory, &run, &grid.cells[cell], alone)?;
        }
    }
    alive.claim().set_ready()?;
    let command = command_line(&grid.command);
    let stop = || alive.lost.load(Ordering::Relaxed) || (task.stop)();
    let assignment = Assignment {
        directory: Some(&run),
        jobs: task.jobs,
        command: &command,
        may_grow: true,
        failures: &[],
        stop: &stop,
    };
    let mut screen = Watched { alive, screen };
    work_on_cell(experiment, cell, &assignment, &mut screen)
}

/// A claim whose lease is renewed while the cell runs.
struct Alive {
    claim: Mutex<Claim>,
    /// The share of the cell that is done, as bits.
    share: AtomicU64,
    /// Whether another attempt has taken over.
    lost: AtomicBool,
}

impl Alive {
    fn new(claim: Claim) -> Self {
        Self {
            claim: Mutex::new(claim),
            share: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        }
    }

    fn claim(&self) -> MutexGuard<'_, Claim> {
        self.claim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_claim(self) -> Claim {
        let claim = self.claim.into_inner();
        claim.unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something, and renews the lease every now and then meanwhile.
    fn renewed<T>(&self, every: Duration, act: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            let (still_there, ended) = mpsc::channel::<()>();
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(every) {
                    let share = f64::from_bits(self.share.load(Ordering::Relaxed));
                    let mut claim = self.claim();
                    // A file system that fails for a moment is no reason to end. If it stays away, the
                    // records fail; if it comes back, the next look tells whether the lease has expired.
                    if let Ok(true) = claim.is_lost() {
                        self.lost.store(true, Ordering::Relaxed);
                        return;
                    }
                    let _ = claim.renew(share);
                }
            });
            let result = act();
            drop(still_there);
            result
        })
    }
}

/// Notes how far the cell is, for its lease.
struct Watched<'a> {
    alive: &'a Alive,
    screen: &'a mut dyn Screen,
}

impl Screen for Watched<'_> {
    fn progress(&mut self, share: f64, left: Option<Duration>) {
        self.alive.share.store(share.to_bits(), Ordering::Relaxed);
        self.screen.progress(share, left);
    }

    fn note(&mut self, text: &str) {
        self.screen.note(text);
    }
}
