//! One of `k` categories.

use burn::tensor::Tensor;
use burn::tensor::activation::{log_softmax, softmax};

use super::formulas::{Formulas, Inverse};
use super::{Distribution, Family, Law, Vectors, wraps_law};
use crate::Key;
use crate::error::{Error, Result};
use crate::ops::{from_host, to_host};

/// Independent variables that take one of `k` categories with probabilities `softmax(logits)`, as
/// one-hot vectors.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// // A batch of 2, 3 variables each, 4 categories.
/// let q = Categorical::from_logits(Tensor::<3>::zeros([2, 3, 4], &Device::flex()))?;
/// let z = q.sample(Key::new(1), 5);
/// assert_eq!(z.dims(), [5, 2, 3, 4]);
/// assert_eq!(z.sum().into_scalar::<f32>(), 30.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Categorical<const R: usize = 3>(Law);

impl<const R: usize> Categorical<R>
where
    Tensor<R>: Vectors,
{
    /// From logits `[batch, .., k]`; a constant added to the `k` logits of a variable changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If a dimension is 0 or `k` is 1.
    pub fn from_logits(logits: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::Categorical, logits)
    }

    /// From positive probabilities `[batch, .., k]`; they need not be normalised.
    ///
    /// # Errors
    ///
    /// If a dimension is 0 or `k` is 1.
    pub fn from_probabilities(probabilities: Tensor<R>) -> Result<Self> {
        Self::of_means(Family::Categorical, probabilities)
    }

    /// The logits `[batch, .., k]`.
    pub fn logits(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(Categorical, Vectors);

/// The formulas of one-hot vectors over categories.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed;

pub(super) fn formulas() -> Fixed {
    Fixed
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    vec![
        (Family::Categorical, vec![0.3, -0.5, 0.8]),
        (Family::Categorical, vec![-2.0, 0.4, 1.9]),
    ]
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "logit"
    }

    fn is_one_hot(&self) -> bool {
        true
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn check(&self, shape: [usize; 3]) -> Result<()> {
        match shape[2] {
            0 | 1 => Err(Error::TooFewCategories {
                shape: shape.to_vec(),
            }),
            _ => Ok(()),
        }
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        softmax(natural, 2)
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        let p = softmax(natural, 2);
        p.clone() * (-p + 1.0)
    }

    fn chain<const R: usize>(&self, natural: Tensor<3>, grad: Tensor<R>) -> Tensor<R> {
        let p = softmax(natural, 2).unsqueeze::<R>();
        let along = (p.clone() * grad.clone()).sum_dim(R - 1);
        p * (grad - along)
    }

    fn log_prob_each(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<3> {
        let each = z * log_softmax(natural, 2).unsqueeze::<4>();
        each.sum_dim(3).squeeze_dim(3)
    }

    fn score(&self, natural: Tensor<4>, z: Tensor<4>) -> Tensor<4> {
        z - softmax(natural, 3)
    }

    fn entropy(&self, natural: Tensor<3>) -> Option<Tensor<3>> {
        Some(-(softmax(natural.clone(), 2) * log_softmax(natural, 2)))
    }

    fn divergence(&self, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
        softmax(p.clone(), 2) * (log_softmax(p, 2) - log_softmax(q, 2))
    }

    /// Inverts the distribution function in double precision.
    fn sample(&self, law: &Law, key: Key, n: usize) -> Tensor<4> {
        let [batch, d, k] = law.dims();
        let logits = to_host(law.natural());
        let cumulative: Vec<f64> = logits.chunks(k).flat_map(cumulative_softmax).collect();
        let mut u = vec![0.0; n * batch * d];
        key.fill_uniform_f64(&mut u);
        let mut one_hot = vec![0.0; u.len() * k];
        for (index, (u, row)) in u.iter().zip(one_hot.chunks_mut(k)).enumerate() {
            let variable = index % (batch * d);
            let cumulative = &cumulative[variable * k..(variable + 1) * k];
            let category = cumulative.iter().position(|c| u * cumulative[k - 1] < *c);
            row[category.unwrap_or(k - 1)] = 1.0;
        }
        from_host(one_hot, [n, batch, d, k], &law.natural())
    }

    fn inverse(&self) -> Option<Inverse> {
        Some(|natural, uniform| {
            let [n, batch, d, _] = uniform.dims();
            let end = softmax(natural, 3).cumsum(3);
            let k = end.dims()[3];
            let end = end.expand([n, batch, d, k]);
            // The number of categories that end at or before u, the last one in any case left out.
            let passed = end.narrow(3, 0, k - 1);
            let passed = passed.lower_equal(uniform.clone().expand([n, batch, d, k - 1]));
            let passed = passed.float().cast(uniform.dtype());
            let one = uniform.ones_like();
            let zero = uniform.zeros_like();
            let reached = Tensor::cat(vec![one, passed.clone()], 3);
            let left = Tensor::cat(vec![passed, zero], 3);
            reached - left
        })
    }

    fn move_weight(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<4> {
        self.variance(natural).unsqueeze::<4>() * (-z + 1.0)
    }
}

/// The running sums of `exp(logit - max)`.
fn cumulative_softmax(logits: &[f64]) -> impl Iterator<Item = f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logits.iter().scan(0.0, move |sum, logit| {
        *sum += (logit - largest).exp();
        Some(*sum)
    })
}
