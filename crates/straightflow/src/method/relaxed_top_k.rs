//! Relaxed top-k: subsets by successive softmaxes of perturbed logits.

use burn::tensor::Tensor;

use crate::distribution::{Family, FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction, Temperature};
use crate::relaxation::{harden, log_exponential};

/// Below this temperature samples are hard up to rounding, and its powers would overflow.
const COLDEST: f64 = 1e-9;
/// Less than any logit: an item that is left out.
const LEFT_OUT: f64 = 1e30;

method! {
    /// Relaxed subsets, differentiated exactly: as many softmaxes as there are items to choose, each of
    /// what the ones before left over.
    ///
    /// **It relaxes another law.** As the temperature goes to 0, the samples tend to the largest of the
    /// logits plus Gumbel noise. Those are items drawn one after the other without replacement
    /// (Plackett and Luce), while [`Subset`](crate::distribution::Subset) is the law of independent bits
    /// given their number; the two agree for a single item only. So the gradient is not that of
    /// `E f(z)` at any temperature. With logits .3, -1.2, .8 and .1, the two laws of two items are
    /// .038 apart in total variation. On no tape, `draw` gives samples of `Subset`.
    ///
    /// * **Estimates** `d/d natural E f(y)` of the relaxed samples without bias, and so
    ///   `d/d natural E f(z)` with one.
    /// * **With** `w = φ - log(-log u)`, `y = 0` and, `size` times, `a = softmax(w / τ)`, `y ← y + a`,
    ///   `w ← w + log(1 - a)`. The entries of `y` sum to `size`; one of them can exceed 1, and at
    ///   temperatures of 1 and above they do so even where the logits are far apart.
    /// * **Requires** the gradient of the cost, and a cost that makes sense between the hard
    ///   values.
    /// * **Bias**: on every cost that is not constant.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<3>::zeros([1, 1, 5], &device).require_grad();
    /// let q = Subset::from_logits(2, logits.clone())?;
    /// let y = RelaxedTopK::default().draw(Key::new(1), &q)?;
    /// assert!((y.clone().sum().into_scalar::<f32>() - 2.0).abs() < 1e-5);
    /// let grads = y.square().sum().backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [1, 1, 5]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct RelaxedTopK {}

    options RelaxedTopKConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(0.5),
    }

    facts {
        id: "relaxed-top-k",
        name: "Relaxed top-k (of drawing without replacement)",
        families: &[FamilyKind::Subset],
        bias: exact on "constant f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Xie, Ermon 2019, arXiv 1901.10517",
        layers: Tape,
        noise: Uniform,
        relaxed: true,
        step: temperature,
    }
}

impl Estimator for RelaxedTopK {}

impl Pathwise for RelaxedTopK {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let Family::Subset { size } = law.family() else {
            unreachable!("the entry names no other family");
        };
        let keys = law.natural().unsqueeze::<4>() - log_exponential(noise.get(0));
        chosen(keys, size, self.config.temperature.start().max(COLDEST))
    }
}

/// The relaxed indicator of the `size` largest keys `[n, batch, d, k]`, on their tape.
fn chosen(mut keys: Tensor<4>, size: u32, temperature: f64) -> Tensor<4> {
    let mut chosen = keys.clone() * 0.0;
    for _ in 0..size {
        let (shares, log_rests) = shares(keys.clone(), temperature);
        chosen = chosen + shares;
        keys = keys + log_rests;
    }
    chosen
}

/// `a = softmax(keys / temperature)` and `log(1 - a)`. The second is that of the sum of the others
/// for the largest key: `1 - a` would be nothing but rounding, or zero.
fn shares(keys: Tensor<4>, temperature: f64) -> (Tensor<4>, Tensor<4>) {
    let first = harden(Family::Categorical, keys.clone().inner());
    let largest = (keys.clone() * first.clone()).sum_dim(3);
    // burn differentiates a division by a number in single precision.
    let behind = (keys - largest) * (1.0 / temperature);
    let others = behind - first.clone() * LEFT_OUT;
    let second = others.clone().inner().max_dim(3);
    let log_sum = (others.clone() - second.clone()).exp().sum_dim(3).log() + second;
    let log_total = log_sum.clone().exp().log1p();

    let of_first = (-log_total.clone()).exp() * first.clone();
    let of_others = (others - log_total.clone()).exp();
    let log_rests = (-of_others.clone()).log1p() + (log_sum - log_total) * first;
    (of_first + of_others, log_rests)
}
