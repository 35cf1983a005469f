//! Hard samples of every family, from a key.

use burn::tensor::{DType, Tensor, TensorData, activation::sigmoid};
use chacha20::ChaCha8Rng;
use rand_distr::{Binomial, Distribution as _, Gamma, Poisson};

use super::count::sigmoid as scalar_sigmoid;
use super::{CountLaw, Family, Law};
use crate::Key;
use crate::ops::fused::bernoulli_sample;
use crate::ops::{from_host, to_host};

/// Above this rate a Poisson count is its own mean to within the spacing of the numbers that hold
/// it: the relative standard deviation is below 3e-8.
const LARGEST_RATE: f64 = 1e15;

impl Law {
    /// `n` hard samples `[n, batch, d, k]`, on no tape: 0 or 1, one-hot vectors, or counts.
    ///
    /// The bits depend on the key and the shape only, not on the number of threads. What a
    /// parameter that is not a number gives is not specified; [`validate`](Self::validate) finds
    /// it.
    pub fn sample(&self, key: Key, n: usize) -> Tensor<4> {
        match self.family() {
            Family::Bernoulli => self.sample_bernoulli(key, n),
            Family::Categorical => self.sample_categorical(key, n),
            _ => self.sample_counts(key, n),
        }
    }

    /// Draws whether the *less* likely value occurs, with a uniform number that resolves small
    /// probabilities: `u < p` would round `1 - p` away for logits above 16.
    fn sample_bernoulli(&self, key: Key, n: usize) -> Tensor<4> {
        let natural = self.natural().inner();
        if let Some(z) = bernoulli_sample(natural, n, |u| key.fill_fine_f32(u)) {
            return z;
        }
        let shape = self.sample_dims(n);
        let logits = self.natural().inner().unsqueeze::<4>();
        let (device, dtype) = (logits.device(), logits.dtype());
        let count = shape.iter().product();
        let data = if dtype == DType::F64 {
            let mut u = vec![0.0; count];
            key.fill_uniform_f64(&mut u);
            TensorData::new(u, shape)
        } else {
            let mut u = vec![0.0; count];
            key.fill_fine_f32(&mut u);
            TensorData::new(u, shape)
        };
        let u = Tensor::<4>::from_data(data, (&device, dtype));
        let rare = u.lower(sigmoid(-logits.clone().abs()).expand(shape));
        let likely = logits.greater_elem(0.0).expand(shape);
        rare.bool_xor(likely).float().cast(dtype)
    }

    /// Inverts the distribution function in double precision.
    fn sample_categorical(&self, key: Key, n: usize) -> Tensor<4> {
        let [batch, d, k] = self.dims();
        let logits = to_host(self.natural());
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
        from_host(one_hot, [n, batch, d, k], &self.natural())
    }

    fn sample_counts(&self, key: Key, n: usize) -> Tensor<4> {
        let laws = self.count_laws().expect("an ordered family");
        let mut z = vec![0.0; n * laws.len()];
        key.fill_elements(&mut z, |element, rng| {
            draw(&laws[element % laws.len()], rng)
        });
        from_host(z, self.sample_dims(n), &self.natural())
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

fn draw(law: &CountLaw, rng: &mut ChaCha8Rng) -> f64 {
    match *law {
        CountLaw::Poisson { rate } => draw_poisson(rate, rng),
        CountLaw::NegativeBinomial { dispersion, mean } => {
            // A Poisson variable whose rate is gamma distributed. The constructor of the law has
            // checked the dispersion; a rate of zero or infinity is passed on.
            match Gamma::new(dispersion, mean / dispersion) {
                Ok(gamma) => draw_poisson(gamma.sample(rng), rng),
                Err(_) => draw_poisson(mean, rng),
            }
        }
        CountLaw::Binomial { trials, logit } => {
            if logit.is_nan() {
                return f64::NAN;
            }
            // Counts the less likely outcome, whose probability has all its digits.
            let rare = Binomial::new(u64::from(trials), scalar_sigmoid(-logit.abs()))
                .expect("a probability of at most one half")
                .sample(rng) as f64;
            if logit > 0.0 {
                f64::from(trials) - rare
            } else {
                rare
            }
        }
    }
}

fn draw_poisson(rate: f64, rng: &mut ChaCha8Rng) -> f64 {
    if rate == 0.0 || rate.is_nan() || rate > LARGEST_RATE {
        return rate.round();
    }
    Poisson::new(rate)
        .expect("a positive rate below the sampler's limit")
        .sample(rng)
}
