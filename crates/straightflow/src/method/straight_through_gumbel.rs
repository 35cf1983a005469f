//! The straight-through Gumbel-softmax estimator.

use burn::tensor::Tensor;

use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, Pathwise, Reduction, Temperature};
use crate::relaxation::{harden, perturbed, with_relaxed_gradient};

method! {
    /// Hard samples forwards; backwards, the derivative of the relaxed sample of the same noise.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i (∂y_i / ∂φ)ᵀ ∇f(z_i)`, where `y` is the sample of
    ///   [`GumbelSoftmax`](super::GumbelSoftmax) and `z` marks its largest entry (for Bernoulli
    ///   variables, whether `y` is above one half). So `z` has the distribution's own law, and the
    ///   derivative is `J(y) / τ` with the Jacobian `J` of a softmax.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: on every cost that is not constant, also on linear ones. As `τ` falls to 0 the
    ///   expectation of one bit tends to that of [`SecondOrderSt`](super::SecondOrderSt), which is
    ///   exact on quadratics.
    ///
    /// In single precision the uniform numbers have 23 bits, so outcomes of a probability below
    /// about 6e-8 do not occur.
    ///
    /// Towards temperature 0 the derivative vanishes for almost every draw and is of the order
    /// `1/τ` for the rest, so the variance grows as `1/τ`; [`GumbelRao`](super::GumbelRao) has less
    /// of it.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([1, 3], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let z = StraightThroughGumbel::default().draw(Key::new(1), &q)?;
    /// assert!(z.to_data().try_to_vec::<f32>().unwrap().iter().all(|z| [0.0, 1.0].contains(z)));
    /// let grads = z.sum().backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [1, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct StraightThroughGumbel {}

    options StraightThroughGumbelConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(0.5),
    }

    facts {
        id: "straight-through-gumbel",
        name: "Straight-through Gumbel-softmax",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: exact on "constant f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Jang, Gu, Poole 2017, arXiv 1611.01144, section 2.2",
        layers: Tape,
        noise: Uniform,
        step: temperature,
    }
}

impl Estimator for StraightThroughGumbel {}

impl Pathwise for StraightThroughGumbel {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let temperature = self.config.temperature.start();
        let logits = perturbed(law, noise.get(0), temperature);
        let hard = harden(law.family(), logits.clone());
        with_relaxed_gradient(law, hard, logits, temperature)
    }
}
