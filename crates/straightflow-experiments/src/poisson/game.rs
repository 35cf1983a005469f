//! The game itself: a block of seeds, played as one tensor program.
//!
//! In each iteration every discriminator sees fresh data and fresh counts of its generator and
//! takes a step of Adam; then every generator draws again and takes a plain gradient step with the
//! gradient of the estimator under test. All rows play with the same keys, so they meet the same
//! data and start from the same discriminators.

use std::ops::Range;

use burn::tensor::Device;
use rand_distr::{Distribution as _, Poisson as Counts, Uniform};
use serde::{Deserialize, Serialize};
use straightflow::prelude::*;

use super::config::{Config, Parametrisation, Row, poisson};
use super::discriminator::{Critics, Discriminator};
use super::error::GameError;

/// A rate that is its own parameter must stay positive: below this share of the data's rate it is
/// set back to it, and the times are counted.
pub const FLOOR: f64 = 1e-3;

/// What is recorded of one game.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Game {
    /// The seed.
    pub seed: usize,
    /// The rate at the beginning and after each epoch.
    pub curve: Vec<f64>,
    /// The mean of the rate over the tail.
    pub mean: f64,
    /// The standard deviation of the rate over the iterations of the tail.
    pub time_std: f64,
    /// The mean squared distance to the rate of the data over the tail.
    pub square_error: f64,
    /// The last rate.
    pub last: f64,
    /// The last iteration in which the rate was out of tolerance; 0 if it never was.
    pub settle: usize,
    /// How often the floor of the rate acted.
    pub floored: usize,
    /// `4 E w (1 - w)` on the discriminator's last fakes: 1 if it is undecided, 0 if saturated.
    pub openness: f64,
}

/// One player of the data, its opponent's parameter and what happened so far.
struct Table {
    seed: usize,
    discriminator: Discriminator,
    parameter: f64,
    rates: Vec<f64>,
    floored: usize,
    /// Counts of the data that are drawn from again and again; empty for fresh ones.
    data: Vec<f64>,
    fresh_data: Key,
    fakes: Key,
    openness: f64,
}

/// Plays one row for a block of seeds; `None` if the callback that hears of the progress returns `false`.
pub(super) fn play(
    config: &Config,
    row: &Row,
    seeds: Range<usize>,
    progress: &dyn Fn(f64) -> bool,
) -> Result<Option<Vec<Game>>, GameError> {
    let estimator = config.estimator(row)?;
    let device = Device::flex();
    let [players, estimates] = Key::new(config.seed).split();
    let estimates = estimates.child((seeds.start / config.block) as u64);
    let table = |seed: usize| Table::new(config, seed, players.child(seed as u64));
    let mut tables: Vec<Table> = seeds.map(table).collect();
    for iteration in 0..config.length() {
        if !progress(iteration as f64 / config.length() as f64) {
            return Ok(None);
        }
        for table in &mut tables {
            table.teach(config, iteration);
        }
        let failed = |source| GameError::Estimate {
            row: row.id.clone(),
            iteration: iteration + 1,
            source,
        };
        let rates: Vec<f64> = tables.iter().map(Table::rate).collect();
        let q = poisson(&rates, &device).map_err(failed)?;
        let discriminators: Vec<&Discriminator> =
            tables.iter().map(|table| &table.discriminator).collect();
        let critics = Critics::new(&discriminators, &device);
        let gradient = estimator
            .at_step(iteration as u64)
            .and_then(|estimator| {
                let key = estimates.child(iteration as u64);
                estimator.gradient(key, &q, |z| critics.cost(z))
            })
            .map_err(failed)?;
        let gradient: Vec<f64> = gradient.into_data().try_to_vec().expect("double precision");
        for (table, by_log_rate) in tables.iter_mut().zip(gradient) {
            table.descend(config, row, by_log_rate)?;
        }
    }
    let games = tables.into_iter().map(|table| table.finish(config));
    Ok(Some(games.collect()))
}

impl Table {
    fn new(config: &Config, seed: usize, key: Key) -> Self {
        let [network, data_set, fresh_data, fakes] = key.split();
        Self {
            seed,
            discriminator: Discriminator::new(network, config.rate),
            parameter: config.parametrisation.parameter(config.init),
            rates: vec![config.init],
            floored: 0,
            data: draw(data_set, config.rate, config.data),
            fresh_data,
            fakes,
            openness: 1.0,
        }
    }

    fn rate(&self) -> f64 {
        self.rates[self.rates.len() - 1]
    }

    /// The discriminator's step.
    fn teach(&mut self, config: &Config, iteration: usize) {
        let key = self.fresh_data.child(iteration as u64);
        let mut data = match self.data.len() {
            0 => draw(key, config.rate, config.samples),
            size => {
                let index = Uniform::new(0, size).expect("a data set");
                let indices = index.sample_iter(key.generator());
                indices.take(config.samples).map(|i| self.data[i]).collect()
            }
        };
        let key = self.fakes.child(iteration as u64);
        let mut fakes = draw(key, self.rate(), config.samples);
        self.discriminator
            .learn(config.objective, &mut data, &mut fakes);
        if iteration + 1 == config.length() {
            let open = fakes.iter().map(|z| self.discriminator.probability(*z));
            self.openness = average(open.map(|w| 4.0 * w * (1.0 - w)));
        }
    }

    /// The generator's step, down the gradient of `-E w`.
    fn descend(&mut self, config: &Config, row: &Row, by_log_rate: f64) -> Result<(), GameError> {
        let slope = config.parametrisation.chain(by_log_rate, self.rate());
        self.parameter -= row.learning_rate * slope;
        let floor = FLOOR * config.rate;
        if config.parametrisation == Parametrisation::Direct && self.parameter < floor {
            self.parameter = floor;
            self.floored += 1;
        }
        let rate = config.parametrisation.rate(self.parameter);
        // Written so that it also catches what is not a number.
        if !(rate > 0.0 && rate <= LARGEST_RATE) {
            return Err(GameError::Diverged {
                row: row.id.clone(),
                seed: self.seed,
                iteration: self.rates.len(),
                rate,
            });
        }
        self.rates.push(rate);
        Ok(())
    }

    fn finish(self, config: &Config) -> Game {
        let tail = &self.rates[self.rates.len() - config.tail * config.iterations..];
        let mean = average(tail.iter().copied());
        let outside = |rate: &f64| (rate - config.rate).abs() > config.tolerance();
        Game {
            seed: self.seed,
            mean,
            time_std: average(tail.iter().map(|rate| (rate - mean).powi(2))).sqrt(),
            square_error: average(tail.iter().map(|rate| (rate - config.rate).powi(2))),
            last: self.rate(),
            settle: self.rates.iter().rposition(outside).unwrap_or(0),
            curve: self
                .rates
                .iter()
                .step_by(config.iterations)
                .copied()
                .collect(),
            floored: self.floored,
            openness: self.openness,
        }
    }
}

/// Beyond it the counts of `f64` samplers are no longer exact.
const LARGEST_RATE: f64 = 1e15;

/// Counts of a rate that is positive and finite.
pub(super) fn draw(key: Key, rate: f64, count: usize) -> Vec<f64> {
    let counts = Counts::new(rate).expect("a rate within its range");
    counts.sample_iter(key.generator()).take(count).collect()
}

fn average(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
