//! The Gumbel-Rao estimator.

use burn::tensor::{
    Tensor,
    activation::{log_sigmoid, log_softmax},
};

use crate::distribution::{FamilyKind, Law};
use crate::estimate::{Estimator, Noise, NoiseSpec, Pathwise, Reduction, Temperature};
use crate::gradient::with_gradient;
use crate::relaxation::{jacobian, log_exponential, softplus};

method! {
    /// Straight-through Gumbel-softmax, averaged over the noise that leads to the same hard sample.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i (1/m) Σ_j (1/τ) J(y_ij)ᵀ ∇f(z_i)`: the Jacobian `J` of a softmax at
    ///   relaxed samples `y_ij = softmax((φ + G_ij) / τ)` whose Gumbel noise `G_ij` is drawn given
    ///   that its largest perturbed logit is the one of `z_i`. With exponential `E_l`, chosen
    ///   category `c` and `Z = Σ_l exp(φ_l)` the perturbed logits are `-log E_c + log Z` for the
    ///   chosen one and `-log(E_l exp(-φ_l) + E_c / Z)` for the others. A Bernoulli variable is one
    ///   of two categories with logits `(φ, 0)`.
    /// * **Requires** the gradient of the cost.
    /// * **Bias**: that of [`StraightThroughGumbel`](super::StraightThroughGumbel), whose
    ///   expectation given the hard sample this is, with less variance. The number of draws does
    ///   not change it.
    /// * **Price**: the `m` relaxed samples never meet the cost.
    ///
    /// **What is differentiated.** `y = softmax((φ + G) / τ)` with respect to `φ` at *fixed* `G`.
    /// The conditional `G` is a function of `φ` too, but differentiating it as well, as the paper's
    /// remark on a total derivative has it, would give the derivative of `E (y | z)`, which is not
    /// the conditional expectation of the straight-through derivative: the estimator's bias would
    /// change.
    ///
    /// Towards temperature 0 the relaxed samples become hard and their derivative vanishes for
    /// almost every draw; the number of draws has to grow as `1/τ` to keep up.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<3>::zeros([1, 2, 4], &device).require_grad();
    /// let estimator = GumbelRaoConfig { draws: 100, ..Default::default() }.init()?;
    /// let z = estimator.draw(Key::new(1), &Categorical::from_logits(logits.clone())?)?;
    /// let grads = z.slice([0..1, 0..2, 0..1]).sum().backward();
    /// assert_eq!(logits.grad(&grads).unwrap().dims(), [1, 2, 4]);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct GumbelRao {}

    options GumbelRaoConfig {
        /// The number m of relaxed samples behind each hard one.
        draws: usize [1..] = 10,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation: a number, or a schedule `1>0.1@1e-5`.
        temperature: Temperature [f64::MIN_POSITIVE..=f64::MAX] = Temperature::Constant(0.5),
    }

    facts {
        id: "gumbel-rao",
        name: "Gumbel-Rao",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: exact on "constant f",
        needs: [Gradient],
        price: [1, 1],
        reference: "Paulus, Maddison, Krause 2021, arXiv 2010.04838",
        layers: Tape,
        step: temperature,
    }
}

impl Estimator for GumbelRao {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let [_, batch, d, _] = law.sample_dims(n);
        let shape = [n, batch, d, self.config.draws * categories(law)];
        vec![
            NoiseSpec::samples(law, n),
            NoiseSpec::uniform("conditional uniform", shape),
        ]
    }
}

impl Pathwise for GumbelRao {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let (hard, draws) = (noise.get(0), self.config.draws);
        let (family, temperature) = (law.family(), self.config.temperature.start());
        let logits = self.conditional(law, hard.clone(), noise.get(1)) / temperature;
        // sum_n mean_m J(x_nm)^T dz_n / tau at the conditional perturbed logits.
        with_gradient(law.natural(), hard, move |natural, _, dz| {
            let [n, batch, d, k] = dz.dims();
            let each = jacobian(family, logits.clone(), repeat(dz, draws));
            let each = each.reshape([n, batch, d, draws, k]).mean_dim(3);
            let sum = each.sum_dim(0) / temperature;
            sum.reshape(natural.dims())
        })
    }
}

impl GumbelRao {
    /// Perturbed logits given hard samples, minus the one of the chosen category,
    /// `[n, batch, d m, k]`; the difference of the two perturbed logits for a Bernoulli variable.
    ///
    /// With `log p` in place of the logits `Z` is 1, and the differences are
    /// `log E_c - log(E_l / p_l + E_c) = -softplus(log E_l - log E_c - log p_l)`.
    fn conditional(&self, law: &Law, hard: Tensor<4>, u: Tensor<4>) -> Tensor<4> {
        let [n, batch, d, _] = hard.dims();
        let draws = self.config.draws;
        let log_e = log_exponential(u.reshape([n, batch, d * draws, categories(law)]));
        let natural = law.natural().inner().unsqueeze::<4>();
        let hard = repeat(hard, draws);
        match law.family().is_one_hot() {
            true => {
                let log_p = repeat(log_softmax(natural, 3), draws);
                let chosen = (log_e.clone() * hard.clone()).sum_dim(3);
                (hard - 1.0) * softplus(log_e - chosen - log_p)
            }
            false => {
                // The side that was not chosen has the logit of the other sign.
                let side = hard * 2.0 - 1.0;
                let log_p = log_sigmoid(-(repeat(natural, draws) * side.clone()));
                let [one, zero] = [0, 1].map(|i| log_e.clone().narrow(3, i, 1));
                let other_minus_chosen = (zero - one) * side.clone();
                side * softplus(other_minus_chosen - log_p)
            }
        }
    }
}

/// The number of categories; two for a Bernoulli variable.
fn categories(law: &Law) -> usize {
    law.dims()[2].max(2)
}

/// Every variable `draws` times in a row: `[n, batch, d, k]` to `[n, batch, d draws, k]`.
fn repeat(x: Tensor<4>, draws: usize) -> Tensor<4> {
    let [n, batch, d, k] = x.dims();
    let repeated = x.unsqueeze_dim::<5>(3).expand([n, batch, d, draws, k]);
    repeated.reshape([n, batch, d * draws, k])
}
