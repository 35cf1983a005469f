//! Antithetic draws of categories (CARMS), with the wrong probability of two categories together.
//!
//! ```text
//! g = 1/(n (n-1)) sum_{a<b} p_i p_j / J_ij (f_a - f_b)(z_a - z_b)
//! ```
//!
//! `J_ij` is the mean over all orders of the categories. As if the draws were independent it would be
//! `p_i p_j`; in the order that was drawn, categories that are neighbours never meet.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, NoiseSpec, Outcome};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;
use crate::gradients::{tensor, to_vec};
use crate::problem::softmax;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    Independent,
    OneOrder,
}

mutant! {
    Carms {}, samples = 2,
    id: "mutant-carms",
    families: &[FamilyKind::Categorical],
    bias: none,
    needs: [Value],
    price: [1, 0],
    noise: Uniform,
    layers: Unsupported,
    least: 2,
}

/// The interval of each category when they are laid out in an order.
fn intervals(p: &[f64], first: usize, last: usize) -> Vec<(f64, f64)> {
    let mut order: Vec<usize> = (0..p.len()).filter(|c| *c != first && *c != last).collect();
    order.insert(0, first);
    order.push(last);
    let mut ends = vec![(0.0, 0.0); p.len()];
    let mut at = 0.0;
    for c in order {
        ends[c] = (at, at + p[c]);
        at += p[c];
    }
    ends
}

/// The probability that two of the antithetic numbers are in two intervals.
fn together(a: (f64, f64), b: (f64, f64), others: f64) -> f64 {
    let root = |x: f64| x.clamp(0.0, 1.0).powf(1.0 / others);
    let below = |x: f64, y: f64| (root(x) + root(y) - 1.0).max(0.0).powf(others);
    below(a.1, b.1) + below(a.0, b.0) - below(a.0, b.1) - below(a.1, b.0)
}

impl Estimator for Carms {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let [batch, d, _] = law.dims();
        vec![
            NoiseSpec::uniform("uniform", [n, batch, d, 1]),
            NoiseSpec::uniform("order", [1, batch, d, 1]),
        ]
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let [n, batch, d, _] = noise.get(0).dims();
        let k = law.dims()[2];
        let others = n as f64 - 1.0;
        let (uniform, order) = (to_vec(noise.get(0)), to_vec(noise.get(1)));
        let p: Vec<Vec<f64>> = to_vec(law.natural()).chunks(k).map(softmax).collect();
        let pairs: Vec<(usize, usize)> = (0..k)
            .flat_map(|i| (i + 1..k).map(move |j| (i, j)))
            .collect();
        let size = batch * d;
        let mut z = vec![0.0; n * size * k];
        let mut chosen = vec![0; n * size];
        for v in 0..size {
            let number = (order[v] * pairs.len() as f64) as usize;
            let (first, last) = pairs[number.min(pairs.len() - 1)];
            let ends = intervals(&p[v], first, last);
            let e: Vec<f64> = (0..n).map(|a| -uniform[a * size + v].ln()).collect();
            let total: f64 = e.iter().sum();
            for a in 0..n {
                let u = ((total - e[a]) / total).powf(others);
                let inside = (0..k).find(|c| ends[*c].0 <= u && u < ends[*c].1);
                let c = inside.unwrap_or(if p[v][last] > 0.0 { last } else { first });
                chosen[a * size + v] = c;
                z[(a * size + v) * k + c] = 1.0;
            }
        }
        let z = tensor::<4>(z, [n, batch, d, k], law.natural().dtype());
        let cost = objective.evaluate(z.clone(), law)?;
        let f = to_vec(cost.clone());
        let mut gradient = vec![0.0; size * k];
        for v in 0..size {
            let number = (order[v] * pairs.len() as f64) as usize;
            let drawn = pairs[number.min(pairs.len() - 1)];
            for a in 0..n {
                for b in a + 1..n {
                    let (i, j) = (chosen[a * size + v], chosen[b * size + v]);
                    if i == j {
                        continue;
                    }
                    let in_order = |(first, last): (usize, usize)| {
                        let ends = intervals(&p[v], first, last);
                        together(ends[i], ends[j], others)
                    };
                    let joint = match self.config.mistake {
                        Mistake::None => {
                            let all = pairs.iter().map(|pair| in_order(*pair));
                            all.sum::<f64>() / pairs.len() as f64
                        }
                        Mistake::Independent => p[v][i] * p[v][j],
                        Mistake::OneOrder => in_order(drawn),
                    };
                    let rise = f[a * batch + v / d] - f[b * batch + v / d];
                    let factor = p[v][i] * p[v][j] / joint.max(1e-300);
                    let term = factor * rise / (n as f64 * others);
                    gradient[v * k + i] += term;
                    gradient[v * k + j] -= term;
                }
            }
        }
        let gradient: Tensor<3> = tensor(gradient, [batch, d, k], law.natural().dtype());
        let scalar = (law.natural() * gradient).sum() * (1.0 / batch as f64);
        Ok(Outcome::new(cost, scalar, z))
    }
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, mistake| Mutant {
        name,
        wrong,
        rejected_by: "statistical",
        subject: subject(mistake),
        twin: subject(Mistake::None),
    };
    vec![
        mutant(
            "carms-independent",
            "CARMS's factor as if its draws were independent",
            Mistake::Independent,
        ),
        mutant(
            "carms-one-order",
            "two categories together in the order that was drawn, not on average over the orders",
            Mistake::OneOrder,
        ),
    ]
}
