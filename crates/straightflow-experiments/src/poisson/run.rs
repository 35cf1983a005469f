//! All games of a run, on threads, in cells that are recorded one by one.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::error::GameError;
use super::game::{Game, Pulse, play};

/// One row for one block of seeds: the unit of work and of record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The id of the row.
    pub row: String,
    /// The first seed of the block.
    pub first_seed: usize,
    /// The games, one for each seed.
    pub games: Vec<Game>,
}

/// Who watches a run.
pub trait Watcher {
    /// Why a cell could not be taken; errors of the games become this.
    type Error: From<GameError>;

    /// The share of the run that is done, from 0 to 1, several times a second.
    fn progress(&mut self, share: f64);

    /// A cell is complete.
    ///
    /// # Errors
    ///
    /// An error ends the run.
    fn complete(&mut self, cell: &Cell) -> Result<(), Self::Error>;
}

/// How often the watcher hears of progress.
const TICK: Duration = Duration::from_millis(200);

/// Plays all games that are not in `recorded` on `jobs` threads and returns all cells, in the order
/// of the configuration.
///
/// Every cell is played on one thread, whatever the number of jobs, and as a function of the
/// configuration only.
///
/// # Errors
///
/// Bad settings, recorded cells of another configuration, games that diverge, and the watcher's
/// own.
pub fn run<W: Watcher>(
    config: &Config,
    recorded: Vec<Cell>,
    jobs: usize,
    watcher: &mut W,
) -> Result<Vec<Cell>, W::Error> {
    config.check()?;
    let plan = Plan::new(config);
    let mut cells: Vec<Option<Cell>> = vec![None; plan.cells.len()];
    for cell in recorded {
        let place = plan.place(&cell)?;
        cells[place] = Some(cell);
    }
    let open: Vec<usize> = (0..cells.len()).filter(|i| cells[*i].is_none()).collect();
    let next = AtomicUsize::new(0);
    let pulse = Pulse::default();
    let before = plan.iterations(|place| cells[place].is_some());
    let total = plan.iterations(|_| true) as f64;
    let share = || (before + pulse.iterations.load(Ordering::Relaxed)) as f64 / total;
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..jobs.clamp(1, open.len().max(1)) {
            let sender = sender.clone();
            let (plan, open, next, pulse) = (&plan, &open, &next, &pulse);
            // Tensor operations stay on the worker's own thread: sums would otherwise depend on
            // the number of threads, and small tensors only lose by being split.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.map_err(GameError::from)?;
            scope.spawn(move || {
                while let Some(&place) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (row, seeds) = plan.cells[place].clone();
                    let (row, first_seed) = (&config.rows[row], seeds.start);
                    let games = pool.install(|| play(config, row, seeds, pulse));
                    let cell = games.transpose().map(|games| {
                        games.map(|games| Cell {
                            row: row.id.clone(),
                            first_seed,
                            games,
                        })
                    });
                    // After an error nobody listens any more.
                    let Some(cell) = cell else { return };
                    if sender.send((place, cell)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut listen = || -> Result<(), W::Error> {
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok((place, cell)) => {
                        let cell = cell?;
                        watcher.complete(&cell)?;
                        cells[place] = Some(cell);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                }
                watcher.progress(share());
            }
        };
        let listened = listen();
        pulse.cancelled.store(true, Ordering::Relaxed);
        listened
    })?;
    Ok(cells.into_iter().flatten().collect())
}

/// The cells of a configuration: its rows, each cut into blocks of seeds.
struct Plan<'a> {
    config: &'a Config,
    cells: Vec<(usize, Range<usize>)>,
}

impl<'a> Plan<'a> {
    fn new(config: &'a Config) -> Self {
        let blocks = (0..config.seeds).step_by(config.block);
        let blocks = blocks.map(|first| first..config.seeds.min(first + config.block));
        let row = |row: usize| blocks.clone().map(move |seeds| (row, seeds));
        Self {
            config,
            cells: (0..config.rows.len()).flat_map(row).collect(),
        }
    }

    /// Which cell of the plan a recorded one is.
    fn place(&self, cell: &Cell) -> Result<usize, GameError> {
        let matches = |(row, seeds): &(usize, Range<usize>)| {
            self.config.rows[*row].id == cell.row
                && cell.games.iter().map(|game| game.seed).eq(seeds.clone())
                && cell
                    .games
                    .iter()
                    .all(|game| game.curve.len() == self.config.epochs + 1)
        };
        let place = self.cells.iter().position(matches);
        place.ok_or_else(|| GameError::ForeignCell {
            row: cell.row.clone(),
            first_seed: cell.first_seed,
        })
    }

    /// The iterations of the cells that a condition picks, for each seed.
    fn iterations(&self, pick: impl Fn(usize) -> bool) -> u64 {
        let cells = self.cells.iter().enumerate();
        let picked = cells.filter(|(place, _)| pick(*place));
        let games: usize = picked.map(|(_, (_, seeds))| seeds.len()).sum();
        (games * self.config.length()) as u64
    }
}
