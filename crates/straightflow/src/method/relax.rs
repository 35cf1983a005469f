//! The RELAX estimator.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::Key;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::layers::to_rows;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, has, numbers, part, read};
use crate::estimate::{
    ControlNetwork, Estimator, LayerState, NoiseSource, Outcome, Price, Stacked, StateShape,
};
use crate::relaxed_control::{
    ControlVariate, Controlled, Relaxed, RelaxedCost, RelaxedPass, Rows, check_temperature,
    controlled, tiled,
};

/// The control variate of RELAX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelaxControl {
    /// A learned function of the relaxed sample, for a cost of which only values are known.
    #[default]
    Network,
    /// The same plus the cost of the relaxed sample.
    Sum,
}

method! {
    /// REINFORCE, with a learned function of the relaxed sample as a control variate and its
    /// gradient as the correction.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i [(f(b_i) - c(z_i)) ∇ log q(b_i) + (1 - ∂z̃/∂φ)ᵀ ∇c(z_i)]`, where
    ///   `z = φ + noise`, `b` is its hard sample and `z̃` a variable with the law of `z` given `b`,
    ///   tied to `z` in value. `control=network`: `c` is a network of `z`, of the conditioning
    ///   input and, with layers below, of the hard samples below. `control=sum`: `c` plus `η f(s)`
    ///   as in [`Rebar`](super::Rebar).
    /// * **Requires** the values of the cost (`sum`: and its gradients, also between the hard
    ///   samples) and [`State`](crate::estimator::State); the surrogate contains the mean of `g²`
    ///   over all coordinates for it, with everything else stopped. The gradient of the network's
    ///   weights is exact: `∇c` is written as a forward expression.
    /// * **Bias**: none, whatever the state is (`sum`: if the cost, and with several layers each
    ///   layer's parameters, are continuous between the hard samples).
    /// * **Price**: one evaluation for each draw; `sum` as [`Rebar`](super::Rebar).
    /// * **Note**: `sum` is the control variate of the paper's VAE experiments. The network has one
    ///   layer of tanh units.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([1, 1], &device).require_grad();
    /// let q = Bernoulli::from_logits(logits.clone())?;
    /// let code = SamplerConfig::new("relax").init_for(Key::new(1), &q)?;
    /// let estimate = code.estimate(Key::new(2), &q, |z| (z - 0.499).square())?;
    /// assert!(logits.grad(&estimate.surrogate.backward()).is_some());
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Relax { step: u64, attached: Attached }

    options RelaxConfig {
        /// The control variate: `network` (a learned function of the relaxed sample) or `sum` (with
        /// REBAR's relaxed cost added, which needs df).
        control: RelaxControl = RelaxControl::Network,
        /// `sum`: the scale of the relaxed cost at the start.
        eta: f64 [f64::MIN..=f64::MAX] = 1.0,
        /// `sum`: the temperature is tuned once every this many steps.
        every: usize [1..] = 1,
        /// The tanh units of the network.
        hidden: usize [1..] = 100,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// `sum`: the temperature of the relaxation at the start.
        temperature: f64 = 0.5,
    }

    facts {
        id: "relax",
        name: "RELAX",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: none,
        needs: [Value],
        price: "n f; with `control=sum`, 3 n f and 2 n df (2 n f and n df if the temperature is not tuned)",
        reference: "Grathwohl, Choi, Wu, Roeder, Duvenaud 2018, arXiv 1711.00123",
        layers: Own,
        noise: Uniform,
        learns: attached,
        step: field,
        check: |config| check_temperature(&ENTRY, config.temperature),
    }
}

impl Relax {
    fn tunes_temperature(&self) -> bool {
        let due = self.step.is_multiple_of(self.config.every as u64);
        self.config.control == RelaxControl::Sum && due
    }

    fn learns(&self) -> bool {
        true
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        if state.control.is_none() {
            return Some("control network");
        }
        let sum = self.config.control == RelaxControl::Sum;
        if sum && !has(&state.coefficients, 1) {
            return Some("coefficient");
        }
        (sum && !has(&state.log_temperature, 1)).then_some("temperature")
    }

    /// What one layer adds to the mean cost: a scalar on the tapes of its law and of its state.
    /// `values` are the costs of the hard samples, `objective` is that of the relaxed ones, `below`
    /// are the hard samples `[n, batch, ..]` of the layers below.
    pub(super) fn layer(
        &self,
        Rows { layer, draws }: Rows,
        law: &Law,
        relaxed: &Relaxed,
        values: Tensor<2>,
        below: &[Tensor<4>],
        objective: &CountedObjective,
    ) -> Result<Tensor<1>> {
        let state = self.attached.layer(&ENTRY, layer)?;
        let network = part(&state.control);
        let input = self.attached.input.as_ref().map(|x| tiled(x, draws));
        let z = relaxed.z.clone();
        let (value, gradient) = network.value_and_gradient(z, input.as_ref(), below, law)?;
        let own = ControlVariate { value, gradient };
        if self.config.control == RelaxControl::Network {
            let controlled = controlled(law, relaxed, values, own.clone(), None);
            return Ok(controlled.model + own.dot(controlled.variance));
        }
        let eta = read(part(&state.coefficients), law)?;
        let log_temperature = read(part(&state.log_temperature), law)?;
        let cost = RelaxedCost::new(law, relaxed, log_temperature.clone(), objective)?;
        let scaled = cost.scaled(eta.clone());
        let control = ControlVariate {
            value: scaled.value + own.value.clone().inner(),
            gradient: scaled.gradient + own.gradient.clone().inner(),
        };
        let Controlled { model, variance } = controlled(law, relaxed, values, control, None);
        let by_scale = cost.control.clone().dot(variance.clone());
        let mut scalar = model + (eta.clone() * by_scale).sum() + own.dot(variance.clone());
        if self.tunes_temperature() {
            scalar = scalar + cost.tuning(law, log_temperature, eta, &variance, objective)?;
        }
        Ok(scalar)
    }
}

impl Stacked for Relax {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let drawn = RelaxedPass::new(self, noise, objective)?;
        let laws = &drawn.pass.laws;
        let temperature = |(layer, law): (usize, &Law)| {
            let state = self.attached.layer(&ENTRY, layer)?;
            let natural = law.natural().inner();
            let zero = || Tensor::zeros([1], (&natural.device(), natural.dtype()));
            let learned = state.log_temperature.as_ref();
            learned.map_or_else(|| Ok(zero()), |number| read(number, law))
        };
        let temperatures: Result<Vec<_>> = laws.iter().enumerate().map(temperature).collect();
        let cost = objective.evaluate_layers(&drawn.pass.z, laws)?;
        let rule = |layer: usize, below: &[Tensor<4>], values, objective: &CountedObjective| {
            let relaxed = &drawn.relaxed[layer];
            let rows = laws[layer].dims()[0];
            let below: Vec<_> = below.iter().map(|z| to_rows(z.clone(), rows)).collect();
            let (law, rows) = (&laws[layer], drawn.rows(layer));
            self.layer(rows, law, relaxed, values, &below, objective)
        };
        let scalar = drawn.sum_layers(objective, &cost, &temperatures?, rule)?;
        Ok(drawn.pass.outcome(cost, scalar))
    }
}

impl Estimator for Relax {
    fn price(&self, _law: &Law, n: usize) -> Price {
        let [relaxed, tuning] = match self.config.control {
            RelaxControl::Network => [0, 0],
            RelaxControl::Sum if self.tunes_temperature() => [n, n],
            RelaxControl::Sum => [n, 0],
        };
        Price::new(n + relaxed + tuning, relaxed + tuning)
    }

    fn init_layer(&self, key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let config = &self.config;
        let sum = config.control == RelaxControl::Sum;
        let number = |x: f64| sum.then(|| numbers(&[x], device, shape.dtype));
        Some(LayerState {
            control: Some(ControlNetwork::new(key, shape, config.hidden, device)),
            coefficients: number(config.eta),
            log_temperature: number(config.temperature.ln()),
            ..LayerState::default()
        })
    }
}
