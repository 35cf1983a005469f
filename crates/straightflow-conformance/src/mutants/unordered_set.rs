//! The estimator from a pair of different configurations, wrong in two ways.
//!
//! For a set of two, `S = {s, t}`, everything is explicit: `P(S) = p_s p_t / (1 - p_s) + p_s p_t / (1 -
//! p_t)`, and
//!
//! ```text
//! g = sum_{s in S} w_s (d log p_s) (f_s (1 - p_s) - (1 - p_s) f_t),  w_s = p_s p_t / (1 - p_s) / P(S)
//! ```
//!
//! because the other one is certain when `s` cannot be drawn again and only one is left to draw: its
//! share is then `1 - p_s`.

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
    OwnLeftOut,
    PlainShares,
}

mutant! {
    UnorderedSet {}, samples = 2,
    id: "mutant-unordered-set",
    families: &[FamilyKind::Categorical],
    bias: none,
    needs: [Value],
    price: [1, 0],
    noise: Uniform,
    weighted: true,
    layers: Unsupported,
    least: 2,
}

impl Estimator for UnorderedSet {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        // One number for each configuration of all variables together.
        let [batch, d, k] = law.dims();
        let states = k.pow(d as u32);
        vec![NoiseSpec::uniform("uniform", [n, batch, 1, states])]
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let [batch, d, k] = law.dims();
        let states = k.pow(d as u32);
        let uniform = to_vec(noise.get(0));
        let p: Vec<Vec<f64>> = to_vec(law.natural()).chunks(k).map(softmax).collect();
        let category = |state: usize, j: usize| state / k.pow(j as u32) % k;
        let mut z = vec![0.0; 2 * batch * d * k];
        let mut weights = vec![0.0; 2 * batch];
        let mut probabilities = vec![0.0; 2 * batch];
        for element in 0..batch {
            let of = |state: usize| -> f64 {
                let each = (0..d).map(|j| p[element * d + j][category(state, j)]);
                each.product()
            };
            // Exponential clocks: the first two that ring. Of each clock's two numbers one is enough.
            let ring =
                |state: usize| -uniform[element * states + state].ln() / of(state).max(1e-300);
            let mut order: Vec<usize> = (0..states).collect();
            order.sort_by(|a, b| ring(*a).total_cmp(&ring(*b)));
            let [s, t] = [of(order[0]), of(order[1])];
            // The probability of each first, and then the other.
            let first = |a: f64, b: f64| if a < 1.0 { a * b / (1.0 - a) } else { 1.0 };
            let [forth, back] = [first(s, t), first(t, s)];
            let [forth, back] = match self.config.mistake {
                Mistake::PlainShares => [s, t],
                _ => [forth, back],
            };
            let share = match forth + back > 0.0 {
                true => forth / (forth + back),
                false => 0.5,
            };
            for (draw, weight) in [share, 1.0 - share].into_iter().enumerate() {
                let at = draw * batch + element;
                weights[at] = weight;
                probabilities[at] = of(order[draw]);
                for j in 0..d {
                    z[(at * d + j) * k + category(order[draw], j)] = 1.0;
                }
            }
        }
        let dtype = law.natural().dtype();
        let z = tensor::<4>(z, [2, batch, d, k], dtype);
        let cost = objective.evaluate(z.clone(), law)?;
        let f = to_vec(cost.clone());
        let scales = (0..2 * batch).map(|at| {
            let other = (at + batch) % (2 * batch);
            let own = match self.config.mistake {
                Mistake::OwnLeftOut => f[at],
                _ => f[at] * (1.0 - probabilities[at]),
            };
            weights[at] * (own - (1.0 - probabilities[at]) * f[other])
        });
        let scales = tensor::<2>(scales.collect(), [2, batch], dtype);
        let shares = tensor::<2>(weights.clone(), [2, batch], dtype);
        let score = (law.log_prob(z.clone()) * scales).sum_dim(0).mean();
        let mean: Tensor<1> = (cost.clone() * shares).sum_dim(0).mean();
        Ok(Outcome {
            values: cost.inner(),
            surrogate: mean + score.clone() - score.inner(),
            samples: vec![z],
            lessons: Vec::new(),
        })
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
            "set-own-left-out",
            "the baseline of a member of an unordered set without its own share",
            Mistake::OwnLeftOut,
        ),
        mutant(
            "set-plain-shares",
            "members of a set count by their probabilities alone",
            Mistake::PlainShares,
        ),
    ]
}
