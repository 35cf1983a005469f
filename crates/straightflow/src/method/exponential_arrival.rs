//! The exponential arrival time estimator.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::distribution::count::sigmoid;
use crate::distribution::{CountLaw, FamilyKind, Law};
use crate::error::Result;
use crate::estimate::{Estimator, Noise, NoiseSpec, Pathwise, Reduction, Temperature};
use crate::ops::to_host;
use crate::relaxation::{Counted, NOISE_LIMIT, blocks, count_each};

/// How the indicator `t < 1` of an arrival time is softened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalRelaxation {
    /// `3 u^2 - 2 u^3` with `u = (1 - t) / (2 tau) + 1/2`, cut to [0, 1]: nothing beyond `1 + tau`.
    #[default]
    Cubic,
    /// The sigmoid of `(1 - t) / tau`.
    Sigmoid,
}

impl ArrivalRelaxation {
    /// The time after which an arrival does not count. A sigmoid is below 5e-18 there.
    fn horizon(self, temperature: f64) -> f64 {
        match self {
            Self::Cubic => 1.0 + temperature,
            Self::Sigmoid => 1.0 + 40.0 * temperature,
        }
    }

    /// The softened indicator at a time, and its derivative with respect to the *negative* time.
    fn at(self, time: f64, temperature: f64) -> (f64, f64) {
        let x = (1.0 - time) / temperature;
        match self {
            Self::Cubic => {
                let u = (0.5 * x + 0.5).clamp(0.0, 1.0);
                (u * u * (3.0 - 2.0 * u), 3.0 * u * (1.0 - u) / temperature)
            }
            Self::Sigmoid => {
                let y = sigmoid(x);
                (y, y * sigmoid(-x) / temperature)
            }
        }
    }
}

method! {
    /// A Poisson variable as the number of arrivals before time 1, with that event softened.
    ///
    /// The samples are *not* whole numbers: the cost is evaluated at relaxed counts, and the values
    /// of an estimate are those of the relaxed problem. Train with it, and evaluate with hard
    /// samples: `draw` gives those where the parameters are on no tape.
    ///
    /// * **Estimates** `d/d natural E f(y)` without bias, and so `d/d natural E f(z)` with one.
    /// * **With** `(1/n) Σ_i (∂y_i/∂ log λ) f'(y_i)` and `y = Σ_k r((1 - t_k) / τ)`, where
    ///   `t_k = (1/λ) Σ_{l ≤ k} E_l` are the times of arrivals at the rate `λ`, `E = -log u`, and
    ///   `r` is a sigmoid or a cubic step. As `∂t_k / ∂ log λ = -t_k`, the weight is
    ///   `Σ_k r'((1 - t_k) / τ) t_k / τ`.
    /// * **Requires** the gradient of the cost, and a cost that makes sense between the integers.
    /// * **Bias**: the cubic step keeps the mean for `τ ≤ 1`, so linear costs are exact; the mean
    ///   of a sigmoid is `λ τ log(1 + exp(1/τ))`. On other costs it vanishes with `τ`.
    /// * **Price**: besides the cost, about `λ (1 + τ)` random numbers for each variable
    ///   (`λ (1 + 40τ)` for a sigmoid).
    ///
    /// **How many arrivals.** Arrivals count up to a horizon: `1 + τ`, where the cubic step ends,
    /// or `1 + 40τ`, where a sigmoid is below `5e-18`. Their number is drawn so large that more
    /// arrive before the horizon with probability at most `exp(-36) = 2.4e-16` for the largest rate
    /// of the batch. The arrival number `k` of a variable has the same random number whatever that
    /// rate is, and arrivals beyond the horizon are not used; so, but for that probability, batch
    /// elements do not influence each other by a single bit. Rates for which this would take more
    /// than 4096 numbers are refused with [`TooMuchNoise`](crate::Error::TooMuchNoise).
    ///
    /// Towards temperature 0 the counts become whole and the weight vanishes for almost every draw;
    /// it is of the order `1/τ` when an arrival is within `τ` of time 1, so the variance grows as
    /// `1/τ`.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let rates = Tensor::<2>::full([1, 1], 5.0, &device).require_grad();
    /// let q = Poisson::from_rates(rates.clone())?;
    /// let y = ExponentialArrival::default().sample(Key::new(1), &q, 4000)?;
    /// let gradient: f32 = rates.grad(&y.mean().backward()).unwrap().into_scalar();
    /// // The mean is exact, and so is its derivative on average.
    /// assert!((gradient - 1.0).abs() < 0.1);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct ExponentialArrival {}

    options ExponentialArrivalConfig {
        /// How the event that an arrival is in time is relaxed: `cubic` or `sigmoid`.
        relaxation: ArrivalRelaxation = ArrivalRelaxation::Cubic,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(0.5),
    }

    facts {
        id: "exponential-arrival",
        name: "Exponential arrival times",
        families: &[FamilyKind::Poisson],
        bias: exact on "linear f, with the cubic relaxation and a temperature of at most 1",
        needs: [Gradient],
        price: [1, 1],
        reference: "Vafaii, Galor, Yates 2024, arXiv 2405.14473; cubic: arXiv 2602.03896",
        layers: Tape,
        relaxed: true,
        step: temperature,
    }
}

impl Estimator for ExponentialArrival {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let numbers = self.arrivals(law) as usize;
        blocks("arrivals", law, n, numbers)
    }

    fn accepts(&self, law: &Law) -> Result<()> {
        ENTRY.need_noise(self.arrivals(law), NOISE_LIMIT)
    }
}

impl Pathwise for ExponentialArrival {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let rates = rates(law);
        let relaxation = self.config.relaxation;
        let temperature = self.config.temperature.start();
        let horizon = relaxation.horizon(temperature);
        count_each(noise, law, |variable, numbers| {
            let (mut elapsed, mut value, mut weight) = (0.0, 0.0, 0.0);
            for u in numbers {
                elapsed -= u.ln();
                let time = elapsed / rates[variable];
                if time > horizon {
                    break;
                }
                let (step, slope) = relaxation.at(time, temperature);
                value += step;
                weight += slope * time;
            }
            Counted { value, weight }
        })
    }
}

impl ExponentialArrival {
    /// How many arrivals there are before the horizon, but for a probability of `exp(-36)`, at the
    /// largest rate; the mean number if that alone is too large.
    fn arrivals(&self, law: &Law) -> f64 {
        let relaxation = self.config.relaxation;
        let horizon = relaxation.horizon(self.config.temperature.start());
        let rate = rates(law).into_iter().fold(0.0, f64::max) * horizon;
        if rate > NOISE_LIMIT as f64 {
            return rate;
        }
        let (_, most) = CountLaw::Poisson { rate }.window(36.0);
        most.max(1) as f64
    }
}

fn rates(law: &Law) -> Vec<f64> {
    to_host(law.natural()).into_iter().map(f64::exp).collect()
}
