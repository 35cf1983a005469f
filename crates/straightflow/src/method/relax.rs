//! The RELAX estimator.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::Key;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::layers::to_rows;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, has, numbers, read};
use crate::estimate::{
    ControlNetwork, Estimator, LayerState, NoiseSource, Outcome, Price, Stacked, StateShape,
};
use crate::relaxed_control::{
    ControlVariate, Relaxed, RelaxedCost, RelaxedPass, Rows, check_temperature, controlled, tiled,
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
    ///   samples) and [`State`](crate::estimator::State): make it with
    ///   [`init_state`](Estimator::init_state), attach it with
    ///   [`bind`](crate::estimator::Described::bind), and optimise it by the same surrogate, which
    ///   contains the mean of `g²` over all coordinates with everything else stopped. The gradient
    ///   of the network's weights is exact: `∇c` is written as a forward expression.
    /// * **Bias**: none, whatever the state is (`sum`: if the cost, and with several layers each
    ///   layer's parameters, are continuous between the hard samples).
    /// * **Price**: one evaluation for each draw; `sum` as [`Rebar`](super::Rebar).
    /// * **Note**: `sum` is the control variate of the paper's VAE experiments. The network has one
    ///   layer of tanh units.
    ///
    /// ```
    /// use burn::optim::{AdamConfig, GradientsParams};
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex().autodiff();
    /// let logits = Tensor::<2>::zeros([1, 1], &device).require_grad();
    /// let relax = Relax::default();
    /// let shape = StateShape { features: 0, below: 0, d: 1, k: 1, dtype: logits.dtype() };
    /// let mut state = relax.init_state(Key::new(1), shape, &device).expect("it learns");
    /// let mut optimiser = AdamConfig::new().init();
    /// for step in 0..3 {
    ///     let q = Bernoulli::from_logits(logits.clone())?; // a tape serves one backward pass
    ///     let bound = relax.bind(&state, None)?;
    ///     let estimate = bound.estimate(Key::new(2).child(step), &q, |z| {
    ///         (z - 0.499).square()
    ///     })?;
    ///     let mut grads = estimate.surrogate.backward();
    ///     let own = GradientsParams::from_module(&mut grads, &state);
    ///     state = optimiser.step(1e-2, state, own);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Relax { step: u64, attached: Attached }

    options RelaxConfig {
        /// The control variate: `network` (a learned function of the relaxed sample) or `sum` (with
        /// REBAR's relaxed cost added, which needs df).
        control: RelaxControl = RelaxControl::Network,
        /// `sum`: the scale of the relaxed cost at the start.
        eta: f64 [f64::MIN..=f64::MAX] = 1.0,
        /// `sum`: the temperature is tuned at the steps that this divides.
        every: usize [1..] = 1,
        /// The tanh units of the network.
        hidden: usize [1..] = 100,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// `sum`: of the relaxation at the start.
        temperature: f64 = 0.5,
    }

    facts {
        id: "relax",
        name: "RELAX",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: none,
        needs: [Value],
        price: "n f; `control=sum`: 4 n f, 3 n df, or half of the f and a third of the df where \
                the temperature is not tuned",
        reference: "Grathwohl, Choi, Wu, Roeder, Duvenaud 2018, arXiv 1711.00123",
        layers: Own,
        noise: Uniform,
        learns: attached,
        step: field,
        check: |config| check_temperature(&ENTRY, config.temperature),
    }
}

/// Why a part of an attached state is there.
const LOOKED_FOR: &str = "`bind` refuses a state without it";

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
        let network = state.control.as_ref().expect(LOOKED_FOR);
        let input = self.attached.input.as_ref().map(|x| tiled(x, draws));
        let z = relaxed.z.clone();
        let (value, gradient) = network.value_and_gradient(z, input.as_ref(), below, law)?;
        if self.config.control == RelaxControl::Network {
            let control = ControlVariate { value, gradient };
            let controlled = controlled(law, relaxed, values, control, None);
            return Ok(controlled.model + controlled.variance);
        }
        let eta = read(state.coefficients.as_ref().expect(LOOKED_FOR), law)?;
        let log_temperature = read(state.log_temperature.as_ref().expect(LOOKED_FOR), law)?;
        let cost = RelaxedCost::new(law, relaxed, log_temperature.clone(), objective)?;
        let scaled = cost.scaled(eta.clone());
        let control = ControlVariate {
            value: scaled.value + value,
            gradient: scaled.gradient + gradient,
        };
        let controlled = controlled(law, relaxed, values, control, None);
        let mut scalar = controlled.model + controlled.variance;
        if self.tunes_temperature() {
            let gradient = controlled.gradient;
            scalar =
                scalar + cost.tuning(law, relaxed, log_temperature, eta, gradient, objective)?;
        }
        Ok(scalar)
    }
}

impl Stacked for Relax {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let drawn = RelaxedPass::new(self, noise, objective)?;
        let laws = &drawn.pass.laws;
        let temperature = |(layer, law): (usize, &Law)| match &self
            .attached
            .layer(&ENTRY, layer)?
            .log_temperature
        {
            Some(number) => read(number, law),
            None => Ok(law
                .natural()
                .inner()
                .zeros_like()
                .slice([0..1, 0..1, 0..1])
                .reshape([1])),
        };
        let temperatures: Result<Vec<_>> = laws.iter().enumerate().map(temperature).collect();
        let cost = objective.evaluate_layers(&drawn.pass.z, laws)?;
        let rule = |layer: usize, below: &[Tensor<4>], values, objective: &CountedObjective| {
            let relaxed = &drawn.relaxed[layer];
            let rows = laws[layer].dims()[0];
            let below: Vec<_> = below.iter().map(|z| to_rows(z.clone(), rows)).collect();
            self.layer(
                drawn.rows(layer),
                &laws[layer],
                relaxed,
                values,
                &below,
                objective,
            )
        };
        let scalar = drawn.sum_layers(objective, &cost, &temperatures?, rule)?;
        Ok(drawn.pass.outcome(cost, scalar))
    }
}

impl Estimator for Relax {
    fn price(&self, _law: &Law, n: usize) -> Price {
        let [relaxed, tuning] = match self.config.control {
            RelaxControl::Network => [0, 0],
            RelaxControl::Sum if self.tunes_temperature() => [n, 2 * n],
            RelaxControl::Sum => [n, 0],
        };
        Price {
            evaluations: n + relaxed + tuning,
            gradients: relaxed + tuning,
        }
    }

    fn init_layer(&self, key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let RelaxConfig {
            eta,
            temperature,
            hidden,
            control,
            ..
        } = self.config;
        let sum = control == RelaxControl::Sum;
        let dtype = shape.dtype;
        Some(LayerState {
            control: Some(ControlNetwork::new(key, shape, hidden, device)),
            coefficients: sum.then(|| numbers(&[eta], device, dtype)),
            log_temperature: sum.then(|| numbers(&[temperature.ln()], device, dtype)),
            ..LayerState::default()
        })
    }
}
