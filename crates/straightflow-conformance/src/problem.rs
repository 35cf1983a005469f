//! Test problems of one variable whose every answer is known: a family, its parameters and a cost
//! with its derivative, as scalar functions and as tensor code.

use std::fmt;

use burn::tensor::{DType, Tensor, TensorData};
use straightflow::distribution::{Family, FamilyKind, Law};

use crate::gradients::tensor;
use crate::reference::Outcome;

/// A cost of one variable: a count, a bit, or a vector of zeros and ones of length `k`.
///
/// Vectors are seen through a score for each category or item, `s(z) = sum_i a_i z_i` with
/// `a_i = i - 0.3`, so that one scalar function serves all families: `f(z) = g(s(z))`, and `s` is
/// the value itself for ordered variables.
#[derive(Clone, Copy, Debug)]
pub struct TestObjective {
    /// The name in messages.
    pub name: &'static str,
    /// `g(s)`.
    pub value: fn(f64) -> f64,
    /// `g'(s)`.
    pub slope: fn(f64) -> f64,
    /// `g` for tensors.
    pub tensor: fn(Tensor<4>) -> Tensor<4>,
}

/// Constant, linear, quadratic, asymmetric oscillating and saturating costs.
pub const OBJECTIVES: &[TestObjective] = &[
    TestObjective {
        name: "constant",
        value: |_| 1.7,
        slope: |_| 0.0,
        tensor: |s| s * 0.0 + 1.7,
    },
    TestObjective {
        name: "linear",
        value: |s| 2.0 * s + 1.0,
        slope: |_| 2.0,
        tensor: |s| s * 2.0 + 1.0,
    },
    TestObjective {
        name: "quadratic",
        value: |s| (s - 0.37) * (s - 0.37),
        slope: |s| 2.0 * (s - 0.37),
        tensor: |s| (s - 0.37).square(),
    },
    TestObjective {
        name: "oscillating",
        value: |s| (1.3 * s + 0.4).cos() + 0.1 * s,
        slope: |s| -1.3 * (1.3 * s + 0.4).sin() + 0.1,
        tensor: |s| (s.clone() * 1.3 + 0.4).cos() + s * 0.1,
    },
    TestObjective {
        name: "saturating",
        value: |s| (1.1 * s - 0.9).tanh(),
        slope: |s| 1.1 / (1.1 * s - 0.9).cosh().powi(2),
        tensor: |s| (s * 1.1 - 0.9).tanh(),
    },
];

/// The score of category `i` of a one-hot vector.
pub fn category_score(i: usize) -> f64 {
    i as f64 - 0.3
}

impl TestObjective {
    /// `f(z)` for `z` of length 1 or `k`.
    pub fn value_at(&self, z: &[f64]) -> f64 {
        (self.value)(score(z))
    }

    /// The gradient of `f` with respect to the entries of `z`.
    pub fn gradient_at(&self, z: &[f64]) -> Vec<f64> {
        let slope = (self.slope)(score(z));
        match z.len() {
            1 => vec![slope],
            k => (0..k).map(|i| slope * category_score(i)).collect(),
        }
    }

    /// The cost `[n, batch]` of samples `[n, batch, d, k]`: the sum over the `d` variables.
    pub fn cost(&self, z: Tensor<4>) -> Tensor<2> {
        self.terms(z).sum_dims(&[2, 3]).squeeze_dims(&[2, 3])
    }

    /// The cost of each variable, `[n, batch, d, 1]`.
    pub fn terms(&self, z: Tensor<4>) -> Tensor<4> {
        let k = z.dims()[3];
        let s = if k == 1 {
            z
        } else {
            let scores: Vec<f64> = (0..k).map(category_score).collect();
            let scores = TensorData::new(scores, [1, 1, 1, k]);
            let scores = Tensor::<4>::from_data(scores, (&z.device().inner(), z.dtype()));
            (z * scores).sum_dim(3)
        };
        (self.tensor)(s)
    }
}

fn score(z: &[f64]) -> f64 {
    match z {
        [z] => *z,
        z => z
            .iter()
            .enumerate()
            .map(|(i, z)| category_score(i) * z)
            .sum(),
    }
}

/// One variable and a cost.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The family.
    pub family: Family,
    /// One natural parameter, or `k` logits.
    pub natural: Vec<f64>,
    /// The cost.
    pub objective: TestObjective,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            family,
            natural,
            objective,
        } = self;
        write!(f, "{family:?} {natural:?}, {}", objective.name)
    }
}

/// The [examples](FamilyKind::examples) of a family, a moderate one first, each with every
/// objective.
///
/// Extreme ones have a rare value, not an underflow: at the other end of the range the saturating
/// objective has no gradient left that a factor of two could be seen on.
pub fn problems(kind: FamilyKind) -> Vec<Problem> {
    let with_objectives = |(family, natural): (Family, Vec<f64>)| {
        OBJECTIVES.iter().map(move |objective| Problem {
            family,
            natural: natural.clone(),
            objective: *objective,
        })
    };
    let examples = kind.examples().into_iter();
    examples.flat_map(with_objectives).collect()
}

impl Problem {
    /// All values of the variable (each of length 1 or `k`) with their probabilities; infinite
    /// supports are cut where a tail is below `exp(-45)`.
    pub fn states(&self) -> Vec<(Vec<f64>, f64)> {
        if self.family.is_one_hot() {
            let k = self.natural.len();
            let p = softmax(&self.natural);
            let corner = |i: usize| (0..k).map(|j| f64::from(u8::from(i == j))).collect();
            return (0..k).map(|i| (corner(i), p[i])).collect();
        }
        if let Family::Subset { size } = self.family {
            return subsets(&self.natural, size);
        }
        if let Some((step, lo)) = self.lattice() {
            let up = (self.natural[0] - lo) / step;
            return vec![(vec![lo], 1.0 - up), (vec![lo + step], up)];
        }
        let law = self.family.count_law(self.natural[0]);
        let law = law.expect("every other family is ordered");
        let (lo, hi) = law.window(45.0);
        (lo..=hi)
            .map(|x| (vec![x as f64], law.pmf(x as f64)))
            .collect()
    }

    /// The exact gradient of `E f` with respect to the natural parameters: probabilities times
    /// scores, summed.
    pub fn exact_gradient(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.natural.len()];
        // Any constant may be subtracted from f; the mean keeps the terms small.
        let states = self.states();
        let mean: f64 = states
            .iter()
            .map(|(z, p)| p * self.objective.value_at(z))
            .sum();
        for (z, p) in &states {
            let weight = p * (self.objective.value_at(z) - mean);
            for (sum, score) in sum.iter_mut().zip(self.score(z)) {
                *sum += weight * score;
            }
        }
        sum
    }

    /// `d log q(z) / d natural`.
    pub fn score(&self, z: &[f64]) -> Vec<f64> {
        if self.family.is_one_hot() {
            let p = softmax(&self.natural);
            return z.iter().zip(p).map(|(z, p)| z - p).collect();
        }
        if self.family.is_vector() {
            let mean = self.mean();
            return z.iter().zip(mean).map(|(z, mean)| z - mean).collect();
        }
        if let Some((step, lo)) = self.lattice() {
            let up = (self.natural[0] - lo) / step;
            let of_lower = -1.0 / (step * (1.0 - up));
            return vec![if z[0] == lo {
                of_lower
            } else {
                1.0 / (step * up)
            }];
        }
        let law = self.family.count_law(self.natural[0]);
        vec![law.expect("every other family is ordered").score(z[0])]
    }

    /// The step of the lattice that the variable is rounded to, and its lower neighbour there.
    pub fn lattice(&self) -> Option<(f64, f64)> {
        match self.family {
            Family::Rounded { step, .. } => Some((step, (self.natural[0] / step).floor() * step)),
            _ => None,
        }
    }

    /// The mean of each entry, summed over the states.
    pub fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0; self.natural.len()];
        for (z, p) in self.states() {
            mean.iter_mut().zip(z).for_each(|(mean, z)| *mean += p * z);
        }
        mean
    }

    /// The covariance matrix of the entries times a vector, summed over the states.
    pub fn covariance_times(&self, v: &[f64]) -> Vec<f64> {
        let mean = self.mean();
        let mut product = vec![0.0; v.len()];
        for (z, p) in self.states() {
            let deviation: Vec<f64> = z.iter().zip(&mean).map(|(z, mean)| z - mean).collect();
            let along: f64 = deviation.iter().zip(v).map(|(x, v)| x * v).sum();
            let terms = product.iter_mut().zip(deviation);
            terms.for_each(|(product, x)| *product += p * x * along);
        }
        product
    }

    /// All values as outcomes of one draw.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |(z, probability): (Vec<f64>, f64)| Outcome {
            probability,
            cost: self.objective.value_at(&z),
            score: self.score(&z),
        };
        self.states().into_iter().map(outcome).collect()
    }

    /// The expectation of the cost.
    pub fn expected_cost(&self) -> f64 {
        let terms = self.states().into_iter();
        terms.map(|(z, p)| p * self.objective.value_at(&z)).sum()
    }

    /// The law with a batch of `batch` equal elements, in double precision.
    pub fn law(&self, batch: usize) -> Law {
        self.law_of(batch, DType::F64)
    }

    /// As [`law`](Self::law), with numbers of a type.
    pub fn law_of(&self, batch: usize, dtype: DType) -> Law {
        let k = self.natural.len();
        let natural = tensor(self.natural.repeat(batch), [batch, 1, k], dtype);
        Law::new(self.family, natural).expect("a valid problem")
    }
}

/// All vectors with `size` ones and their probabilities, by the definition.
fn subsets(logits: &[f64], size: u32) -> Vec<(Vec<f64>, f64)> {
    let all = (0..1u32 << logits.len()).filter(|bits| bits.count_ones() == size);
    let mut states: Vec<(Vec<f64>, f64)> = all
        .map(|bits| {
            let z: Vec<f64> = (0..logits.len())
                .map(|i| f64::from(bits >> i & 1))
                .collect();
            let sum: f64 = z.iter().zip(logits).map(|(z, logit)| z * logit).sum();
            (z, sum.exp())
        })
        .collect();
    let total: f64 = states.iter().map(|(_, weight)| weight).sum();
    states.iter_mut().for_each(|(_, weight)| *weight /= total);
    states
}

/// The probabilities of logits.
pub fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|x| (x - largest).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|w| w / total).collect()
}
