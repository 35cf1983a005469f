//! A world model with categorical latent variables, in the manner of DreamerV2, on one page.
//!
//! A point moves on a ring of eight cells. An action speeds it up, slows it down or does nothing; the
//! velocity is not seen. At each step the model has a memory `h`, a prior `p(z | h)` of what comes,
//! and a posterior `q(z | h, x)` once it has seen the cell `x`. The latent variables are one-hot
//! vectors, and the gradient passes through them by straight-through, as in DreamerV2, or by
//! ReinMax. It is then shown four cells and dreams on, by its prior alone, for the next eight
//! actions.
//!
//! ```text
//! cargo run --release -p straightflow --example world_model
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{log_softmax, sigmoid};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use straightflow::prelude::*;

const CELLS: usize = 8;
const ACTIONS: usize = 3;
const MEMORY: usize = 64;
/// Variables and categories of a latent state.
const LATENT: [usize; 2] = [4, 8];
/// Steps that are seen, and that are dreamt.
const SEEN: usize = 4;
const DREAMT: usize = 8;
const BATCH: usize = 32;
const STEPS: u64 = 1_200;
const LEARNING_RATE: f64 = 5e-3;
/// The share of the divergence that trains the prior rather than the posterior.
const BALANCE: f64 = 0.8;
const KL_SCALE: f64 = 1.0;

/// Walks of a batch: the cell and the action of each step, `[steps][batch]`.
struct Walks {
    cells: Vec<Vec<usize>>,
    actions: Vec<Vec<usize>>,
}

impl Walks {
    fn new(key: Key, batch: usize) -> Self {
        let steps = SEEN + DREAMT;
        let mut uniform = vec![0.0; (steps + 2) * batch];
        key.fill_uniform_f64(&mut uniform);
        let pick = |row: usize, i: usize, n: usize| (uniform[row * batch + i] * n as f64) as usize;
        let mut cell: Vec<usize> = (0..batch).map(|i| pick(0, i, CELLS)).collect();
        let mut velocity: Vec<i32> = (0..batch).map(|i| pick(1, i, 3) as i32 - 1).collect();
        let (mut cells, mut actions) = (Vec::new(), Vec::new());
        for step in 0..steps {
            let action: Vec<usize> = (0..batch).map(|i| pick(step + 2, i, ACTIONS)).collect();
            for i in 0..batch {
                velocity[i] = (velocity[i] + action[i] as i32 - 1).clamp(-1, 1);
                cell[i] = (cell[i] as i32 + velocity[i]).rem_euclid(CELLS as i32) as usize;
            }
            cells.push(cell.clone());
            actions.push(action);
        }
        Self { cells, actions }
    }
}

fn one_hot(indices: &[usize], width: usize) -> Tensor<2> {
    let mut values = vec![0.0f32; indices.len() * width];
    for (row, index) in indices.iter().enumerate() {
        values[row * width + index] = 1.0;
    }
    let data = TensorData::new(values, [indices.len(), width]);
    Tensor::from_data(data, &Device::flex())
}

#[derive(Module, Debug)]
struct World {
    gate: Linear,
    candidate: Linear,
    prior: Linear,
    posterior: Linear,
    hidden: Linear,
    cells: Linear,
}

impl World {
    fn new(key: Key, device: &Device) -> Self {
        let [d, k] = LATENT;
        let keys: [Key; 6] = key.split();
        let input = MEMORY + d * k + ACTIONS;
        let layer = |i: usize, ends: [usize; 2]| linear(keys[i], ends, device);
        Self {
            gate: layer(0, [input, MEMORY]),
            candidate: layer(1, [input, MEMORY]),
            prior: layer(2, [MEMORY, d * k]),
            posterior: layer(3, [MEMORY + CELLS, d * k]),
            hidden: layer(4, [MEMORY + d * k, MEMORY]),
            cells: layer(5, [MEMORY, CELLS]),
        }
    }

    /// The memory after a latent state and an action.
    fn remember(&self, h: Tensor<2>, z: Tensor<2>, action: Tensor<2>) -> Tensor<2> {
        let input = Tensor::cat(vec![h.clone(), z, action], 1);
        let gate = sigmoid(self.gate.forward(input.clone()));
        let candidate = self.candidate.forward(input).tanh();
        gate.clone() * h + (-gate + 1.0) * candidate
    }

    fn prior(&self, h: Tensor<2>) -> Result<Categorical> {
        latent(self.prior.forward(h))
    }

    fn posterior(&self, h: Tensor<2>, x: Tensor<2>) -> Result<Categorical> {
        latent(self.posterior.forward(Tensor::cat(vec![h, x], 1)))
    }

    /// The log-probabilities of the cells.
    fn decode(&self, h: Tensor<2>, z: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden.forward(Tensor::cat(vec![h, z], 1)).tanh();
        log_softmax(self.cells.forward(hidden), 1)
    }

    /// What is minimised: surprise at the cells, and at the latent states.
    fn loss(&self, key: Key, code: &dyn Estimator, walks: &Walks) -> Result<Tensor<1>> {
        let batch = walks.cells[0].len();
        let [mut h, mut z] = start(batch);
        let mut loss: Option<Tensor<1>> = None;
        for (step, (cells, actions)) in (0u64..).zip(walks.cells.iter().zip(&walks.actions)) {
            let x = one_hot(cells, CELLS);
            h = self.remember(h, z, one_hot(actions, ACTIONS));
            let (p, q) = (
                self.prior(h.clone())?,
                self.posterior(h.clone(), x.clone())?,
            );
            // The one line that a discrete latent variable needs.
            z = code.draw(key.child(step), &q)?.flatten(1, 2);
            let surprise = -(self.decode(h.clone(), z.clone()) * x).sum_dim(1).mean();
            let towards_q = q.constant().kl(&p)?.mean() * BALANCE;
            let towards_p = q.kl(&p.constant())?.mean() * (1.0 - BALANCE);
            let term = surprise + (towards_q + towards_p) * KL_SCALE;
            loss = Some(match loss {
                Some(sum) => sum + term,
                None => term,
            });
        }
        Ok(loss.expect("a walk has steps"))
    }

    /// The cells that are dreamt after those that were seen, `[steps][batch]`.
    fn dream(&self, key: Key, walks: &Walks) -> Result<Vec<Vec<usize>>> {
        let batch = walks.cells[0].len();
        let [mut h, mut z] = start(batch);
        let mut dreamt = Vec::new();
        let steps = walks.cells.iter().zip(&walks.actions).enumerate();
        for (step, (cells, actions)) in steps {
            h = self.remember(h, z, one_hot(actions, ACTIONS));
            let law = match step < SEEN {
                true => self.posterior(h.clone(), one_hot(cells, CELLS))?,
                false => self.prior(h.clone())?,
            };
            z = law
                .sample(key.child(step as u64), 1)
                .squeeze_dim::<3>(0)
                .flatten(1, 2);
            if step >= SEEN {
                let guess: Tensor<2, Int> = self.decode(h.clone(), z.clone()).argmax(1);
                let guess = guess.into_data().convert::<i64>();
                let guess: Vec<i64> = guess.try_into_vec().expect("whole numbers");
                dreamt.push(guess.into_iter().map(|cell| cell as usize).collect());
            }
        }
        Ok(dreamt)
    }
}

fn latent(logits: Tensor<2>) -> Result<Categorical> {
    let ([batch, _], [d, k]) = (logits.dims(), LATENT);
    Categorical::from_logits(logits.reshape([batch, d, k]))
}

/// No memory and no latent state.
fn start(batch: usize) -> [Tensor<2>; 2] {
    [MEMORY, LATENT[0] * LATENT[1]].map(|width| Tensor::zeros([batch, width], &Device::flex()))
}

/// Uniform weights with variance 2 / (inputs + outputs), and biases of zero.
fn linear(key: Key, [inputs, outputs]: [usize; 2], device: &Device) -> Linear {
    let limit = (6.0 / (inputs + outputs) as f64).sqrt();
    let uniform = key.uniform::<2>([inputs, outputs], device, DType::F32);
    Linear {
        weight: Param::from_tensor(Tensor::from_inner((uniform * 2.0 - 1.0) * limit)),
        bias: Some(Param::from_tensor(Tensor::zeros([outputs], device))),
    }
}

/// The share of steps with the right cell, in percent.
fn accuracy(guesses: &[Vec<usize>], walks: &Walks) -> f64 {
    let pairs = guesses
        .iter()
        .flatten()
        .zip(walks.cells[SEEN..].iter().flatten());
    let right = pairs.filter(|(guess, cell)| guess == cell).count();
    100.0 * right as f64 / guesses.iter().flatten().count() as f64
}

/// The point goes on as fast as it was, whatever the actions are.
fn same_velocity(walks: &Walks) -> Vec<Vec<usize>> {
    let (before, last) = (&walks.cells[SEEN - 2], &walks.cells[SEEN - 1]);
    let pairs = || before.iter().zip(last);
    let after = |steps: usize| {
        let go = |(before, last): (&usize, &usize)| {
            let velocity = (last + CELLS - before) % CELLS;
            (last + steps * velocity) % CELLS
        };
        pairs().map(go).collect()
    };
    (1..=DREAMT).map(after).collect()
}

fn main() -> Result<()> {
    let [weights, training, sampling, testing, dreaming] = Key::new(1).split();
    let test = Walks::new(testing, 500);
    let naive = accuracy(&same_velocity(&test), &test);
    println!("the same velocity for {DREAMT} steps:  {naive:.1} % of the cells");
    for spec in ["straight-through", "reinmax"] {
        let code = estimator(spec)?;
        let mut model = World::new(weights, &Device::flex().autodiff());
        let mut optimiser = AdamConfig::new().init();
        for step in 0..STEPS {
            let walks = Walks::new(training.child(step), BATCH);
            let loss = model.loss(sampling.child(step), &*code, &walks)?;
            let grads = GradientsParams::from_grads(loss.backward(), &model);
            model = optimiser.step(LEARNING_RATE, model, grads);
        }
        let dreamt = accuracy(&model.valid().dream(dreaming, &test)?, &test);
        println!("dreamt with {spec}: {dreamt:.1} %");
        assert!(dreamt > 2.0 * naive, "it learned no dynamics");
    }
    Ok(())
}
