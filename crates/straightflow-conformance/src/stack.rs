//! A stack of two layers of two variables each, in tensors and in scalar code. The upper layer's
//! natural parameters are `bias + z W`, so the lower one acts on the cost directly and through
//! them.

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{Estimate, Estimator, EstimatorExt, State, StateShape};
use straightflow::objective::{Objective, ObjectiveKind};
use straightflow::{Key, Result};

use crate::device::{self, device, tensor_on};
use crate::gradients::to_vec;
use crate::problem::softmax;
use crate::reference::Outcome;

/// Variables of each layer.
const VARIABLES: usize = 2;

/// The stack for a batch of equal elements.
#[derive(Clone, Debug)]
pub struct Stack {
    family: Family,
    kind: ObjectiveKind,
    /// The natural parameters of the lower layer and the bias of the upper one, `[batch, 2, k]`,
    /// leaves.
    parameters: [Tensor<3>; 2],
}

/// The natural parameter number `i` of the lower layer, or the bias of the upper.
fn parameter(layer: usize, i: usize) -> f64 {
    0.9 * (2.3 * i as f64 + 1.1 * layer as f64 + 0.4).sin()
}

fn weight(i: usize, j: usize) -> f64 {
    1.1 * (0.9 * i as f64 - 1.7 * j as f64 + 0.4).sin()
}

fn direction(layer: usize, i: usize) -> f64 {
    0.8 * (1.9 * layer as f64 + 1.3 * i as f64 + 0.6).cos()
}

/// The families that the stack is made for, with the numbers in one sample of a variable.
pub const FAMILIES: [(FamilyKind, Family, usize); 2] = [
    (FamilyKind::Bernoulli, Family::Bernoulli, 1),
    (FamilyKind::Categorical, Family::Categorical, 3),
];

impl Stack {
    /// Equal batch elements of a family with `k` numbers in one sample.
    pub fn new(family: Family, k: usize, kind: ObjectiveKind, batch: usize, dtype: DType) -> Self {
        Self::on(&device(), family, k, kind, batch, device::dtype(dtype))
    }

    /// The same on another device than the suite's.
    pub fn on(
        device: &Device,
        family: Family,
        k: usize,
        kind: ObjectiveKind,
        batch: usize,
        dtype: DType,
    ) -> Self {
        let leaf = |layer: usize| {
            let numbers: Vec<f64> = (0..VARIABLES * k).map(|i| parameter(layer, i)).collect();
            let shape = [batch, VARIABLES, k];
            let constant = tensor_on::<3>(device, numbers.repeat(batch), shape, dtype);
            Tensor::from_inner(constant).require_grad()
        };
        Self {
            family,
            kind,
            parameters: [leaf(0), leaf(1)],
        }
    }

    /// The laws of both layers as far as their shapes matter: those of one draw.
    pub fn laws(&self) -> [Law; 2] {
        let law = |natural: &Tensor<3>| Law::new(self.family, natural.clone()).expect("valid");
        [law(&self.parameters[0]), law(&self.parameters[1])]
    }

    /// An estimate, with new states of its own if the estimator has any.
    ///
    /// # Errors
    ///
    /// As [`EstimatorExt::estimate_objective`].
    pub fn estimate(&self, estimator: &dyn Estimator, key: Key) -> Result<Estimate<Law>> {
        let shapes = StateShape::stacked(&self.laws(), 0);
        let device = self.parameters[0].device();
        match State::stacked(estimator, Key::new(7), &shapes, &device) {
            Some(states) => estimator
                .bind(&states, None)?
                .estimate_objective(key, self as &Self),
            None => estimator.estimate_objective(key, self),
        }
    }

    /// The gradients with respect to the lower layer's parameters and to the upper one's bias,
    /// element by element.
    pub fn gradients(&self, estimate: &Estimate<Law>) -> Vec<Vec<f64>> {
        let [batch, d, k] = self.parameters[0].dims();
        let grads = estimate.surrogate.backward();
        let [lower, upper] = self.parameters.each_ref().map(|leaf| {
            let gradient = leaf.grad(&grads).map(|g| to_vec(g * batch as f64));
            gradient.unwrap_or_else(|| vec![0.0; batch * d * k])
        });
        let rows = lower.chunks(d * k).zip(upper.chunks(d * k));
        rows.map(|(lower, upper)| [lower, upper].concat()).collect()
    }
}

impl Objective<Law> for Stack {
    fn layers(&self) -> usize {
        2
    }

    fn layer(&self, below: &[Tensor<4>]) -> Result<Law> {
        let [z, ..] = below else {
            return Law::new(self.family, self.parameters[0].clone());
        };
        let [n, batch, d, k] = z.dims();
        let width = d * k;
        let w = (0..width * width).map(|i| weight(i / width, i % width));
        let device = z.device().inner();
        let w = tensor_on::<2>(&device, w.collect(), [width, width], z.dtype());
        let up = z.clone().reshape([n * batch, width]).matmul(w);
        let bias = self.parameters[1].clone().reshape([batch, width]);
        Law::new(
            self.family,
            (up + bias.repeat_dim(0, n)).reshape([n * batch, d, k]),
        )
    }

    fn cost(&self, z: &[Tensor<4>], _q: &[Law]) -> Result<Tensor<2>> {
        let terms = z.iter().enumerate().map(|(layer, z)| {
            let [_, _, d, k] = z.dims();
            let a = (0..d * k).map(|i| direction(layer, i)).collect();
            let device = z.device().inner();
            let a = tensor_on::<4>(&device, a, [1, 1, d, k], z.dtype());
            (z.clone() * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3])
        });
        let sum = terms.reduce(|a, b| a + b).expect("two layers");
        Ok((sum.clone() * 1.3 + 0.2).sin() + sum.square() * 0.5)
    }

    fn kind(&self) -> ObjectiveKind {
        self.kind
    }
}

/// The same stack in scalar code.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// The numbers in one sample of a variable.
    pub k: usize,
}

impl Scalar {
    /// The natural parameters of the lower layer.
    pub fn lower(self) -> Vec<f64> {
        (0..VARIABLES * self.k).map(|i| parameter(0, i)).collect()
    }

    /// The natural parameters of the upper layer, given samples of the lower one, relaxed or not.
    pub fn upper(self, z: &[f64]) -> Vec<f64> {
        let through =
            |j: usize| -> f64 { z.iter().enumerate().map(|(i, z)| z * weight(i, j)).sum() };
        let width = VARIABLES * self.k;
        (0..width).map(|j| parameter(1, j) + through(j)).collect()
    }

    /// The transposed derivative of [`upper`](Self::upper) by `z`, times a vector.
    pub fn upper_pullback(self, gradient: &[f64]) -> Vec<f64> {
        let pull = |i: usize| -> f64 {
            let terms = gradient.iter().enumerate();
            terms.map(|(j, g)| weight(i, j) * g).sum()
        };
        (0..VARIABLES * self.k).map(pull).collect()
    }

    fn sum(self, z: [&[f64]; 2]) -> f64 {
        let of = |layer: usize| -> f64 {
            let terms = z[layer].iter().enumerate();
            terms.map(|(i, z)| direction(layer, i) * z).sum()
        };
        of(0) + of(1)
    }

    /// The cost of samples of both layers.
    pub fn cost(self, z: [&[f64]; 2]) -> f64 {
        let sum = self.sum(z);
        (1.3 * sum + 0.2).sin() + 0.5 * sum * sum
    }

    /// The partial derivatives of the cost with respect to the samples of each layer.
    pub fn slopes(self, z: [&[f64]; 2]) -> [Vec<f64>; 2] {
        let sum = self.sum(z);
        let by_sum = 1.3 * (1.3 * sum + 0.2).cos() + sum;
        let of = |layer: usize| (0..z[layer].len()).map(move |i| by_sum * direction(layer, i));
        [of(0).collect(), of(1).collect()]
    }

    /// The probabilities of the values of a variable: of 0 and 1, or of the categories.
    pub fn probabilities(self, natural: &[f64]) -> Vec<f64> {
        match self.k {
            1 => softmax(&[0.0, natural[0]]),
            _ => softmax(natural),
        }
    }

    /// The sample of a variable with its value number `index`.
    pub fn sample(self, index: usize) -> Vec<f64> {
        match self.k {
            1 => vec![index as f64],
            k => (0..k).map(|i| f64::from(u8::from(i == index))).collect(),
        }
    }

    /// All samples of one layer, with their probabilities and scores.
    fn layer(self, natural: &[f64]) -> Vec<(Vec<f64>, f64, Vec<f64>)> {
        let [first, second] = [0, 1].map(|v| self.probabilities(&natural[v * self.k..][..self.k]));
        // The means, which the score is the distance from.
        let means = match self.k {
            1 => vec![first[1], second[1]],
            _ => [first.clone(), second.clone()].concat(),
        };
        let mut states = Vec::new();
        for (i, p) in first.iter().enumerate() {
            for (j, q) in second.iter().enumerate() {
                let z = [self.sample(i), self.sample(j)].concat();
                let score = z.iter().zip(&means).map(|(z, m)| z - m).collect();
                states.push((z, p * q, score));
            }
        }
        states
    }

    /// All outcomes of both layers.
    pub fn outcomes(self) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for (z, p, lower) in self.layer(&self.lower()) {
            for (y, q, upper) in self.layer(&self.upper(&z)) {
                outcomes.push(Outcome {
                    probability: p * q,
                    cost: self.cost([&z, &y]),
                    score: [lower.clone(), upper].concat(),
                });
            }
        }
        outcomes
    }

    /// The exact gradient of the expected cost.
    pub fn exact_gradient(self) -> Vec<f64> {
        let mut sum = vec![0.0; 2 * VARIABLES * self.k];
        for outcome in self.outcomes() {
            for (sum, score) in sum.iter_mut().zip(&outcome.score) {
                *sum += outcome.probability * outcome.cost * score;
            }
        }
        sum
    }
}
