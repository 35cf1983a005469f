//! The Gumbel-softmax estimator, which is the binary Concrete one for Bernoulli variables.

use burn::tensor::Tensor;

use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction, Temperature};
use crate::relaxation::{perturbed, relax, with_relaxed_gradient};

method! {
    /// Relaxed samples, differentiated exactly.
    ///
    /// The samples are *not* hard: the cost is evaluated at points inside of the cube or the
    /// simplex, and the values of an estimate are those of the relaxed problem. Train with
    /// it, and evaluate with hard samples: `draw` gives those where the parameters are on no tape.
    ///
    /// * **Estimates** `d/d natural E f(y)` without bias, and so `d/d natural E f(z)` with one.
    /// * **With** `(1/n) Σ_i (∂y_i / ∂φ)ᵀ ∇f(y_i)`, where `y = σ((φ + log(u/(1-u))) / τ)` for
    ///   Bernoulli variables and `y = softmax((φ + G) / τ)`, `G = -log(-log u)`, for categorical
    ///   ones.
    /// * **Requires** the gradient of the cost, and a cost that makes sense between the hard
    ///   values.
    /// * **Bias**: on every cost that is not constant, also on linear ones; it vanishes with `τ`.
    ///
    /// # Towards temperature 0
    ///
    /// The samples become hard, and the derivative `y (1-y) / τ` becomes a spike: it underflows to
    /// zero for almost every draw and is of the order `1/τ` for a fraction `τ` of them, so the
    /// variance grows as `1/τ`. Nothing becomes infinite: noise and logits are added in log space,
    /// and the noise comes from the open interval.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<3>::zeros([1, 2, 4], &device).require_grad();
    /// let q = Categorical::from_logits(logits.clone())?;
    /// let y = GumbelSoftmax::default().draw(Key::new(1), &q)?;
    /// let grads = y.square().sum().backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [1, 2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct GumbelSoftmax {}

    options GumbelSoftmaxConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(0.5),
    }

    facts {
        id: "gumbel-softmax",
        name: "Gumbel-softmax",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: exact on "constant f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Jang, Gu, Poole 2017, arXiv 1611.01144; Maddison, Mnih, Teh 2017, arXiv \
                    1611.00712",
        layers: Tape,
        noise: Uniform,
        relaxed: true,
        step: temperature,
    }
}

impl Estimator for GumbelSoftmax {}

impl Pathwise for GumbelSoftmax {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let temperature = self.config.temperature.start();
        let logits = perturbed(law, noise.get(0), temperature);
        let relaxed = relax(law.family(), logits.clone());
        with_relaxed_gradient(law, relaxed, logits, temperature)
    }
}
