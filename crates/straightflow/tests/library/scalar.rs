//! Enumeration and scores in scalar double precision, apart from the library's tensor code, and a
//! cost that is neither symmetric, nor quadratic, nor a sum over coordinates.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::objective::ObjectiveKind;
use straightflow::prelude::*;

use crate::support::{tensor, values};

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn direction(i: usize) -> f64 {
    0.9 * (0.7 * i as f64 + 0.3).sin()
}

/// `sin(0.9 s + 0.2) + 0.3 s` with `s = sum_i a_i z_i`, for one sample of `d * k` numbers.
pub fn cost_at(z: &[f64]) -> f64 {
    let s: f64 = z.iter().enumerate().map(|(i, z)| direction(i) * z).sum();
    (0.9 * s + 0.2).sin() + 0.3 * s
}

/// Its partial derivatives.
pub fn slopes_at(z: &[f64]) -> Vec<f64> {
    let s: f64 = z.iter().enumerate().map(|(i, z)| direction(i) * z).sum();
    let by_s = 0.9 * (0.9 * s + 0.2).cos() + 0.3;
    (0..z.len()).map(|i| by_s * direction(i)).collect()
}

/// The same cost for tensors, `[n, batch, d, k]` to `[n, batch]`.
pub fn cost(z: Tensor<4>) -> Tensor<2> {
    let [_, _, d, k] = z.dims();
    let a: Vec<f64> = (0..d * k).map(direction).collect();
    let a = tensor::<4>(&a, [1, 1, d, k], z.dtype());
    let s = (z * a).sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
    (s.clone() * 0.9 + 0.2).sin() + s * 0.3
}

/// The cost of a kind; with `direct`, plus `log q(z)`, so that it depends on the parameters too.
#[derive(Clone, Copy, Debug)]
pub struct Toy {
    pub kind: ObjectiveKind,
    pub direct: bool,
}

impl Toy {
    pub fn cost(&self, z: Tensor<4>, q: &Law) -> Tensor<2> {
        let value = cost(z.clone());
        if self.direct {
            return value + q.log_prob(z);
        }
        value
    }
}

/// `d log q(z) / d natural` of a sample.
pub fn score(law: &Law, z: &[f64]) -> Vec<f64> {
    let natural = values(law.natural());
    let k = law.dims()[2];
    let each = |i: usize| {
        let x = natural[i];
        match law.family() {
            Family::Bernoulli => z[i] - sigmoid(x),
            Family::Binomial { trials } => z[i] - f64::from(trials) * sigmoid(x),
            Family::Poisson => z[i] - x.exp(),
            Family::NegativeBinomial { dispersion } => {
                (z[i] - x.exp()) * dispersion / (dispersion + x.exp())
            }
            Family::Geometric => (z[i] - x.exp()) / (1.0 + x.exp()),
            Family::Categorical => {
                let row = &natural[i / k * k..(i / k + 1) * k];
                let total: f64 = row.iter().map(|x| x.exp()).sum();
                z[i] - x.exp() / total
            }
            Family::Rounded { .. } => unreachable!("tested in a file of its own"),
            Family::Subset { size } => {
                let row = &natural[i / k * k..(i / k + 1) * k];
                let states = subsets(row, size).into_iter();
                z[i] - states.map(|(z, p)| p * z[i % k]).sum::<f64>()
            }
        }
    };
    (0..natural.len()).map(each).collect()
}

/// All vectors with `size` ones and their probabilities, by the definition.
pub fn subsets(logits: &[f64], size: u32) -> Vec<(Vec<f64>, f64)> {
    let all = (0..1u32 << logits.len()).filter(|bits| bits.count_ones() == size);
    let bit = |bits: u32, i: usize| f64::from(bits >> i & 1);
    let vectors: Vec<Vec<f64>> = all
        .map(|bits| (0..logits.len()).map(|i| bit(bits, i)).collect())
        .collect();
    let weight = |z: &Vec<f64>| -> f64 {
        let sum: f64 = z.iter().zip(logits).map(|(z, logit)| z * logit).sum();
        sum.exp()
    };
    let total: f64 = vectors.iter().map(weight).sum();
    let with_probability = |z: Vec<f64>| {
        let p = weight(&z) / total;
        (z, p)
    };
    vectors.into_iter().map(with_probability).collect()
}

/// All samples of a law of one batch element with their probabilities.
pub fn states(law: &Law) -> Vec<(Vec<f64>, f64)> {
    let [batch, d, k] = law.dims();
    assert_eq!(batch, 1);
    let natural = values(law.natural());
    let coordinate = |j: usize| -> Vec<(Vec<f64>, f64)> {
        if law.family() == Family::Categorical {
            let row = &natural[j * k..(j + 1) * k];
            let total: f64 = row.iter().map(|x| x.exp()).sum();
            let corner = |i: usize| (0..k).map(|l| f64::from(u8::from(l == i))).collect();
            return (0..k).map(|i| (corner(i), row[i].exp() / total)).collect();
        }
        if let Family::Subset { size } = law.family() {
            return subsets(&natural[j * k..(j + 1) * k], size);
        }
        let law = law.family().count_law(natural[j]).expect("ordered");
        let (lo, hi) = law.window(45.0);
        let each = (lo..=hi).map(|x| (vec![x as f64], law.pmf(x as f64)));
        each.collect()
    };
    (0..d).fold(vec![(Vec::new(), 1.0)], |all, j| {
        let next = coordinate(j);
        let join = |(z, p): (Vec<f64>, f64)| {
            let longer = next.iter().map(move |(x, w)| ([&z[..], x].concat(), p * w));
            longer.collect::<Vec<_>>()
        };
        all.into_iter().flat_map(join).collect()
    })
}

/// All pairs of two independent samples with their probabilities.
pub fn pairs(law: &Law) -> Vec<([Vec<f64>; 2], f64)> {
    let states = states(law);
    let pair = |(a, p): &(Vec<f64>, f64)| {
        let (a, p) = (a.clone(), *p);
        let second = states
            .iter()
            .map(move |(b, w)| ([a.clone(), b.clone()], p * w));
        second.collect::<Vec<_>>()
    };
    states.iter().flat_map(pair).collect()
}

/// A law of each family with one batch element: two coordinates where that is few states.
pub fn small_laws() -> Vec<Law> {
    let law = |family, natural: &[f64], k| {
        let d = natural.len() / k;
        Law::new(family, tensor(natural, [1, d, k], DType::F64)).expect("valid")
    };
    vec![
        law(Family::Bernoulli, &[-1.3, 0.6], 1),
        law(Family::Categorical, &[0.3, -1.0, 0.9, 0.2, 0.0, -0.4], 3),
        law(Family::Binomial { trials: 3 }, &[-0.4, 1.1], 1),
        law(Family::Poisson, &[1.5f64.ln()], 1),
        law(
            Family::NegativeBinomial { dispersion: 2.5 },
            &[0.8f64.ln()],
            1,
        ),
        law(Family::Geometric, &[0.3f64.ln()], 1),
        law(Family::Subset { size: 2 }, &[0.3, -1.2, 0.8, 0.1], 4),
    ]
}

/// The gradient of each tuple of draws, each a batch element of the same law. `tuples[b][i]` is draw
/// `i` of element `b`.
pub fn gradients(
    estimator: &dyn Estimator,
    law: &Law,
    tuples: &[Vec<Vec<f64>>],
    objective: Toy,
) -> Vec<Vec<f64>> {
    let [_, d, k] = law.dims();
    let (batch, n) = (tuples.len(), tuples[0].len());
    let all = Law::new(law.family(), law.natural().repeat_dim(0, batch)).expect("valid");
    let draws = (0..n).flat_map(|i| tuples.iter().flat_map(move |tuple| tuple[i].clone()));
    let noise = tensor(&draws.collect::<Vec<f64>>(), [n, batch, d, k], DType::F64);
    let q = all;
    let single = Single::new(&q, (), |z, q, ()| objective.cost(z, q)).of_kind(objective.kind);
    let gradient = estimator.gradient_of(vec![noise], &single);
    let gradient = values(gradient.expect("valid"));
    gradient.chunks(d * k).map(<[f64]>::to_vec).collect()
}

/// The sum of vectors, weighted.
pub fn weighted_sum<'a>(terms: impl IntoIterator<Item = (f64, &'a Vec<f64>)>) -> Vec<f64> {
    let mut sum = Vec::new();
    for (weight, x) in terms {
        sum.resize(x.len(), 0.0);
        for (sum, x) in sum.iter_mut().zip(x) {
            *sum += weight * x;
        }
    }
    sum
}

/// Makes an estimator of a specification.
pub fn build(spec: &str) -> Box<dyn Estimator> {
    let built = spec.parse::<Spec>().and_then(|spec| spec.build());
    built.unwrap_or_else(|error| panic!("{spec}: {error}"))
}
