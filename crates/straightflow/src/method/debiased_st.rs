//! Debiased straight-through: straight-through, corrected along random moves of its samples.

mod choice;
mod layer;
mod layers;
mod memory;

use std::sync::Arc;

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use self::layer::{Layer, Seen, watched, with_base};
use self::memory::MovesLesson;
use crate::Key;
use crate::antithetic::along;
use crate::distribution::{FamilyKind, Law};
use crate::error::Result;
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::{Attached, LayerState, Lesson, RunningMeans};
use crate::estimate::{Estimator, Noise, NoiseSpec, Outcome, Preset, Price, StateShape};
use crate::ops::gradient_only;

/// What [`DebiasedSt`] corrects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebiasedBase {
    /// [`StraightThrough`](super::StraightThrough); for the negative binomial law with the weight
    /// `m (r + z) / (r + m)` in place of its mean `m`.
    #[default]
    StraightThrough,
    /// [`SecondOrderSt`](super::SecondOrderSt).
    SecondOrderSt,
    /// Nothing: only differences are left.
    None,
}

/// What the probability is proportional to with which a move is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChoiceBy {
    /// The weight of the move: for a bit its variance.
    Variance,
    /// Nine parts the weight times the root mean square of the correction so far, one part the
    /// weight.
    #[default]
    Learned,
    /// Nothing.
    Uniform,
}

/// Whether the base's usual error is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebiasedCurvature {
    /// It is taken for zero.
    Off,
    /// It is a running mean.
    #[default]
    Learned,
}

impl DebiasedCurvature {
    fn is_learned(self) -> bool {
        self == Self::Learned
    }
}

/// The factor of the base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DebiasedScale {
    /// It is 1.
    #[default]
    One,
    /// It is the one with the lowest variance so far.
    Learned,
}

impl DebiasedScale {
    fn is_learned(self) -> bool {
        self == Self::Learned
    }
}

method! {
    /// Straight-through, made exact: one coordinate at a time, at random, its slope is replaced by
    /// the difference of two costs, and the change is divided by the probability of choosing it.
    ///
    /// * **Estimates** `d/d natural E f(z)`.
    /// * **With** `(1/n) Σ_i [b(z_i) + Σ_{j chosen} (v_j/π_j) (Δ_j f(z_i) - ∂_j f(z_i) - h_j)
    ///   e_j]`, where `b_j = v_j (∂_j f + h_j)` is straight-through with a curvature `h`, `π_j` the
    ///   probability of choosing coordinate `j`, and `Δ_j f` the slope of the cost along a unit
    ///   move:
    ///
    ///   | family | `v` | `Δf` |
    ///   |---|---|---|
    ///   | Bernoulli | `p(1-p)` | `(1 - 2z)(f(1 - z) - f(z))` |
    ///   | Binomial | `N p (1-p)` | `s (f(z + s) - f(z))`, `s = -1` with probability `z / N`, else 1 |
    ///   | Poisson | `λ` | `f(z+1) - f(z)` |
    ///   | Negative binomial | `m (r + z) / (r + m)` | `f(z+1) - f(z)` |
    ///   | Categorical | `p_j (1 - p_j)` for each category `j` but that of `z` | `f(e_j) - f(z)`, against `∂_j f - ∇f · z` |
    ///   | Subset | `m_i (1 - m_i)` for each item `i` | `(1 - 2 z_i)(f(z') - f(z))`, where `z'` has item `i` exchanged as in [`FiniteDifference`](super::FiniteDifference), against `(J ∇f)_i / v_i` |
    ///
    ///   `choice=variance` has `π ∝ v`, so that `v / π` is the sum of all `v`. `choice=learned`
    ///   multiplies by the root mean square of the bracket so far, and keeps a tenth of the former,
    ///   so that `v / π` is at most ten times that sum. Several `flips` are drawn by systematic
    ///   sampling, with probabilities of at most 1; as many as there are moves give
    ///   [`FiniteDifference`](super::FiniteDifference), and `base=none` with one gives bitflip-1.
    /// * **Requires** the value of the cost, and its gradient for a base. What is learned is
    ///   [`State`](crate::estimator::State), by [`State::update`](crate::estimator::State::update)
    ///   alone; no optimiser is involved. The preset `stateless` learns nothing.
    /// * **Bias**: none, whatever the state is and whatever the cost's gradient is. Every draw is
    ///   used before it is learned from.
    /// * **Price**: the moved draws are evaluated without gradients, in one call.
    /// * **Variance**: that of all finite differences together, plus `Σ_j (1/π_j - 1) E r_j²` with
    ///   the residuals `r = v (Δf - ∂f - h)`: only the curvature along a coordinate itself is
    ///   multiplied by the number of coordinates.
    /// * **Note**: `docs/debiased-straight-through.md` has the derivation and the evidence. Related
    ///   are local expectation gradients (Titsias and Lazaro-Gredilla 2015) and
    ///   [`DoubleCv`](super::DoubleCv).
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use straightflow::prelude::*;
    ///
    /// let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 2], &Device::flex()))?;
    /// let estimator = estimator("debiased-st:preset=stateless,samples=1000")?;
    /// // Not linear: straight-through would give a mean of 0.5 for both coordinates.
    /// let gradient = estimator.gradient(Key::new(1), &q, |z| {
    ///     z.powf_scalar(4.0).sum_dim(2)
    /// })?;
    /// let gradient = gradient.into_data().try_to_vec::<f32>().unwrap();
    /// assert!(gradient.iter().all(|g| (g - 0.25).abs() < 0.06));
    /// # Ok::<(), Error>(())
    /// ```
    pub struct DebiasedSt { attached: Attached }

    options DebiasedStConfig {
        /// What is corrected: `straight-through`, `second-order-st` or `none`.
        base: DebiasedBase = DebiasedBase::default(),
        /// What the probability of a move is proportional to: `variance`, `learned` (the variance
        /// times the usual size of the correction) or `uniform`.
        choice: ChoiceBy = ChoiceBy::default(),
        /// `learned`: the base's usual error along each move is part of the base; or `off`.
        curvature: DebiasedCurvature = DebiasedCurvature::default(),
        /// The number of moves of each draw along which it is corrected.
        flips: usize [1..] = 1,
        /// The weight of the newest observation in the running means.
        rate: f64 [f64::MIN_POSITIVE..1.0] = 0.05,
        /// The number of draws n of one estimate.
        samples: usize = 1,
        /// The factor of the base: `one`, or `learned` to lower the variance.
        scale: DebiasedScale = DebiasedScale::default(),
    }

    facts {
        id: "debiased-st",
        name: "Debiased straight-through",
        families: FamilyKind::WITH_SCORE,
        bias: none,
        needs: [Value, Gradient],
        price: "n (1 + flips) f, n df",
        reference: "this library, docs/debiased-straight-through.md; without a base it is \
                    bitflip-1, arXiv 2208.06124",
        layers: Own,
        learns: attached,
        presets: &[
            Preset {
                name: "stateless",
                about: "nothing is learned",
                options: &[("choice", "variance"), ("curvature", "off")],
            },
            Preset {
                name: "bitflip",
                about: "bitflip-1: differences alone, without a base",
                options: &[
                    ("base", "none"),
                    ("choice", "variance"),
                    ("curvature", "off"),
                ],
            },
        ],
        check: |config| match config.base {
            DebiasedBase::None if config.scale.is_learned() => {
                Err(ENTRY.invalid("`scale=learned` needs a base"))
            }
            _ => Ok(()),
        },
    }
}

impl DebiasedSt {
    fn learns(&self) -> bool {
        let DebiasedStConfig {
            choice,
            curvature,
            scale,
            ..
        } = self.config;
        choice == ChoiceBy::Learned || curvature.is_learned() || scale.is_learned()
    }

    /// The first part that a state lacks.
    fn lacks(&self, state: &LayerState) -> Option<&'static str> {
        let learned = self.config.choice == ChoiceBy::Learned;
        let (curvature, scale) = (self.config.curvature, self.config.scale);
        let parts = [
            (
                curvature.is_learned() && state.curvature.is_none(),
                "curvature",
            ),
            (learned && state.residual.is_none(), "residual"),
            (scale.is_learned() && state.scale.is_none(), "scale"),
        ];
        let lacking = parts.into_iter().find(|(lacking, _)| *lacking);
        lacking.map(|(_, part)| part)
    }

    /// The moves of each draw that are evaluated.
    fn flips(&self, law: &Law) -> usize {
        let [_, d, k] = law.dims();
        self.config.flips.min(d * k)
    }
}

/// What a choice of moves consumes besides the draws.
fn choice_noise(law: &Law, n: usize) -> Vec<NoiseSpec> {
    let [_, batch, d, _] = law.sample_dims(n);
    let choice = NoiseSpec::uniform("choice", [n, batch, 1, 1]);
    match law.family().takes_side() {
        true => vec![choice, NoiseSpec::uniform("side", [n, batch, d, 1])],
        false => vec![choice],
    }
}

impl Estimator for DebiasedSt {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let mut noise = vec![NoiseSpec::samples(law, n)];
        noise.extend(choice_noise(law, n));
        noise
    }

    fn price(&self, law: &Law, n: usize) -> Price {
        let gradients = match self.config.base {
            DebiasedBase::None => 0,
            DebiasedBase::StraightThrough | DebiasedBase::SecondOrderSt => n,
        };
        Price::new(n * (1 + self.flips(law)), gradients)
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let z = noise.get(0);
        let [n, batch, ..] = z.dims();
        let side = (noise.len() > 2).then(|| noise.get(2));
        let state = self.attached.learned(&ENTRY, self.learns(), 0)?;
        let layer = Layer::new(&self.config, state, law, z.clone(), noise.get(1), side)?;
        let (layer, seen) = (Arc::new(layer), Arc::new(Seen::default()));
        let on_tape = with_base(law.natural(), &layer, &seen, false);
        let cost = objective.evaluate_attached(&[on_tape], std::slice::from_ref(law))?;
        let values = cost.clone().inner();
        let moved = objective.value(layer.moved(), law)?;
        let repeats = moved.dims()[0] / n;
        let slopes = layer.slopes(moved - values.clone().repeat_dim(0, repeats));
        let differences = along(law, layer.differences_tensor(&slopes));
        let lesson = self.learns().then(|| {
            Lesson::new(MovesLesson {
                layer,
                seen: seen.clone(),
                slopes,
                elements: n * batch,
            })
        });
        Ok(Outcome {
            surrogate: cost.mean() + gradient_only(watched(differences, &seen)),
            values,
            samples: vec![z],
            lessons: lesson.into_iter().collect(),
        })
    }

    fn init_layer(&self, _key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let StateShape { d, k, dtype, .. } = shape;
        let DebiasedStConfig {
            choice,
            curvature,
            rate,
            scale,
            ..
        } = self.config;
        let means = |shape| RunningMeans::new(shape, rate, device, dtype);
        // An ordered variable is below or above its mean.
        let cells = [d, k.max(2), k];
        self.learns().then(|| LayerState {
            curvature: curvature.is_learned().then(|| means(cells)),
            residual: (choice == ChoiceBy::Learned).then(|| means(cells)),
            scale: scale.is_learned().then(|| means([1, 1, 1])),
            ..LayerState::default()
        })
    }
}
