//! Chains of variables: a small one in tensors and in scalar code, and the estimators whose
//! expectation can be enumerated.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::estimator::layers_log_prob;
use straightflow::prelude::*;

use crate::scalar::{build, sigmoid};
use crate::support::{assert_close, leaf, tensor, values};

/// Two variables below, two above, whose natural parameters are `bias + z W`, and a cost of all
/// four that is not a sum; with `direct`, plus `log q`.
#[derive(Clone, Debug)]
pub struct Stack {
    pub family: Family,
    pub first: Tensor<3>,
    pub bias: Tensor<3>,
    pub direct: bool,
    pub layers: usize,
}

pub const FIRST: [f64; 6] = [0.4, -0.9, 0.2, 1.1, -0.3, 0.5];
pub const BIAS: [f64; 6] = [-0.5, 0.3, 0.8, -0.2, 0.6, -1.0];

pub fn weight(i: usize, j: usize) -> f64 {
    1.2 * (0.9 * i as f64 - 1.7 * j as f64 + 0.4).sin()
}

pub fn direction(layer: usize, i: usize) -> f64 {
    0.8 * (1.9 * layer as f64 + 1.3 * i as f64 + 0.6).cos()
}

impl Stack {
    pub fn new(family: Family, batch: usize) -> Self {
        let k = if family == Family::Categorical { 3 } else { 1 };
        let repeat = |numbers: &[f64]| numbers[..2 * k].repeat(batch);
        Self {
            family,
            first: leaf(&repeat(&FIRST), [batch, 2, k], DType::F64),
            bias: leaf(&repeat(&BIAS), [batch, 2, k], DType::F64),
            direct: false,
            layers: 2,
        }
    }

    fn width(&self) -> usize {
        2 * self.first.dims()[2]
    }

    /// The gradients of both layers' parameters, of each batch element: `[batch, 2 width]`.
    pub fn gradient(&self, estimate: &Estimate<Law>) -> Vec<f64> {
        let batch = self.first.dims()[0];
        let grads = estimate.surrogate.backward();
        let part = |leaf: &Tensor<3>| {
            let gradient = leaf.grad(&grads).map(|g| values(g * batch as f64));
            gradient.unwrap_or_else(|| vec![0.0; batch * self.width()])
        };
        let (first, bias) = (part(&self.first), part(&self.bias));
        let rows = first.chunks(self.width()).zip(bias.chunks(self.width()));
        rows.flat_map(|(first, bias)| [first, bias].concat())
            .collect()
    }
}

impl Objective<Law> for Stack {
    fn layers(&self) -> usize {
        self.layers
    }

    fn layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        let [z, ..] = below else {
            return Law::new(self.family, self.first.clone());
        };
        let [n, batch, d, k] = z.dims();
        let w: Vec<f64> = (0..d * k * d * k)
            .map(|i| weight(i / (d * k), i % (d * k)))
            .collect();
        let w = tensor::<2>(&w, [d * k, d * k], z.dtype());
        let up = z.clone().reshape([n * batch, d * k]).matmul(w);
        let bias = self.bias.clone().reshape([batch, d * k]).repeat_dim(0, n);
        Law::new(self.family, (up + bias).reshape([n * batch, d, k]))
    }

    fn cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
        let [n, batch, d, k] = z[0].dims();
        let mut sum = Tensor::<2>::zeros([n, batch], (&z[0].device().inner(), z[0].dtype()));
        for (layer, z) in z.iter().enumerate() {
            let a: Vec<f64> = (0..d * k).map(|i| direction(layer, i)).collect();
            let a = tensor::<4>(&a, [1, 1, d, k], z.dtype());
            sum = sum + (z.clone() * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
        }
        let cost = (sum.clone() * 1.3 + 0.2).sin() + sum.square() * 0.5;
        Ok(match self.direct {
            true => cost + layers_log_prob(q, z) * 0.3,
            false => cost,
        })
    }
}

pub fn cost_at(z: &[&[f64]]) -> f64 {
    let mut sum = 0.0;
    for (layer, z) in z.iter().enumerate() {
        sum += z
            .iter()
            .enumerate()
            .map(|(i, z)| direction(layer, i) * z)
            .sum::<f64>();
    }
    (1.3 * sum + 0.2).sin() + 0.5 * sum * sum
}

/// `df/dsum`, by which every derivative goes.
pub fn slope_at(z: &[&[f64]]) -> f64 {
    let mut sum = 0.0;
    for (layer, z) in z.iter().enumerate() {
        sum += z
            .iter()
            .enumerate()
            .map(|(i, z)| direction(layer, i) * z)
            .sum::<f64>();
    }
    1.3 * (1.3 * sum + 0.2).cos() + sum
}

pub fn natural_above(z: &[f64], width: usize) -> Vec<f64> {
    let above = |j: usize| BIAS[j] + (0..width).map(|i| z[i] * weight(i, j)).sum::<f64>();
    (0..width).map(above).collect()
}

fn means(family: Family, natural: &[f64]) -> Vec<f64> {
    match family {
        Family::Categorical => natural
            .chunks(3)
            .flat_map(|own| {
                let total: f64 = own.iter().map(|x| x.exp()).sum();
                own.iter().map(move |x| x.exp() / total).collect::<Vec<_>>()
            })
            .collect(),
        _ => natural.iter().map(|x| sigmoid(*x)).collect(),
    }
}

/// All samples of two variables with natural parameters, and their probabilities.
fn states(family: Family, natural: &[f64]) -> Vec<(Vec<f64>, f64)> {
    let p = means(family, natural);
    let one: Vec<Vec<f64>> = match family {
        Family::Categorical => (0..3)
            .map(|c| (0..3).map(|i| f64::from(u8::from(i == c))).collect())
            .collect(),
        _ => vec![vec![0.0], vec![1.0]],
    };
    let k = one[0].len();
    let probability = |variable: usize, z: &[f64]| match family {
        Family::Categorical => z
            .iter()
            .zip(&p[variable * k..])
            .map(|(z, p)| z * p)
            .sum::<f64>(),
        _ => z[0] * p[variable] + (1.0 - z[0]) * (1.0 - p[variable]),
    };
    let pairs = one.iter().flat_map(|a| one.iter().map(move |b| (a, b)));
    pairs
        .map(|(a, b)| ([&a[..], b].concat(), probability(0, a) * probability(1, b)))
        .collect()
}

/// All samples of both layers and their probabilities.
fn outcomes(family: Family) -> Vec<([Vec<f64>; 2], f64)> {
    let width = if family == Family::Categorical { 6 } else { 2 };
    let mut all = Vec::new();
    for (z, p) in states(family, &FIRST[..width]) {
        for (y, q) in states(family, &natural_above(&z, width)) {
            all.push(([z.clone(), y], p * q));
        }
    }
    all
}

fn score(family: Family, natural: &[f64], z: &[f64]) -> Vec<f64> {
    let p = means(family, natural);
    z.iter().zip(p).map(|(z, p)| z - p).collect()
}

/// The exact gradient with respect to `first` and `bias`; with `direct`, of the cost plus `0.3 log
/// q`.
fn exact(family: Family, direct: bool) -> Vec<f64> {
    let width = if family == Family::Categorical { 6 } else { 2 };
    let mut gradient = vec![0.0; 2 * width];
    for ([z, y], p) in outcomes(family) {
        let natural = natural_above(&z, width);
        let mut cost = cost_at(&[&z, &y]);
        if direct {
            cost += 0.3 * p.ln();
        }
        let below = score(family, &FIRST[..width], &z);
        let above = score(family, &natural, &y);
        for (i, s) in below.into_iter().chain(above).enumerate() {
            gradient[i] += p * cost * s;
        }
    }
    gradient
}

const FAMILIES: [Family; 2] = [Family::Bernoulli, Family::Categorical];

/// The law of layer 1 depends on layer 0 through all that matters here: an oracle of its own.
#[test]
fn enumeration_is_the_sum_over_all_layers() {
    for family in FAMILIES {
        for direct in [false, true] {
            let stack = Stack {
                direct,
                ..Stack::new(family, 2)
            };
            let estimate = build("enumerate").estimate_objective(Key::new(1), &stack);
            let estimate = estimate.expect("valid");
            let outcomes = outcomes(family);
            assert_eq!(estimate.values.dims(), [outcomes.len(), 2]);
            if !direct {
                let mean: f64 = outcomes
                    .iter()
                    .map(|([z, y], p)| p * cost_at(&[z, y]))
                    .sum();
                assert_close("mean", &values(estimate.surrogate.clone()), &[mean], 1e-13);
            }
            let want = exact(family, direct).repeat(2);
            assert_close("gradient", &stack.gradient(&estimate), &want, 1e-12);
        }
    }
}

/// Every joint outcome of hard samples is a batch element, weighted with its probability.
#[test]
fn joint_scores_have_the_exact_expectation() {
    for (spec, draws) in [
        ("reinforce", 1),
        ("reinforce:baseline=loo,samples=2", 2),
        ("muprop", 1),
        ("muprop:samples=2", 2),
    ] {
        for family in FAMILIES {
            if draws == 2 && family == Family::Categorical {
                continue; // 6561 outcomes tell no more than 256 bits
            }
            for direct in [false, true] {
                let single = outcomes(family);
                let all: Vec<(Vec<&[Vec<f64>; 2]>, f64)> = match draws {
                    1 => single.iter().map(|(z, p)| (vec![z], *p)).collect(),
                    _ => single
                        .iter()
                        .flat_map(|(a, p)| single.iter().map(move |(b, q)| (vec![a, b], p * q)))
                        .collect(),
                };
                let stack = Stack {
                    direct,
                    ..Stack::new(family, all.len())
                };
                let [batch, d, k] = stack.first.dims();
                let layer = |layer: usize| -> Vec<f64> {
                    let draw = |n: usize| all.iter().flat_map(move |(z, _)| z[n][layer].clone());
                    (0..draws).flat_map(draw).collect()
                };
                let noise = vec![
                    vec![tensor::<4>(&layer(0), [draws, batch, d, k], DType::F64)],
                    vec![tensor::<4>(&layer(1), [1, draws * batch, d, k], DType::F64)],
                ];
                let estimate = build(spec).estimate_objective(noise, &stack);
                let gradient = stack.gradient(&estimate.expect("valid"));
                let mut mean = vec![0.0; 2 * d * k];
                for (row, (_, p)) in gradient.chunks(2 * d * k).zip(&all) {
                    for (mean, g) in mean.iter_mut().zip(row) {
                        *mean += p * g;
                    }
                }
                let what = format!("{spec}, {family:?}, direct {direct}");
                assert_close(&what, &mean, &exact(family, direct), 1e-11);
            }
        }
    }
}
