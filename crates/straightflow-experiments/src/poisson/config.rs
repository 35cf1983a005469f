//! The settings of the game: everything that decides its bits.

use std::collections::HashSet;

use burn::tensor::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};
use straightflow::distribution::CountLaw;
use straightflow::estimator::{REGISTRY, StateShape};
use straightflow::kernel::{Bandwidth, KernelFamily};
use straightflow::prelude::*;
use straightflow::projection::SelfTerms;

use super::discriminator::GameObjective;
use super::error::GameError;

/// What stands before an estimator whose learning rate is multiplied by [`paper_gain`].
pub(super) const MATCHED: &str = "matched:";

/// The rows of the default run and their names: the paper's four, then the controls.
pub const DEFAULT_ROWS: [(&str, &str); 9] = [
    ("pwgf:preset=paper", "pWGF (as in the paper)"),
    ("straight-through", "straight-through"),
    ("muprop", "MuProp"),
    ("reinforce:baseline=loo", "REINFORCE, leave-one-out"),
    ("enumerate", "exact gradient"),
    ("pwgf:preset=paper,gain=projection", "pWGF, unit gain"),
    ("matched:straight-through", "straight-through, matched"),
    ("pwgf:preset=paper,cv=off", "pWGF, no control variate"),
    ("reinforce", "REINFORCE, no baseline"),
];

/// How the generator's rate is parametrised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parametrisation {
    /// The parameter is the rate.
    #[default]
    Direct,
    /// The parameter is the logarithm of the rate.
    LogRate,
    /// The rate is `ln(1 + exp(parameter))`.
    Softplus,
}

impl Parametrisation {
    pub(super) fn rate(self, parameter: f64) -> f64 {
        match self {
            Self::Direct => parameter,
            Self::LogRate => parameter.exp(),
            Self::Softplus => parameter.max(0.0) + (-parameter.abs()).exp().ln_1p(),
        }
    }

    pub(super) fn parameter(self, rate: f64) -> f64 {
        match self {
            Self::Direct => rate,
            Self::LogRate => rate.ln(),
            // ln(exp(rate) - 1) without overflow.
            Self::Softplus => rate + (-(-rate).exp_m1()).ln(),
        }
    }

    /// From a gradient with respect to the logarithm of the rate, which estimators give, to one
    /// with respect to the parameter.
    pub(super) fn chain(self, by_log_rate: f64, rate: f64) -> f64 {
        match self {
            Self::Direct => by_log_rate / rate,
            Self::LogRate => by_log_rate,
            // sigmoid(parameter) = 1 - exp(-rate)
            Self::Softplus => by_log_rate / rate * -(-rate).exp_m1(),
        }
    }
}

/// One line of the table: an estimator and its learning rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Row {
    /// The row as it is asked for: a specification, or `matched:` and a specification.
    pub id: String,
    /// The name in tables and plots.
    pub label: String,
    /// The estimator, with the number of its samples.
    pub spec: Spec,
    /// The learning rate of the generator.
    pub learning_rate: f64,
}

/// A run of the game, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The rate of the data.
    pub rate: f64,
    /// The generator's first rate.
    pub init: f64,
    /// The generator's parameter.
    pub parametrisation: Parametrisation,
    /// What the discriminator minimises.
    pub objective: GameObjective,
    /// The samples of a batch: of the data, of the generator for the discriminator, and, unless a
    /// specification says otherwise, of the estimator.
    pub samples: usize,
    /// The size of a fixed data set for each seed; 0 for fresh data in each iteration.
    pub data: usize,
    /// The number of epochs.
    pub epochs: usize,
    /// The iterations of an epoch, each a step of both players.
    pub iterations: usize,
    /// The number of epochs at the end over which the statistics are taken.
    pub tail: usize,
    /// The number of seeds.
    pub seeds: usize,
    /// The seed of all seeds.
    pub seed: u64,
    /// The number of seeds that are played as one tensor program. The samples of a seed depend on
    /// how many there are in its block.
    pub block: usize,
    /// The rows of the table.
    pub rows: Vec<Row>,
}

/// What a user chooses; the rest of a [`Config`] follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rate of the data.
    pub rate: f64,
    /// The generator's first rate.
    pub init: f64,
    /// The generator's parameter.
    pub parametrisation: Parametrisation,
    /// What the discriminator minimises.
    pub objective: GameObjective,
    /// The rows, each a specification or `matched:` and a specification.
    pub estimators: Vec<String>,
    /// The common learning rate of the generators.
    pub learning_rate: f64,
    /// The samples of a batch.
    pub samples: usize,
    /// The size of a fixed data set; 0 for fresh data.
    pub data: usize,
    /// The number of epochs.
    pub epochs: usize,
    /// The iterations of an epoch.
    pub iterations: usize,
    /// The number of epochs at the end over which the statistics are taken; without it 20, and at
    /// most half of all.
    pub tail: Option<usize>,
    /// The number of seeds.
    pub seeds: usize,
    /// The seed of all seeds.
    pub seed: u64,
    /// The number of seeds that are played as one tensor program.
    pub block: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate: 5.0,
            init: 1.0,
            parametrisation: Parametrisation::Direct,
            objective: GameObjective::LogLoss,
            estimators: DEFAULT_ROWS.map(|(id, _)| id.to_owned()).to_vec(),
            learning_rate: 2.5,
            samples: 200,
            data: 0,
            epochs: 120,
            iterations: 10,
            tail: None,
            seeds: 20,
            seed: 1,
            block: 10,
        }
    }
}

impl Settings {
    /// Checks the settings and completes them.
    ///
    /// # Errors
    ///
    /// The first setting that is out of its range, an unknown estimator or option, an estimator
    /// that is not for Poisson variables or has state.
    pub fn config(self) -> Result<Config, GameError> {
        positive("rate", self.rate)?;
        positive("learning rate", self.learning_rate)?;
        let row = |id: &String| self.row(id);
        let config = Config {
            rows: self.estimators.iter().map(row).collect::<Result<_, _>>()?,
            rate: self.rate,
            init: self.init,
            parametrisation: self.parametrisation,
            objective: self.objective,
            samples: self.samples,
            data: self.data,
            epochs: self.epochs,
            iterations: self.iterations,
            tail: self.tail.unwrap_or(usual_tail(self.epochs)),
            seeds: self.seeds,
            seed: self.seed,
            block: self.block,
        };
        config.check()?;
        Ok(config)
    }

    fn row(&self, id: &str) -> Result<Row, GameError> {
        let (text, factor) = match id.strip_prefix(MATCHED) {
            Some(text) => (text, paper_gain(self.rate)),
            None => (id, 1.0),
        };
        let mut spec: Spec = text.parse().map_err(GameError::Estimator)?;
        let takes_samples = REGISTRY.iter().any(|entry| {
            entry.id == spec.id() && entry.options.iter().any(|option| option.field == "samples")
        });
        if takes_samples && !text.contains("samples=") {
            spec.set("samples", &self.samples.to_string());
        }
        let known = DEFAULT_ROWS.iter().find(|(known, _)| *known == id);
        Ok(Row {
            id: id.to_owned(),
            label: known.map_or(id, |(_, label)| label).to_owned(),
            spec,
            learning_rate: self.learning_rate * factor,
        })
    }
}

/// The epochs at the end over which the statistics are taken, unless it is said.
fn usual_tail(epochs: usize) -> usize {
    epochs.div_ceil(2).min(20)
}

impl Config {
    /// Checks a configuration, also one that was read from a file.
    ///
    /// # Errors
    ///
    /// As [`Settings::config`].
    pub fn check(&self) -> Result<(), GameError> {
        positive("rate", self.rate)?;
        positive("initial rate", self.init)?;
        count("number of samples", self.samples)?;
        count("number of epochs", self.epochs)?;
        count("number of iterations", self.iterations)?;
        count("number of seeds", self.seeds)?;
        count("number of seeds in a block", self.block)?;
        if self.data > 0 {
            count("size of the data set", self.data)?;
        }
        // TOML has no larger integers.
        if i64::try_from(self.seed).is_err() {
            return Err(GameError::Setting {
                setting: "seed",
                allowed: "below 2^63",
                got: self.seed.to_string(),
            });
        }
        if !(1..=self.epochs).contains(&self.tail) {
            return Err(GameError::Setting {
                setting: "tail",
                allowed: "between 1 and the number of epochs",
                got: self.tail.to_string(),
            });
        }
        if self.rows.is_empty() {
            return Err(GameError::NoRows);
        }
        let mut ids = HashSet::new();
        for row in &self.rows {
            positive("learning rate", row.learning_rate)?;
            self.estimator(row)?;
            if !ids.insert(&row.id) {
                return Err(GameError::RepeatedRow(row.id.clone()));
            }
        }
        Ok(())
    }

    /// The settings that lead to this configuration.
    pub fn settings(&self) -> Settings {
        // A matched row has a multiple of the common rate, which only the others tell to the bit.
        let plain = self.rows.iter().find(|row| !row.id.starts_with(MATCHED));
        let learning_rate = match (plain, self.rows.first()) {
            (Some(row), _) => row.learning_rate,
            (None, Some(row)) => row.learning_rate / paper_gain(self.rate),
            (None, None) => Settings::default().learning_rate,
        };
        Settings {
            rate: self.rate,
            init: self.init,
            parametrisation: self.parametrisation,
            objective: self.objective,
            estimators: self.rows.iter().map(|row| row.id.clone()).collect(),
            learning_rate,
            samples: self.samples,
            data: self.data,
            epochs: self.epochs,
            iterations: self.iterations,
            tail: Some(self.tail).filter(|tail| *tail != usual_tail(self.epochs)),
            seeds: self.seeds,
            seed: self.seed,
            block: self.block,
        }
    }

    /// The estimator of a row, checked against the generator's first law.
    pub(super) fn estimator(&self, row: &Row) -> Result<Box<dyn Estimator>, GameError> {
        let estimator = row.spec.build().map_err(GameError::Estimator)?;
        let q = poisson(&[self.init], &Device::flex());
        let checked = q.and_then(|q| {
            estimator.check(q.law(), estimator.draws())?;
            Ok(StateShape::of(q.law(), 1))
        });
        let shape = checked.map_err(GameError::Estimator)?;
        let device = Device::flex().autodiff();
        match estimator.init_state(Key::new(0), shape, &device) {
            Some(_) => Err(GameError::Stateful(row.spec.to_string())),
            None => Ok(estimator),
        }
    }

    /// The number of iterations of a game.
    pub fn length(&self) -> usize {
        self.epochs * self.iterations
    }

    /// How far from the rate of the data a game counts as settled.
    pub fn tolerance(&self) -> f64 {
        0.25 * self.rate.sqrt()
    }
}

/// Poisson variables, one for each game, in double precision.
pub(super) fn poisson(rates: &[f64], device: &Device) -> straightflow::Result<Poisson> {
    let data = burn::tensor::TensorData::new(rates.to_vec(), [rates.len(), 1]);
    Poisson::from_rates(Tensor::<2>::from_data(data, (device, DType::F64)))
}

/// `2 eps M` of the preset `paper` at a rate: the factor between its raw gradient and one of unit
/// gain, `eps = 1` and the bandwidth one standard deviation.
pub fn paper_gain(rate: f64) -> f64 {
    let law = CountLaw::Poisson { rate };
    let bandwidth = Bandwidth::deviations(1.0).expect("a positive factor");
    let kernel = KernelFamily::Rbf.at(bandwidth.resolve(&law));
    2.0 * SelfTerms::new(&law, kernel.expect("a positive bandwidth").as_ref()).curvature
}

fn positive(setting: &'static str, value: f64) -> Result<(), GameError> {
    // Samples of larger rates are their own mean.
    if value > 0.0 && value <= 1e6 {
        return Ok(());
    }
    Err(GameError::Setting {
        setting,
        allowed: "positive and at most a million",
        got: value.to_string(),
    })
}

fn count(setting: &'static str, value: usize) -> Result<(), GameError> {
    if (1..=1_000_000).contains(&value) {
        return Ok(());
    }
    Err(GameError::Setting {
        setting,
        allowed: "at least 1 and at most a million",
        got: value.to_string(),
    })
}
