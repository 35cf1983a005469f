//! The other player: a small network that tells counts of the data from counts of the generator.
//!
//! Its own step is written out by hand in double precision. A batch of counts has few distinct
//! values, so the loss is a short weighted sum over those; the generator sees the same network as
//! a program of tensors ([`Critics`]).

use burn::tensor::activation::sigmoid;
use burn::tensor::{DType, Device, Tensor, TensorData};
use rand_distr::{Distribution, StandardNormal, Uniform};
use serde::{Deserialize, Serialize};
use straightflow::Key;

/// The number of tanh units.
pub(super) const HIDDEN: usize = 16;
/// Input weights, input biases, output weights and the output bias, in this order.
const PARAMETERS: usize = 3 * HIDDEN + 1;
/// The learning rate of Adam.
const LEARNING_RATE: f64 = 1e-2;

/// What the discriminator minimises; `w` is its output, between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GameObjective {
    /// `-E_data log w - E_generator log(1 - w)`.
    #[default]
    LogLoss,
    /// `E_generator w - E_data w`: the paper's formula as it is printed.
    Literal,
}

impl GameObjective {
    /// The slopes of the loss with respect to the network's logit, for a count of the data and for
    /// one of the generator.
    fn slopes(self, w: f64) -> [f64; 2] {
        match self {
            Self::LogLoss => [w - 1.0, w],
            Self::Literal => [-w * (1.0 - w), w * (1.0 - w)],
        }
    }
}

/// `w(z) = sigmoid(b + sum_j v_j tanh(u_j z / rate + a_j))`, and the state of its optimiser.
#[derive(Clone, Debug)]
pub(super) struct Discriminator {
    parameters: [f64; PARAMETERS],
    adam: Adam,
    /// The inputs are divided by the rate of the data.
    scale: f64,
}

impl Discriminator {
    /// `u ~ N(0, 1)`, `a ~ U(-1, 1)`, `v ~ N(0, 1) / 4`, `b = 0`.
    pub(super) fn new(key: Key, rate: f64) -> Self {
        let mut generator = key.generator();
        let bias = Uniform::new(-1.0, 1.0).expect("an interval");
        let mut parameters = [0.0; PARAMETERS];
        for (index, parameter) in parameters.iter_mut().enumerate().take(3 * HIDDEN) {
            let normal: f64 = StandardNormal.sample(&mut generator);
            *parameter = match index / HIDDEN {
                0 => normal,
                1 => bias.sample(&mut generator),
                _ => 0.25 * normal,
            };
        }
        Self {
            parameters,
            adam: Adam::default(),
            scale: 1.0 / rate,
        }
    }

    fn units(&self, z: f64) -> [f64; HIDDEN] {
        let x = z * self.scale;
        std::array::from_fn(|j| (self.parameters[j] * x + self.parameters[HIDDEN + j]).tanh())
    }

    fn output(&self, units: &[f64; HIDDEN]) -> f64 {
        let weights = &self.parameters[2 * HIDDEN..];
        let logit: f64 = units.iter().zip(weights).map(|(h, v)| h * v).sum();
        1.0 / (1.0 + (-logit - weights[HIDDEN]).exp())
    }

    /// The probability that a count comes from the data.
    pub(super) fn probability(&self, z: f64) -> f64 {
        self.output(&self.units(z))
    }

    /// One step of Adam on the loss of two batches, which are reordered.
    pub(super) fn learn(&mut self, objective: GameObjective, data: &mut [f64], fakes: &mut [f64]) {
        let gradient = self.gradient(objective, data, fakes);
        self.adam.step(&mut self.parameters, &gradient);
    }

    fn gradient(
        &self,
        objective: GameObjective,
        data: &mut [f64],
        fakes: &mut [f64],
    ) -> [f64; PARAMETERS] {
        let mut gradient = [0.0; PARAMETERS];
        for (side, batch) in [data, fakes].into_iter().enumerate() {
            batch.sort_unstable_by(f64::total_cmp);
            let share = 1.0 / batch.len() as f64;
            for equal in batch.chunk_by(|a, b| a == b) {
                let (z, weight) = (equal[0], equal.len() as f64 * share);
                let units = self.units(z);
                let slope = weight * objective.slopes(self.output(&units))[side];
                for (j, h) in units.iter().enumerate() {
                    let before = slope * self.parameters[2 * HIDDEN + j] * (1.0 - h * h);
                    gradient[j] += before * z * self.scale;
                    gradient[HIDDEN + j] += before;
                    gradient[2 * HIDDEN + j] += slope * h;
                }
                gradient[3 * HIDDEN] += slope;
            }
        }
        gradient
    }
}

/// Adam of Kingma and Ba 2015 with their defaults but for the learning rate.
#[derive(Clone, Debug)]
struct Adam {
    first: [f64; PARAMETERS],
    second: [f64; PARAMETERS],
    /// `beta^t` of the two moments.
    powers: [f64; 2],
}

impl Default for Adam {
    fn default() -> Self {
        Self {
            first: [0.0; PARAMETERS],
            second: [0.0; PARAMETERS],
            powers: [1.0; 2],
        }
    }
}

impl Adam {
    const DECAYS: [f64; 2] = [0.9, 0.999];
    const EPSILON: f64 = 1e-8;

    fn step(&mut self, parameters: &mut [f64; PARAMETERS], gradient: &[f64; PARAMETERS]) {
        let [slow, slower] = Self::DECAYS;
        self.powers[0] *= slow;
        self.powers[1] *= slower;
        for (i, g) in gradient.iter().enumerate() {
            self.first[i] = slow * self.first[i] + (1.0 - slow) * g;
            self.second[i] = slower * self.second[i] + (1.0 - slower) * g * g;
            let first = self.first[i] / (1.0 - self.powers[0]);
            let second = self.second[i] / (1.0 - self.powers[1]);
            parameters[i] -= LEARNING_RATE * first / (second.sqrt() + Self::EPSILON);
        }
    }
}

/// The discriminators of several games as one program of tensors, a game for each batch element.
#[derive(Clone, Debug)]
pub(super) struct Critics {
    /// `[1, games, HIDDEN]`
    input: Tensor<3>,
    /// `[1, games, HIDDEN]`
    shift: Tensor<3>,
    /// `[1, games, HIDDEN]`
    output: Tensor<3>,
    /// `[1, games, 1]`
    bias: Tensor<3>,
}

impl Critics {
    pub(super) fn new(players: &[&Discriminator], device: &Device) -> Self {
        let tensor = |range: std::ops::Range<usize>, scaled: bool| {
            let width = range.len();
            let rows = players.iter().flat_map(|player| {
                let scale = if scaled { player.scale } else { 1.0 };
                player.parameters[range.clone()]
                    .iter()
                    .map(move |x| x * scale)
            });
            let data = TensorData::new(rows.collect::<Vec<f64>>(), [1, players.len(), width]);
            Tensor::from_data(data, (device, DType::F64))
        };
        Self {
            input: tensor(0..HIDDEN, true),
            shift: tensor(HIDDEN..2 * HIDDEN, false),
            output: tensor(2 * HIDDEN..3 * HIDDEN, false),
            bias: tensor(3 * HIDDEN..PARAMETERS, false),
        }
    }

    /// `-w`, which the generator minimises: `[n, games, 1]` to `[n, games]`.
    pub(super) fn cost(&self, z: Tensor<3>) -> Tensor<2> {
        let units = (z * self.input.clone() + self.shift.clone()).tanh();
        let logit = (units * self.output.clone()).sum_dim(2) + self.bias.clone();
        -sigmoid(logit).squeeze_dim::<2>(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(player: &Discriminator, objective: GameObjective, data: &[f64], fakes: &[f64]) -> f64 {
        let mean = |batch: &[f64], f: &dyn Fn(f64) -> f64| -> f64 {
            batch.iter().map(|z| f(player.probability(*z))).sum::<f64>() / batch.len() as f64
        };
        match objective {
            GameObjective::LogLoss => -mean(data, &f64::ln) - mean(fakes, &|w: f64| (1.0 - w).ln()),
            GameObjective::Literal => mean(fakes, &|w| w) - mean(data, &|w| w),
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let mut data = [3.0, 5.0, 5.0, 9.0, 4.0];
        let mut fakes = [0.0, 2.0, 5.0, 2.0];
        let player = Discriminator::new(Key::new(3), 5.0);
        for objective in [GameObjective::LogLoss, GameObjective::Literal] {
            let gradient = player.gradient(objective, &mut data, &mut fakes);
            for (index, slope) in gradient.into_iter().enumerate() {
                let at = |shift: f64| {
                    let mut moved = player.clone();
                    moved.parameters[index] += shift;
                    loss(&moved, objective, &data, &fakes)
                };
                let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(
                    (slope - difference).abs() < 1e-9,
                    "{objective:?} {index}: {slope} {difference}"
                );
            }
        }
    }

    #[test]
    fn the_tensors_are_the_same_network() {
        let players = [1, 2].map(|seed| Discriminator::new(Key::new(seed), 5.0));
        let critics = Critics::new(&[&players[0], &players[1]], &Device::flex());
        let z = [[0.0, 7.0], [3.0, 1.0], [12.0, 5.0]];
        let data = TensorData::new(z.as_flattened().to_vec(), [3, 2, 1]);
        let cost = critics.cost(Tensor::from_data(data, (&Device::flex(), DType::F64)));
        let cost: Vec<f64> = cost.into_data().try_to_vec().expect("f64");
        for (row, values) in z.iter().zip(cost.chunks(2)) {
            for ((z, player), cost) in row.iter().zip(&players).zip(values) {
                assert!((player.probability(*z) + cost).abs() < 1e-14);
            }
        }
    }
}
