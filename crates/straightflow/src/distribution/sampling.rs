//! Hard samples of counts, from a key.

use burn::tensor::Tensor;
use chacha20::ChaCha8Rng;
use rand_distr::{Binomial, Distribution as _, Gamma, Poisson};

use super::count::sigmoid;
use super::{CountLaw, Law};
use crate::Key;
use crate::ops::from_host;

/// Above this rate a Poisson count is its own mean to within the spacing of the numbers that hold
/// it: the relative standard deviation is below 3e-8.
const LARGEST_RATE: f64 = 1e15;

pub(super) fn sample_counts(law: &Law, key: Key, n: usize) -> Tensor<4> {
    let laws = law.count_laws().expect("a family of counts");
    let mut z = vec![0.0; n * laws.len()];
    key.fill_elements(&mut z, |element, rng| {
        draw(&laws[element % laws.len()], rng)
    });
    from_host(z, law.sample_dims(n), &law.natural())
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
            let rare = Binomial::new(u64::from(trials), sigmoid(-logit.abs()))
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
