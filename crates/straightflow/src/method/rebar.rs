//! The REBAR estimator.

use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::Key;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, has, numbers, read};
use crate::estimate::{
    Estimator, LayerState, LearnedBaseline, Network, NoiseSource, Outcome, Price, Stacked,
    StateShape,
};
use crate::relaxed_control::{
    Controlled, Relaxed, RelaxedCost, RelaxedPass, Rows, check_temperature, controlled, tiled,
};

/// What REBAR learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RebarTune {
    /// Nothing.
    None,
    /// The scale of the control variate.
    Eta,
    /// The scale and the temperature.
    #[default]
    All,
}

method! {
    /// REINFORCE, with the cost of the relaxed sample as a control variate and its gradient as the
    /// correction.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i [(f(b_i) - η f(s_i) - β) ∇ log q(b_i) +
    ///   η (1 - ∂z̃/∂φ)ᵀ J(s_i) ∇f(s_i)]`, where `z = φ + noise`, `b` is its hard and `s` its soft
    ///   sample at temperature `τ` with the Jacobian `J = ∂s / ∂z`, `z̃` is a variable with the law of `z` given `b`,
    ///   tied to `z` in value, and `β` is the baseline.
    /// * **Requires** values and gradients of the cost, also between the hard samples. What is
    ///   tuned is [`State`](crate::estimator::State); the surrogate contains the mean of `g²` over
    ///   all coordinates for it, with everything else stopped. `η` and `β` have exact gradients.
    ///   That of `log τ` takes a difference of two gradients of the cost, which may leave the unit
    ///   cube a little; `every` makes it rarer, by the step of
    ///   [`at_step`](crate::estimator::Described::at_step).
    /// * **Bias**: none, whatever the state is, if the cost is continuous between the hard samples,
    ///   and with several layers the parameters of each layer too. A cost with jumps there (a step,
    ///   a rounding) has no gradient that would correct its own score.
    /// * **Price**: two evaluations and one backward pass for each draw, and one of both more where
    ///   the temperature is tuned. (With independent noise for `z` and `z̃`, as some have it, the
    ///   estimate takes three and two.)
    /// * **Note**: tied noise, and the variance of the gradient with respect to the logits, as in
    ///   the code of RELAX. `η` is not squashed.
    ///
    /// Where the cost between the hard values is far from what it is at them, as `(z - 0.499)²` of
    /// a single bit, `η f(s)` cannot act as a baseline and gains nothing: add a baseline there, or
    /// use [`Relax`](super::Relax).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 1], &Device::flex()))?;
    /// let rebar = estimator("rebar:tune=none,samples=1000")?;
    /// let gradient = rebar.gradient(Key::new(1), &q, |z| z)?;
    /// // p (1 - p) (f(1) - f(0))
    /// assert!((gradient.into_scalar::<f32>() - 0.25).abs() < 0.02);
    /// # Ok::<(), Error>(())
    /// ```
    pub struct Rebar { step: u64, attached: Attached }

    options RebarConfig {
        /// What else is subtracted from the cost: `none` or `learned` (a network on the
        /// conditioning input).
        baseline: LearnedBaseline = LearnedBaseline::None,
        /// The scale of the control variate, at its start if it is tuned.
        eta: f64 [f64::MIN..=f64::MAX] = 1.0,
        /// The temperature is tuned once every this many steps.
        every: usize [1..] = 1,
        /// The tanh units of the learned baseline.
        hidden: usize [1..] = 100,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The temperature of the relaxation, at the start if it is tuned.
        temperature: f64 = 0.5,
        /// What is learned to lower the variance: `none`, `eta` or `all` (eta and temperature).
        tune: RebarTune = RebarTune::All,
    }

    facts {
        id: "rebar",
        name: "REBAR",
        families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
        bias: none on "continuous f",
        needs: [Value, Gradient],
        price: "2 n f, n df; n f, n df more where the temperature is tuned",
        reference: "Tucker, Mnih, Maddison, Lawson, Sohl-Dickstein 2017, arXiv 1703.07370",
        layers: Own,
        noise: Uniform,
        learns: attached,
        step: field,
        check: |config| check_temperature(&ENTRY, config.temperature),
    }
}

/// The numbers of one layer, on the tape of the state if they are learned.
struct Numbers {
    eta: Tensor<1>,
    log_temperature: Tensor<1>,
    baseline: Option<Tensor<1>>,
}

impl Rebar {
    fn learns(&self) -> bool {
        self.config.tune != RebarTune::None || self.config.baseline == LearnedBaseline::Learned
    }

    fn tunes_temperature(&self) -> bool {
        self.config.tune == RebarTune::All && self.step.is_multiple_of(self.config.every as u64)
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        let RebarConfig { tune, baseline, .. } = self.config;
        if tune != RebarTune::None && !has(&state.coefficients, 1) {
            return Some("coefficient");
        }
        if tune == RebarTune::All && !has(&state.log_temperature, 1) {
            return Some("temperature");
        }
        (baseline == LearnedBaseline::Learned && state.baseline.is_none())
            .then_some("baseline network")
    }

    fn numbers(&self, Rows { layer, draws }: Rows, law: &Law) -> Result<Numbers> {
        let state = self.attached.learned(&ENTRY, self.learns(), layer)?;
        let natural = law.natural().inner();
        let constant =
            |number: f64| Tensor::full([1], number, (&natural.device(), natural.dtype()));
        // A state may have parts that this configuration does not learn.
        let RebarConfig { tune, baseline, .. } = self.config;
        let part = |learned: bool| state.filter(|_| learned);
        let eta = part(tune != RebarTune::None).and_then(|state| state.coefficients.as_ref());
        let log_temperature =
            part(tune == RebarTune::All).and_then(|state| state.log_temperature.as_ref());
        let learned = baseline == LearnedBaseline::Learned;
        let network = part(learned).and_then(|state| state.baseline.as_ref());
        let input = self.attached.input.as_ref().map(|x| tiled(x, draws));
        Ok(Numbers {
            eta: match eta {
                Some(eta) => read(eta, law)?,
                None => constant(self.config.eta),
            },
            log_temperature: match log_temperature {
                Some(number) => read(number, law)?,
                None => constant(self.config.temperature.ln()),
            },
            baseline: match network {
                Some(network) => Some(network.forward(input.as_ref(), law)?),
                None => None,
            },
        })
    }

    /// What one layer adds to the mean cost: a scalar on the tapes of its law and of its state.
    /// `values` are the costs of the hard samples, `objective` is that of the relaxed ones.
    pub(super) fn layer(
        &self,
        rows: Rows,
        law: &Law,
        relaxed: &Relaxed,
        values: Tensor<2>,
        objective: &CountedObjective,
    ) -> Result<Tensor<1>> {
        let Numbers {
            eta,
            log_temperature,
            baseline,
        } = self.numbers(rows, law)?;
        let cost = RelaxedCost::new(law, relaxed, log_temperature.clone(), objective)?;
        let scaled = cost.scaled(eta.clone());
        let Controlled {
            model: mut scalar,
            variance,
        } = controlled(law, relaxed, values, scaled, baseline.clone());
        if let Some(baseline) = baseline {
            let slope = variance.value.clone().sum_dim(0).squeeze_dim(0);
            scalar = scalar + (baseline * slope).sum();
        }
        if self.config.tune != RebarTune::None {
            scalar = scalar + (eta.clone() * cost.control.clone().dot(variance.clone())).sum();
        }
        if self.tunes_temperature() {
            scalar = scalar + cost.tuning(law, log_temperature, eta, &variance, objective)?;
        }
        Ok(scalar)
    }
}

impl Stacked for Rebar {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let drawn = RelaxedPass::new(self, noise, objective)?;
        let laws = &drawn.pass.laws;
        let temperature = |layer| {
            let numbers = self.numbers(drawn.rows(layer), &laws[layer])?;
            Ok(numbers.log_temperature)
        };
        let temperatures: Result<Vec<_>> = (0..laws.len()).map(temperature).collect();
        let cost = objective.evaluate_layers(&drawn.pass.z, laws)?;
        let rule = |layer: usize, _: &[_], values, objective: &CountedObjective| {
            let (law, relaxed) = (&laws[layer], &drawn.relaxed[layer]);
            self.layer(drawn.rows(layer), law, relaxed, values, objective)
        };
        let scalar = drawn.sum_layers(objective, &cost, &temperatures?, rule)?;
        Ok(drawn.pass.outcome(cost, scalar))
    }
}

impl Estimator for Rebar {
    fn price(&self, _law: &Law, n: usize) -> Price {
        let tuning = if self.tunes_temperature() { n } else { 0 };
        Price::new(2 * n + tuning, n + tuning)
    }

    fn init_layer(&self, key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let config = &self.config;
        let number = |x: f64| numbers(&[x], device, shape.dtype);
        let network = || Network::new(key, shape.features, config.hidden, device, shape.dtype);
        self.learns().then(|| LayerState {
            coefficients: (config.tune != RebarTune::None).then(|| number(config.eta)),
            log_temperature: (config.tune == RebarTune::All)
                .then(|| number(config.temperature.ln())),
            baseline: (config.baseline == LearnedBaseline::Learned).then(network),
            ..LayerState::default()
        })
    }
}
