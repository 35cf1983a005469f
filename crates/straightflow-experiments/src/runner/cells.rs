//! The cells of a run, on as many threads as it may have.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use straightflow_report::Run;

use super::desk::{Desk, News, locked};
use super::error::in_one_line;
use super::progress::Progress;
use super::{Assignment, RunError, Screen};
use crate::experiment::Experiment;

/// How often progress is shown if nothing happens.
const TICK: Duration = Duration::from_millis(200);

/// What a worker says.
enum Message<O> {
    /// Something about a cell.
    News(usize, News),
    /// A cell has ended, and there was something left to do.
    Done(usize, Result<O, RunError>, bool),
}

/// The outcomes of cells, as far as they are known.
pub(super) type Found<O> = Vec<Option<Result<O, String>>>;

/// What is known of the cells before any of them is run.
pub(super) struct Known<O> {
    /// Their outcomes, as far as they are known.
    pub(super) outcomes: Found<O>,
    /// Whether they have a record.
    pub(super) recorded: Vec<bool>,
    /// The cell that alone is to be run, instead of all without an outcome.
    pub(super) only: Option<usize>,
}

/// Runs the cells that are to be run. The first failure stops the others, unless the experiment outlives
/// it.
pub(super) fn run<E: Experiment>(
    experiment: &E,
    names: &[String],
    known: Known<E::Outcome>,
    opened: Option<&Mutex<Run>>,
    assignment: &Assignment,
    progress: &mut Progress,
    screen: &mut dyn Screen,
) -> Result<Found<E::Outcome>, RunError> {
    let Known {
        mut outcomes,
        recorded,
        only,
    } = known;
    let open: Vec<usize> = (0..names.len())
        .filter(|cell| outcomes[*cell].is_none() && only.is_none_or(|only| only == *cell))
        .collect();
    let next = AtomicUsize::new(0);
    let cancelled = AtomicBool::new(false);
    let stop = || cancelled.load(Ordering::Relaxed) || (assignment.stop)();
    let workers = match E::CELLS_AT_ONCE {
        true => assignment.threads::<E>(open.len()),
        false => 1,
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..workers {
            let (sender, open, next, stop) = (sender.clone(), &open, &next, &stop);
            let pool = pool::<E>(assignment.jobs)?;
            scope.spawn(move || {
                while let Some(&cell) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let tell = |news| {
                        // After an error nobody listens any more.
                        let _ = sender.send(Message::News(cell, news));
                    };
                    let desk = Desk {
                        run: opened,
                        command: assignment.command,
                        stop,
                        tell: &tell,
                        told: AtomicU64::new(f64::NAN.to_bits()),
                        worked: AtomicBool::new(true),
                    };
                    let work = || match desk.check() {
                        Ok(()) => experiment.run(cell, &desk),
                        Err(error) => Err(error),
                    };
                    let result = match &pool {
                        Some(pool) => pool.install(work),
                        None => work(),
                    };
                    let worked = desk.worked.load(Ordering::Relaxed);
                    if sender.send(Message::Done(cell, result, worked)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut listen = || -> Result<(), RunError> {
            let mut stopped = false;
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(Message::News(cell, News::Share(share))) => progress.set(cell, share),
                    Ok(Message::News(_, News::Part)) => progress.finish_part(),
                    Ok(Message::News(_, News::Note(text))) => screen.note(&text),
                    Ok(Message::Done(cell, Ok(outcome), worked)) => {
                        let record = experiment.record(cell, &outcome);
                        if let (Some(run), Some(record)) = (opened, record)
                            && !recorded[cell]
                        {
                            locked(run).append(&record)?;
                        }
                        outcomes[cell] = Some(Ok(outcome));
                        progress.end(cell, worked);
                    }
                    Ok(Message::Done(_, Err(RunError::Stopped), _)) => stopped = true,
                    Ok(Message::Done(cell, Err(error), _)) => {
                        if !E::OUTLIVES_FAILURES {
                            return Err(error);
                        }
                        let reason = in_one_line(&error);
                        screen.note(&format!("{}: {reason}", names[cell]));
                        outcomes[cell] = Some(Err(reason));
                        progress.end(cell, true);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                progress.show(screen);
            }
            if stopped {
                Err(RunError::Stopped)
            } else {
                Ok(())
            }
        };
        let listened = listen();
        cancelled.store(true, Ordering::Relaxed);
        listened
    })?;
    Ok(outcomes)
}

/// The threads of a worker: one if cells run at once, because sums would otherwise depend on the number of
/// threads, and small tensors only lose by being split; otherwise those of the process, or as many as were
/// asked for.
fn pool<E: Experiment>(jobs: usize) -> Result<Option<rayon::ThreadPool>, RunError> {
    let threads = match E::CELLS_AT_ONCE {
        true => 1,
        false if jobs == 0 => return Ok(None),
        false => jobs,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok(Some(pool?))
}
