//! The cells of the game: rows, each cut into blocks of seeds.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::error::GameError;
use super::game::{Game, play};

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

/// The game: a configuration whose every part was looked at, and its cells.
#[derive(Clone, Debug)]
pub struct PoissonGame {
    pub(super) config: Config,
    /// Rows and seeds.
    pub(super) plan: Vec<(usize, Range<usize>)>,
}

impl PoissonGame {
    /// Checks a configuration.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn new(config: Config) -> Result<Self, GameError> {
        config.check()?;
        let blocks = (0..config.seeds).step_by(config.block);
        let blocks = blocks.map(|first| first..config.seeds.min(first + config.block));
        let row = |row: usize| blocks.clone().map(move |seeds| (row, seeds));
        Ok(Self {
            plan: (0..config.rows.len()).flat_map(row).collect(),
            config,
        })
    }

    /// Plays a cell, as a function of the configuration only. Progress is a share from 0 to 1; the one who
    /// hears of it may stop the game with `false`.
    ///
    /// # Errors
    ///
    /// Games that diverge, and estimates that fail.
    ///
    /// # Panics
    ///
    /// If there is no such cell.
    pub fn play(
        &self,
        cell: usize,
        progress: &dyn Fn(f64) -> bool,
    ) -> Result<Option<Cell>, GameError> {
        let (row, seeds) = self.plan[cell].clone();
        let (row, first_seed) = (&self.config.rows[row], seeds.start);
        let games = play(&self.config, row, seeds, progress)?;
        Ok(games.map(|games| Cell {
            row: row.id.clone(),
            first_seed,
            games,
        }))
    }

    /// Which cell a recorded one is.
    ///
    /// # Errors
    ///
    /// If it is no part of this configuration.
    pub fn place(&self, cell: &Cell) -> Result<usize, GameError> {
        let matches = |(row, seeds): &(usize, Range<usize>)| {
            self.config.rows[*row].id == cell.row
                && cell.games.iter().map(|game| game.seed).eq(seeds.clone())
                && cell
                    .games
                    .iter()
                    .all(|game| game.curve.len() == self.config.epochs + 1)
        };
        let place = self.plan.iter().position(matches);
        place.ok_or_else(|| GameError::ForeignCell {
            row: cell.row.clone(),
            first_seed: cell.first_seed,
        })
    }
}
