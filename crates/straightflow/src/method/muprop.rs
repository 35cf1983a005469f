//! The MuProp estimator.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::Key;
use crate::antithetic::along;
use crate::distribution::{FamilyKind, Law};
use crate::error::{Error, Result};
use crate::estimate::layers::{sum_of, to_rows};
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, has, numbers, read};
use crate::estimate::{
    Estimator, LayerState, LearnedBaseline, Network, NoiseSource, Outcome, Pass, Price, Stacked,
    StateShape,
};
use crate::ops::{leaf_like, on_the_side};

/// The coefficients of MuProp's expansion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MupropCoefficients {
    /// Both 1.
    #[default]
    Unit,
    /// Learned from 1 on.
    Learned,
}

method! {
    /// REINFORCE on what the expansion of the cost about the mean leaves, and the gradient of the
    /// mean for the expansion itself.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i (f(z_i) - η_0 f(m) - η_1 ∇f(m) · (z_i - m) - β) ∇ log q(z_i) +
    ///   η_1 (∂m/∂φ)ᵀ ∇f(m)`, where `m` is the mean and `β` the baseline. With several layers `m`
    ///   comes from a mean-field pass: each layer's mean given the means below, and `∇f(m)` is the total
    ///   derivative through the layers above; `∂m / ∂φ` is that of the layer's law given the
    ///   samples below.
    /// * **Requires** the values of the cost and its gradient at the mean. `coefficients=learned`
    ///   and `baseline=learned` have [`State`](crate::estimator::State); the surrogate contains the
    ///   mean square of the factor of the score for it, with everything else stopped.
    /// * **Bias**: none, whatever the state is. With unit coefficients and without a baseline the
    ///   variance on a linear cost of one layer is zero.
    /// * **Note**: the coefficients are those of the authors of REBAR in their comparison, here
    ///   without a sigmoid.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let rates = Tensor::<2>::from_floats([[5.0, 0.5]], &Device::flex());
    /// let q = Poisson::from_rates(rates)?;
    /// let gradient = Muprop::default().gradient(Key::new(1), &q, |z| {
    ///     z.sum_dim(2) * 2.0
    /// })?;
    /// // One draw is exact on a linear cost: 2 d rate / d log rate.
    /// let gradient = gradient.into_data().try_to_vec::<f32>().unwrap();
    /// assert!((gradient[0] - 10.0).abs() < 1e-4 && (gradient[1] - 1.0).abs() < 1e-4);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Muprop { attached: Attached }

    options MupropConfig {
        /// What else is subtracted from the cost: `none` or `learned` (a network on the
        /// conditioning input).
        baseline: LearnedBaseline = LearnedBaseline::None,
        /// The coefficients of the expansion (value and slope): `unit`, or `learned` starting from 1.
        coefficients: MupropCoefficients = MupropCoefficients::Unit,
        /// The tanh units of the learned baseline.
        hidden: usize [1..] = 100,
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "muprop",
        name: "MuProp",
        families: FamilyKind::WITH_SCORE,
        bias: none,
        needs: [Value, Gradient],
        price: "(n + 1) f, 1 df",
        reference: "Gu, Levine, Sutskever, Mnih 2016, arXiv 1511.05176",
        layers: Own,
        learns: attached,
    }
}

/// The cost's expansion about the means, as constants.
#[derive(Clone, Debug)]
pub(super) struct Expansion {
    /// `f(m)`, `[1, batch]`.
    pub value: Tensor<2>,
    /// `df/dm` of one layer, `[1, batch, d, k]`.
    pub slope: Tensor<4>,
    /// `m` of that layer, `[1, batch, d, k]`.
    pub mean: Tensor<4>,
}

impl Muprop {
    fn learns(&self) -> bool {
        self.config.coefficients == MupropCoefficients::Learned
            || self.config.baseline == LearnedBaseline::Learned
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        let coefficients = self.config.coefficients == MupropCoefficients::Learned;
        if coefficients && !has(&state.coefficients, 2) {
            return Some("coefficients");
        }
        let baseline = self.config.baseline == LearnedBaseline::Learned;
        (baseline && state.baseline.is_none()).then_some("baseline network")
    }

    /// What one layer adds to the mean cost: a scalar on the tapes of its law and of its state.
    /// `values` `[n, batch]` are the costs of samples of which `z` `[n, batch, d, k]` are the
    /// layer's. The second law is that of the lowest layer, whose batch is that of the estimate.
    pub(super) fn layer(
        &self,
        layer: usize,
        [law, first]: [&Law; 2],
        z: Tensor<4>,
        values: Tensor<2>,
        expansion: &Expansion,
    ) -> Result<Tensor<1>> {
        let Expansion { value, slope, mean } = expansion.clone();
        let [n, batch] = values.dims();
        let natural = law.natural().inner();
        let learned = self.config.coefficients == MupropCoefficients::Learned;
        let state = self.attached.learned(&ENTRY, self.learns(), layer)?;
        let coefficients = match state.and_then(|state| state.coefficients.as_ref()) {
            Some(coefficients) if learned => read(coefficients, law)?,
            _ => Tensor::ones([2], (&natural.device(), natural.dtype())),
        };
        let [of_value, of_slope] = [0, 1].map(|i| coefficients.clone().narrow(0, i, 1));
        let linear = slope.clone() * (z.clone() - mean);
        let linear = linear.sum_dim(3).sum_dim(2).reshape([n, batch]);
        let mut signal =
            values - value * of_value.reshape([1, 1]) - linear * of_slope.clone().reshape([1, 1]);
        let network = state.and_then(|state| state.baseline.as_ref());
        if let Some(network) = network.filter(|_| self.config.baseline == LearnedBaseline::Learned)
        {
            let predicted = network.forward(self.attached.input.as_ref(), first)?;
            signal = signal - predicted.unsqueeze_dim(0);
        }
        // A layer that depends on others has a law for each draw: then draws are rows of its batch.
        let rows = law.dims()[0];
        let log_prob = law.log_prob(to_rows(z, rows)).reshape([n, batch]);
        let slope = to_rows(slope.repeat_dim(0, rows / batch), rows);
        let slope = slope * of_slope.inner().reshape([1, 1, 1, 1]);
        let pathwise = along(law, law.constant().chain(slope));
        let mut scalar = (log_prob * signal.clone().inner()).mean() + pathwise;
        if self.learns() {
            scalar = scalar + signal.square().mean();
        }
        Ok(scalar)
    }
}

impl Stacked for Muprop {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let pass = Pass::hard(self, noise, objective)?;
        let expansions = on_the_side(|| mean_field(&pass.laws[0], objective))?;
        let cost = objective.evaluate_layers(&pass.z, &pass.laws)?;
        let scalar = |(layer, expansion): (usize, &Expansion)| {
            let laws = [&pass.laws[layer], &pass.laws[0]];
            let values = cost.clone().inner();
            self.layer(layer, laws, pass.z[layer].clone(), values, expansion)
        };
        let total = sum_of(expansions.iter().enumerate().map(scalar))?;
        Ok(pass.outcome(cost, total))
    }
}

/// The expansions of the cost in each layer's samples about the means of a pass that takes the mean
/// of each layer given the means below. The slopes are total derivatives: the means above follow.
fn mean_field(first: &Law, objective: &CountedObjective) -> Result<Vec<Expansion>> {
    let mut means: Vec<Tensor<4>> = Vec::new();
    let mut shifts: Vec<Tensor<4>> = Vec::new();
    let mut laws: Vec<Law> = Vec::new();
    for layer in 0..objective.layers() {
        let law = match layer {
            0 => first.constant(),
            _ => objective.frozen_layer(&means)?,
        };
        let mean = law.mean().unsqueeze::<4>();
        // A leaf at zero, added to the mean, has the derivative with respect to the mean.
        let shift = leaf_like(mean.clone().inner().zeros_like(), &first.natural());
        means.push(mean + shift.clone());
        shifts.push(shift);
        laws.push(law);
    }
    let cost = objective.evaluate_frozen(&means, &laws)?;
    if !cost.is_tracked() {
        return Err(Error::NoGradient);
    }
    let grads = cost.clone().sum().backward();
    let expansion = |(mean, shift): (Tensor<4>, Tensor<4>)| Expansion {
        value: cost.clone().inner(),
        // A layer that the cost does not depend on has no slope.
        slope: shift.grad(&grads).unwrap_or_else(|| shift.inner()),
        mean: mean.inner(),
    };
    Ok(means.into_iter().zip(shifts).map(expansion).collect())
}

impl Estimator for Muprop {
    fn price(&self, _law: &Law, n: usize) -> Price {
        Price::new(n + 1, 1)
    }

    fn init_layer(&self, key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let coefficients = self.config.coefficients == MupropCoefficients::Learned;
        let baseline = self.config.baseline == LearnedBaseline::Learned;
        let (dtype, hidden) = (shape.dtype, self.config.hidden);
        self.learns().then(|| LayerState {
            coefficients: coefficients.then(|| numbers(&[1.0, 1.0], device, dtype)),
            baseline: baseline.then(|| Network::new(key, shape.features, hidden, device, dtype)),
            ..LayerState::default()
        })
    }
}
