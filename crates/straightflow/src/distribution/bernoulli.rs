//! Binary variables.

use burn::tensor::activation::{self, log_sigmoid};
use burn::tensor::{DType, Tensor, TensorData};

use super::count::logit;
use super::divergence::{Divergence, divergence_of_logits};
use super::formulas::{EDGE, Formulas, Inverse};
use super::{CountLaw, Distribution, Family, Law, Numbers, wraps_law};
use crate::Key;
use crate::error::Result;
use crate::ops::fused::{bernoulli_log_prob, bernoulli_sample, sigmoid};

/// Independent variables that are 1 with probability `p = sigmoid(logit)` and 0 otherwise.
///
/// Probabilities below 2^-33 never yield their value in `f32`, those below 2^-53 in `f64`.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let logits = Tensor::<2>::from_floats([[0.0, 2.0, -1e4]], &Device::flex());
/// let q = Bernoulli::from_logits(logits)?;
/// let z = q.sample(Key::new(1), 1000);
/// assert_eq!(z.dims(), [1000, 1, 3]);
/// assert!(q.log_prob(z).into_data().try_to_vec::<f32>().unwrap().iter().all(|x| *x <= 0.0));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bernoulli<const R: usize = 2>(Law);

impl<const R: usize> Bernoulli<R>
where
    Tensor<R>: Numbers,
{
    /// From logits `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_logits(logits: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::Bernoulli, logits)
    }

    /// From the probabilities of a 1, `[batch, ..]`.
    ///
    /// # Errors
    ///
    /// If a dimension is 0.
    pub fn from_means(means: Tensor<R>) -> Result<Self> {
        Self::of_means(Family::Bernoulli, means)
    }

    /// The logits `[batch, ..]`.
    pub fn logits(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(Bernoulli, Numbers);

/// The formulas of binary variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed;

pub(super) fn formulas() -> Fixed {
    Fixed
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    // On both sides of 1/2: methods that treat the rarer value apart have a branch there.
    [-0.6, 1.4, 3.5]
        .map(|logit| (Family::Bernoulli, vec![logit]))
        .to_vec()
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "logit"
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn allowed_means(&self) -> (f64, &'static str) {
        (1.0, "between 0 and 1")
    }

    fn natural_of_means(&self, means: Tensor<3>) -> Tensor<3> {
        means.clone().log() - (-means).log1p()
    }

    fn natural_of_mean(&self, mean: f64) -> f64 {
        logit(mean.clamp(EDGE, 1.0 - EDGE))
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        sigmoid(natural)
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        sigmoid(natural.clone()) * sigmoid(-natural)
    }

    #[inline]
    fn count_law(&self, natural: f64) -> Option<CountLaw> {
        Some(CountLaw::Binomial {
            trials: 1,
            logit: natural,
        })
    }

    fn log_prob_each(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<3> {
        let natural = natural.unsqueeze::<4>();
        let one = z.clone() * log_sigmoid(natural.clone());
        let zero = (-z + 1.0) * log_sigmoid(-natural);
        (one + zero).squeeze_dim(3)
    }

    fn log_prob(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<2> {
        let [batch, d, _] = natural.dims();
        let [n, rows, columns, _] = z.dims();
        // One row of parameters for all, or one for each batch element of every draw.
        if columns == d && (batch == 1 || rows == batch) {
            let logits = natural.reshape([batch, d]);
            return bernoulli_log_prob(logits, z.reshape([n * rows, d])).reshape([n, rows]);
        }
        self.log_prob_each(natural, z).sum_dim(2).squeeze_dim(2)
    }

    fn entropy(&self, natural: Tensor<3>) -> Option<Tensor<3>> {
        let (one, zero) = (natural.clone(), -natural);
        let one = activation::sigmoid(one.clone()) * log_sigmoid(one);
        let zero = activation::sigmoid(zero.clone()) * log_sigmoid(zero);
        Some(-(one + zero))
    }

    fn divergence(&self, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
        let side = |p: Tensor<3>, q: Tensor<3>| {
            activation::sigmoid(p.clone()) * (log_sigmoid(p) - log_sigmoid(q))
        };
        side(p.clone(), q.clone()) + side(-p, -q)
    }

    #[inline]
    fn divergence_of(&self, p: f64, q: f64) -> Divergence {
        divergence_of_logits(p, q)
    }

    /// Draws whether the *less* likely value occurs, with a uniform number that resolves small
    /// probabilities: `u < p` would round `1 - p` away for logits above 16.
    fn sample(&self, law: &Law, key: Key, n: usize) -> Tensor<4> {
        let natural = law.natural().inner();
        if let Some(z) = bernoulli_sample(natural.clone(), n, |u| key.fill_fine_f32(u)) {
            return z;
        }
        let shape = law.sample_dims(n);
        let logits = natural.unsqueeze::<4>();
        let (device, dtype) = (logits.device(), logits.dtype());
        let u: Tensor<4> = if dtype == DType::F64 {
            key.uniform(shape, &device, dtype)
        } else {
            let mut u = vec![0.0; shape.iter().product()];
            key.fill_fine_f32(&mut u);
            Tensor::from_data(TensorData::new(u, shape), (&device, dtype))
        };
        let rare = u.lower(activation::sigmoid(-logits.clone().abs()).expand(shape));
        let likely = logits.greater_elem(0.0).expand(shape);
        rare.bool_xor(likely).float().cast(dtype)
    }

    fn inverse(&self) -> Option<Inverse> {
        Some(|natural, uniform| {
            // u < p, seen from the less likely of the two values: its probability has all digits.
            let shape = uniform.dims();
            let rare = sigmoid(-natural.clone().abs()).expand(shape);
            let likely = natural.greater_elem(0.0).expand(shape);
            let side = uniform
                .clone()
                .mask_where(likely.clone(), -uniform.clone() + 1.0);
            let z = side.lower(rare).bool_xor(likely);
            z.float().cast(uniform.dtype())
        })
    }

    fn weight(&self, natural: Tensor<3>) -> Option<(Family, Tensor<3>)> {
        // The point mass at 0.
        Some((Family::Binomial { trials: 0 }, natural))
    }

    fn step_weights(&self, natural: Tensor<4>, z: Tensor<4>) -> [Tensor<4>; 2] {
        let (p, q) = (sigmoid(natural.clone()), sigmoid(-natural));
        [z.clone() * q, (-z + 1.0) * p]
    }

    fn step(&self, z: f64, _side: f64) -> f64 {
        1.0 - 2.0 * z
    }

    fn moved(&self, _natural: Tensor<3>, z: Tensor<4>, _side: Option<Tensor<4>>) -> Tensor<4> {
        -z + 1.0
    }
}
