//! One way up the layers.

use burn::tensor::Tensor;

use crate::distribution::Law;
use crate::error::Result;
use crate::estimate::noise::{Noise, NoiseSource};
use crate::estimate::objective::CountedObjective;
use crate::estimate::run::{Estimator, Outcome};
use crate::ops::gradient_only;

/// Samples of all layers from the lowest up, with their laws.
#[derive(Clone, Debug, Default)]
pub struct Pass {
    /// The law of each layer.
    pub laws: Vec<Law>,
    /// The samples of each layer, `[n, batch, d, k]`.
    pub z: Vec<Tensor<4>>,
}

impl Pass {
    /// Goes up the layers: `draw` makes samples `[n / rows per element, rows, d, k]` of a law from
    /// the noise that the estimator declares, for all draws of the lowest layer and for one of each
    /// row of every other.
    ///
    /// # Errors
    ///
    /// If the estimator does not take a layer's law, or the noise is not what is asked for.
    pub fn new(
        estimator: &(impl Estimator + ?Sized),
        noise: &NoiseSource,
        objective: &CountedObjective,
        mut draw: impl FnMut(&Law, Noise) -> Tensor<4>,
    ) -> Result<Self> {
        let n = noise.draws(estimator);
        let mut pass = Self::default();
        for layer in 0..objective.layers() {
            let law = objective.layer(&pass.z)?;
            let draws = if layer == 0 { n } else { 1 };
            // What the number of draws has to be is a matter of the lowest layer.
            match layer {
                0 => estimator.check(&law, n)?,
                _ => estimator.check(&law, estimator.least_samples().max(1))?,
            }
            let z = draw(&law, noise.next(&law, &estimator.noise(&law, draws))?);
            let z = match pass.z.first() {
                None => z,
                Some(first) => {
                    let [n, batch, ..] = first.dims();
                    let [.., d, k] = z.dims();
                    z.reshape([n, batch, d, k])
                }
            };
            pass.laws.push(law);
            pass.z.push(z);
        }
        Ok(pass)
    }

    /// As [`new`](Self::new), for an estimator whose noise are hard samples.
    pub fn hard(
        estimator: &(impl Estimator + ?Sized),
        noise: &NoiseSource,
        objective: &CountedObjective,
    ) -> Result<Self> {
        Self::new(estimator, noise, objective, |_, noise| noise.get(0))
    }

    /// `log q(z)` of all layers together, `[n, batch]`.
    pub fn log_prob(&self) -> Tensor<2> {
        super::layers_log_prob(&self.laws, &self.z)
    }

    /// The outcome of costs `[n, batch]` on their tapes, and of a scalar whose gradient is added to
    /// that of the mean cost.
    pub fn outcome(self, cost: Tensor<2>, gradient: Tensor<1>) -> Outcome {
        let surrogate = cost.clone().mean() + gradient_only(gradient);
        self.with_surrogate(cost, surrogate)
    }

    /// The outcome of costs `[n, batch]` with a surrogate that is complete.
    pub fn with_surrogate(self, cost: Tensor<2>, surrogate: Tensor<1>) -> Outcome {
        Outcome::with_surrogate(cost, surrogate, self.z)
    }
}
