//! Gumbel-softmax over a window of the values of a count.

use burn::tensor::Tensor;

use crate::distribution::{CountLaw, FamilyKind, Law};
use crate::error::Result;
use crate::estimate::{Estimator, Noise, NoiseSpec, Pathwise, Reduction, Temperature};
use crate::relaxation::{Counted, NOISE_LIMIT, blocks, count_each};

method! {
    /// A count as a categorical variable over a window of its values, relaxed by Gumbel-softmax.
    ///
    /// With `hard = off` the samples are *not* whole numbers: the cost is evaluated at relaxed
    /// counts, and the values of an estimate are those of the relaxed problem. Train with it, and
    /// evaluate with hard samples: `draw` gives those where the parameters are on no tape.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i (∂k̄_i/∂η) f'(k̄_i)` and `k̄ = Σ_k k y_k`,
    ///   `y = softmax((log q_η(k) + G_k) / τ)` over the window, `G = -log(-log u)`. With the score
    ///   `s_k = ∂ log q_η(k) / ∂η` the weight is `(1/τ) Σ_k y_k (k - k̄) s_k`. With `hard = on`
    ///   `f'` is taken at the value `k` whose perturbed probability is largest instead: a
    ///   straight-through version.
    /// * **Requires** the gradient of the cost, and for `hard = off` a cost that makes sense
    ///   between the integers.
    /// * **Bias**: on every cost that is not constant, also on linear ones; without `hard` it
    ///   vanishes with `τ`, up to the tails that were cut off.
    /// * **Price**: besides the cost, a random number for each value of the window: about fourteen
    ///   standard deviations of them by default.
    ///
    /// **The window** of a variable is its own: the values outside of which each tail has
    /// probability at most `tail` (see [`Law::window`]). The value number `k` of it has the same
    /// random number whatever the windows of other variables are, so batch elements do not
    /// influence each other by a single bit. Windows of more than 4096 values are refused with
    /// [`TooMuchNoise`](crate::Error::TooMuchNoise). Probabilities are computed in double precision
    /// on the host.
    ///
    /// Towards temperature 0 the samples become whole and the weight vanishes for almost every
    /// draw; it is of the order `1/τ` when the two largest entries are within `τ`, so the variance
    /// grows as `1/τ`. High temperatures weigh all values of the window alike, so `tail` matters
    /// there.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([1, 3], &device).require_grad();
    /// let q = Binomial::from_logits(8, logits.clone())?;
    /// let y = TruncatedGumbel::default().draw(Key::new(1), &q)?;
    /// let grads = y.square().sum().backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct TruncatedGumbel {}

    options TruncatedGumbelConfig {
        /// Use whole numbers in the forward pass and the relaxed derivative in the backward pass.
        hard: bool = false,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The probability of each tail that is cut off, at most 0.1.
        tail: f64 [f64::MIN_POSITIVE..=0.1] = 1e-12,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(0.5),
    }

    facts {
        id: "truncated-gumbel",
        name: "Truncated Gumbel-softmax (GenGS)",
        families: &[
            FamilyKind::Poisson,
            FamilyKind::Binomial,
            FamilyKind::NegativeBinomial,
            FamilyKind::Geometric,
        ],
        bias: exact on "constant f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Joo et al. 2020, arXiv 2003.01847",
        layers: Tape,
        step: temperature,
    }
}

impl Estimator for TruncatedGumbel {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let numbers = self.widest(&count_laws(law)) as usize;
        blocks("gumbel uniform", law, n, numbers)
    }

    fn hard_samples(&self) -> bool {
        self.config.hard
    }

    fn accepts(&self, law: &Law) -> Result<()> {
        ENTRY.need_noise(self.widest(&count_laws(law)), NOISE_LIMIT)
    }
}

impl Pathwise for TruncatedGumbel {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let laws = count_laws(law);
        let windows: Vec<_> = laws.iter().map(|law| self.window(law)).collect();
        let temperature = self.config.temperature.start();
        count_each(noise, law, |variable, numbers| {
            let law = &laws[variable];
            soft_count(
                law,
                windows[variable],
                numbers,
                temperature,
                self.config.hard,
            )
        })
    }
}

impl TruncatedGumbel {
    fn window(&self, law: &CountLaw) -> (u64, u64) {
        law.window(-self.config.tail.ln())
    }

    /// The size of the largest window; the largest standard deviation if that alone is too large,
    /// because a window takes longer to find the wider it is.
    fn widest(&self, laws: &[CountLaw]) -> f64 {
        let size = |law: &CountLaw| {
            let deviation = law.variance().sqrt();
            if deviation < NOISE_LIMIT as f64 {
                let (lo, hi) = self.window(law);
                (hi - lo) as f64 + 1.0
            } else {
                deviation
            }
        };
        laws.iter().map(size).fold(1.0, f64::max)
    }
}

/// A count whose values in a window have the weights of a Gumbel-softmax sample: their mean, or the
/// value of the largest weight if it is to be hard, and the derivative of the mean.
fn soft_count(
    law: &CountLaw,
    (lo, hi): (u64, u64),
    numbers: impl Iterator<Item = f64>,
    temperature: f64,
    hard: bool,
) -> Counted {
    let perturbed: Vec<f64> = (lo..=hi)
        .zip(numbers)
        .map(|(k, u)| law.ln_pmf(k as f64) - (-u.ln()).ln())
        .collect();
    let larger = |best: usize, i: usize| {
        if perturbed[i] > perturbed[best] {
            i
        } else {
            best
        }
    };
    let best = (0..perturbed.len()).fold(0, larger);
    let chosen = lo as f64 + best as f64;
    // Everything is relative to the chosen value, which loses no digits of large counts.
    let step = |i: usize| i as f64 - best as f64;
    let weights: Vec<f64> = perturbed
        .iter()
        .map(|x| ((x - perturbed[best]) / temperature).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let terms = || weights.iter().map(|w| w / total).enumerate();
    let shift: f64 = terms().map(|(i, y)| y * step(i)).sum();
    let weight: f64 = terms()
        .map(|(i, y)| y * (step(i) - shift) * law.score(chosen + step(i)))
        .sum();
    Counted {
        value: if hard { chosen } else { chosen + shift },
        weight: weight / temperature,
    }
}

fn count_laws(law: &Law) -> Vec<CountLaw> {
    law.count_laws()
        .expect("only ordered families are supported")
}
