//! The relaxed samples of all layers.

use burn::tensor::Tensor;

use super::Relaxed;
use super::cost::temperature;
use crate::distribution::Law;
use crate::error::Result;
use crate::estimate::layers::{Conditional, Pass, sum_of};
use crate::estimate::noise::NoiseSource;
use crate::estimate::objective::CountedObjective;
use crate::estimate::run::Estimator;
use crate::gradient::with_gradient;
use crate::relaxation::{jacobian, log_exponential, relax};

/// Which layer it is, and the draws that its law has a row for, besides batch elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub layer: usize,
    pub draws: usize,
}

/// A conditioning input `[batch, features]` for so many draws, draw by draw.
pub(crate) fn tiled(input: &Tensor<2>, draws: usize) -> Tensor<2> {
    match draws {
        1 => input.clone(),
        draws => input.clone().repeat_dim(0, draws),
    }
}

/// Hard samples of all layers, with the relaxed samples behind each layer.
pub(crate) struct RelaxedPass {
    pub pass: Pass,
    pub relaxed: Vec<Relaxed>,
    noise: Vec<Tensor<4>>,
}

impl RelaxedPass {
    pub fn new(
        estimator: &impl Estimator,
        noise: &NoiseSource,
        objective: &CountedObjective,
    ) -> Result<Self> {
        let (mut relaxed, mut numbers) = (Vec::new(), Vec::new());
        let pass = Pass::new(estimator, noise, objective, |law, noise| {
            let u = noise.get(0);
            let layer = Relaxed::new(law, u.clone());
            let hard = layer.hard.clone();
            relaxed.push(layer);
            numbers.push(u);
            hard
        })?;
        Ok(Self {
            pass,
            relaxed,
            noise: numbers,
        })
    }

    /// The rows of a layer: those of the lowest are batch elements, those of the others draws too.
    pub fn rows(&self, layer: usize) -> Rows {
        let draws = match layer {
            0 => 1,
            _ => self.pass.z[0].dims()[0],
        };
        Rows { layer, draws }
    }

    /// The sum over the layers of what `rule` makes of each: of its number, of the hard samples
    /// below it, of the costs in the shape of its law, and of the cost as a function of its relaxed
    /// sample, with those below hard and those above relaxed, at the temperatures of their layers.
    ///
    /// The layers above use the noise of the hard pass, which does not depend on that of the layer:
    /// that keeps the estimate unbiased, and `f(s)` close to `f(b)`.
    pub fn sum_layers(
        &self,
        objective: &CountedObjective,
        cost: &Tensor<2>,
        log_temperatures: &[Tensor<1>],
        rule: impl Fn(usize, &[Tensor<4>], Tensor<2>, &CountedObjective) -> Result<Tensor<1>>,
    ) -> Result<Tensor<1>> {
        let Pass { laws, z } = &self.pass;
        let soften = |layer: usize, law: &Law| {
            let rows = law.dims()[0];
            let u = self.noise[layer].clone();
            let [n, own, d, k] = u.dims();
            let u = u
                .reshape([1, n * own, d, k])
                .repeat_dim(1, rows / (n * own));
            let temperature = temperature(log_temperatures[layer].clone().inner());
            Ok(soften(law, u, temperature))
        };
        let term = |(layer, law): (usize, &Law)| {
            let below = &z[..layer];
            let conditional = Conditional::new(objective, law, below, &laws[0], &soften, false);
            let [n, rows, ..] = self.relaxed[layer].z.dims();
            let values = cost.clone().inner().reshape([n, rows]);
            debug_assert_eq!(rows, law.dims()[0]);
            rule(layer, below, values, &conditional.counted())
        };
        sum_of(laws.iter().enumerate().map(term))
    }
}

/// The softened sample of uniform numbers, on the tape of the law.
fn soften(law: &Law, u: Tensor<4>, temperature: Tensor<1>) -> Tensor<4> {
    let natural = law.natural().unsqueeze::<4>();
    let family = law.family();
    let z = match family.is_one_hot() {
        true => {
            let z = natural - log_exponential(u);
            let largest = z.clone().inner().max_dim(3);
            z - largest
        }
        false => natural + (u.clone().log() - (-u + 1.0).log()),
    };
    let logits = z / temperature.reshape([1, 1, 1, 1]);
    let softened = relax(family, logits.clone().inner());
    with_gradient(logits, softened, move |logits, _, grad| {
        jacobian(family, logits, grad)
    })
}
