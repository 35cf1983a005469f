//! One layer of variables: a base on the tape, its correction along the chosen moves, and what both
//! teach the state.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Tensor, activation::softmax};

use super::choice::{Choice, Preference, choose};
use super::{ChoiceBy, DebiasedBase, DebiasedStConfig, ENTRY};
use crate::distribution::{Family, Law, Moves, repeat_to};
use crate::error::{Error, Result};
use crate::estimator::second_order_st::weighted;
use crate::estimator::state::{LayerState, RunningMeans, Teach};
use crate::ops::Rule;

/// The least root mean square of a residual, so that a choice by it is defined where all are zero.
const LEAST_RESIDUAL: f64 = 1e-12;
/// The largest factor of the base that is learned.
const LARGEST_SCALE: f64 = 2.0;

/// The draws of a layer and the moves that were chosen for them, all constant.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    base: DebiasedBase,
    moves: Moves,
    choice: Choice,
    /// The weight of each move over that which it is chosen by, at most 1; `None` if they are equal.
    share: Option<Tensor<4>>,
    /// The cell of the state that each draw is in, one-hot: `cells` tensors `[n, batch, d, 1]`.
    cells: Vec<Tensor<4>>,
    /// The expected sign of a step, by which a curvature counts; `None` if it is 1.
    sign: Option<Tensor<4>>,
    /// What is added to the predicted slope of each move.
    curvature: Option<Tensor<4>>,
    /// The factor of the base, `[1, 1, 1, 1]`; `None` if it is 1.
    scale: Option<Tensor<4>>,
}

impl Layer {
    /// Chooses moves from draws `z` with uniform numbers `[n, batch, 1, 1]`. A binomial law takes
    /// more of them, `side` `[n, batch, d, 1]`.
    pub fn new(
        config: &DebiasedStConfig,
        state: Option<&LayerState>,
        law: &Law,
        z: Tensor<4>,
        uniform: Tensor<4>,
        side: Option<Tensor<4>>,
    ) -> Result<Self> {
        let moves = Moves::new(law, z.clone(), side);
        let (chosen_by, share) = selection(config.base, &moves);
        let cells = cells(&moves);
        let sign = match law.family() {
            Family::Binomial { trials } => Some(z.clone() * (-2.0 / f64::from(trials)) + 1.0),
            _ => None,
        };
        let part = |part: fn(&LayerState) -> &Option<RunningMeans>| -> Result<&RunningMeans> {
            let means = state.and_then(|state| part(state).as_ref());
            let means = means.ok_or(Error::MissingState {
                estimator: ENTRY.id,
            })?;
            means.fits(law)?;
            Ok(means)
        };
        let curvature = match config.curvature.is_learned() {
            true => {
                let means = part(|state| &state.curvature)?;
                let zero = means.parts()[0].zeros_like();
                let table = in_cells(means.means(zero), &cells);
                Some(match law.family() {
                    // There is no move to the category of the draw.
                    Family::Categorical => table * (-z.clone() + 1.0),
                    _ => match &sign {
                        Some(sign) => table * sign.clone(),
                        None => table,
                    },
                })
            }
            false => None,
        };
        let preference = match config.choice {
            ChoiceBy::Variance => Preference::Weight,
            ChoiceBy::Uniform => Preference::Equal,
            ChoiceBy::Learned => {
                let squares = mean_squares(part(|state| &state.residual)?);
                let rms = squares.sqrt().clamp_min(LEAST_RESIDUAL);
                Preference::WeightTimes(Box::new(in_cells(rms, &cells)))
            }
        };
        let scale = match config.scale.is_learned() {
            true => Some(ratio(part(|state| &state.scale)?)),
            false => None,
        };
        Ok(Self {
            base: config.base,
            choice: choose(chosen_by, preference, uniform, config.flips),
            moves,
            share,
            cells,
            sign,
            curvature,
            scale,
        })
    }

    /// The samples after the chosen moves, `[m n, batch, d, k]`.
    pub fn moved(&self) -> Tensor<4> {
        self.moves.apply(self.choice.marks.clone())
    }

    /// The slopes of the chosen moves, from `f(moved) - f(z)` `[m n, batch]`; zero elsewhere.
    pub fn slopes(&self, rise: Tensor<2>) -> Tensor<4> {
        self.moves.slope(rise, &self.choice.marks)
    }

    /// The part of the estimate that is not the base's, `[n, batch, d, k]`: differences along the
    /// chosen moves, and the curvature with its own correction.
    pub fn differences(&self, slopes: Tensor<4>) -> Tensor<4> {
        let marks = &self.choice.marks;
        let slopes = match &self.curvature {
            Some(curvature) => slopes - repeat_to(curvature, marks),
            None => slopes,
        };
        let chosen = self.shared(slopes) * self.choice.factor.clone();
        let chosen = self.per_draw(self.moves.along(chosen, marks));
        match &self.curvature {
            Some(curvature) => chosen + self.moves.weighted_sum(curvature.clone()),
            None => chosen,
        }
    }

    /// The base for a gradient `df/dz`, `[n, batch, d, k]`.
    pub fn base(&self, gradient: Tensor<4>) -> Tensor<4> {
        let base = match self.base {
            DebiasedBase::None => return gradient.zeros_like(),
            DebiasedBase::StraightThrough => self
                .moves
                .weighted_sum(self.moves.predicted_slope(gradient)),
            DebiasedBase::SecondOrderSt => {
                weighted(self.moves.law(), self.moves.samples(), gradient)
            }
        };
        self.scaled(base)
    }

    /// The base along the chosen moves, each over its probability: its mean is the base.
    pub fn base_at_chosen(&self, gradient: Tensor<4>) -> Tensor<4> {
        let marks = &self.choice.marks;
        let x = repeat_to(&self.predicted(gradient), marks) * self.choice.factor.clone();
        let categorical = self.moves.law().family() == Family::Categorical;
        let along = match self.base {
            // e_j - z, of which the rule is the mean over j.
            DebiasedBase::SecondOrderSt if categorical => {
                x.clone() - repeat_to(&self.moves.samples(), marks) * x.sum_dim(3)
            }
            _ => self.moves.along(x, marks),
        };
        self.per_draw(self.scaled(along))
    }

    /// What the base says of the slope of each move, before its scale, in units of what the move is
    /// chosen by.
    fn predicted(&self, gradient: Tensor<4>) -> Tensor<4> {
        let slope = self.moves.predicted_slope(gradient);
        match self.base {
            DebiasedBase::None => slope.zeros_like(),
            DebiasedBase::StraightThrough => slope,
            DebiasedBase::SecondOrderSt => slope * 0.5,
        }
    }

    fn scaled(&self, base: Tensor<4>) -> Tensor<4> {
        match &self.scale {
            Some(scale) => base * scale.clone(),
            None => base,
        }
    }

    fn shared(&self, slopes: Tensor<4>) -> Tensor<4> {
        match &self.share {
            Some(share) => slopes * repeat_to(share, &self.choice.marks),
            None => slopes,
        }
    }

    /// The sum over the moves of each draw.
    fn per_draw(&self, x: Tensor<4>) -> Tensor<4> {
        let n = self.moves.samples().dims()[0];
        let [rows, batch, d, k] = x.dims();
        match rows == n {
            true => x,
            false => x
                .reshape([rows / n, n, batch, d, k])
                .sum_dim(0)
                .squeeze_dim(0),
        }
    }
}

/// What moves are chosen by, and their weight relative to it. The second-order rule has factors of
/// its own, larger than the weights, so it takes those.
fn selection(base: DebiasedBase, moves: &Moves) -> (Tensor<4>, Option<Tensor<4>>) {
    let weight = moves.weight();
    if base != DebiasedBase::SecondOrderSt {
        return (weight, None);
    }
    let (law, z) = (moves.law(), moves.samples());
    match law.family() {
        Family::Categorical => {
            let p = softmax(law.natural(), 2).unsqueeze::<4>();
            (p.clone() * (-z + 1.0), Some(-p + 1.0))
        }
        _ => {
            let own = weighted(law, z.clone(), z.ones_like()) * 2.0;
            let share = weight / own.clone().clamp_min(f64::from(f32::MIN_POSITIVE));
            (own, Some(share))
        }
    }
}

/// Below the mean and above it, which for a bit is 0 and 1; for a variable of categories, each.
fn cells(moves: &Moves) -> Vec<Tensor<4>> {
    let (law, z) = (moves.law(), moves.samples());
    match law.family() {
        Family::Categorical => (0..z.dims()[3])
            .map(|j| z.clone().narrow(3, j, 1))
            .collect(),
        _ => {
            let above = z
                .clone()
                .greater(law.mean().unsqueeze::<4>().expand(z.dims()));
            let above = above.float().cast(z.dtype());
            vec![-above.clone() + 1.0, above]
        }
    }
}

/// The entries `[n, batch, d, k]` of a table `[d, cells, k]`.
fn in_cells(table: Tensor<3>, cells: &[Tensor<4>]) -> Tensor<4> {
    let entries = cells.iter().enumerate().map(|(i, cell)| {
        let [d, _, k] = table.dims();
        cell.clone() * table.clone().narrow(1, i, 1).reshape([1, 1, d, k])
    });
    entries.reduce(|a, b| a + b).expect("at least two cells")
}

/// Mean squares, where that of a cell starts at the mean of all.
fn mean_squares(residual: &RunningMeans) -> Tensor<3> {
    let [sums, weights] = residual.parts();
    let (sum, weight) = (sums.clone().sum(), weights.sum());
    // 1 before the first observation: the scale does not matter.
    let unseen = f64::from(f32::MIN_POSITIVE);
    let all = (sum.clamp_min(0.0) + unseen) / (weight + unseen);
    let prior = all.reshape([1, 1, 1]).expand(sums.dims());
    residual.means(prior).clamp_min(0.0)
}

/// The ratio of two means, 1 before the first observation.
fn ratio(scale: &RunningMeans) -> Tensor<4> {
    let [sum, weight] = scale.parts();
    let unseen = f64::from(f32::MIN_POSITIVE);
    let ratio = (sum + unseen) / (weight + unseen);
    ratio.clamp(0.0, LARGEST_SCALE).unsqueeze()
}

/// What the backward pass tells: `d surrogate / dz`, and the factor that the surrogate has in what
/// was differentiated.
#[derive(Debug, Default)]
pub(super) struct Seen {
    gradient: Mutex<Option<Tensor<4>>>,
    factor: Mutex<Option<Tensor<1>>>,
}

fn tell<T>(to: &Mutex<Option<T>>, what: T) {
    *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

fn told<T: Clone>(by: &Mutex<Option<T>>) -> Option<T> {
    by.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The base less what the correction takes off it; the differences are added elsewhere.
#[derive(Debug)]
pub(super) struct BaseRule {
    pub layer: Arc<Layer>,
    pub seen: Arc<Seen>,
    /// Whether the parent has two halves, `[2 batch, d, k]`, of which the first gets the base alone
    /// and the second what is taken off.
    pub apart: bool,
}

impl Rule for BaseRule {
    fn backward(&self, _natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        tell(&self.seen.gradient, dz.clone());
        let base = self.layer.base(dz.clone());
        let taken = self.layer.base_at_chosen(dz);
        let sum = |x: Tensor<4>| x.sum_dim(0).squeeze_dim::<3>(0);
        match self.apart {
            true => Tensor::cat(vec![sum(base), -sum(taken)], 0),
            false => sum(base - taken),
        }
    }
}

/// An identity that tells which factor the surrogate has.
#[derive(Debug)]
pub(super) struct FactorRule(pub Arc<Seen>);

impl Rule<1, 1> for FactorRule {
    fn backward(&self, _parent: Tensor<1>, _output: Tensor<1>, factor: Tensor<1>) -> Tensor<1> {
        tell(&self.0.factor, factor.clone());
        factor
    }
}

/// What the chosen moves say about curvature, residuals and the scale of the base.
#[derive(Debug)]
pub(super) struct MovesLesson {
    pub layer: Arc<Layer>,
    pub seen: Arc<Seen>,
    /// The slopes of the chosen moves.
    pub slopes: Tensor<4>,
    /// The draws and batch elements that the surrogate is a mean over.
    pub elements: usize,
}

impl MovesLesson {
    /// `df/dz` at the draws; zero if the cost does not depend on them, `None` before the backward
    /// pass.
    fn gradient(&self) -> Option<Tensor<4>> {
        let factor = told(&self.seen.factor)?;
        let z = self.layer.moves.samples();
        let Some(gradient) = told(&self.seen.gradient) else {
            return Some(z.zeros_like());
        };
        // A surrogate that was multiplied by zero teaches nothing, but must not divide by it.
        let nothing = factor.clone().equal_elem(0.0);
        let factor = factor.mask_fill(nothing, 1.0).reshape([1, 1, 1, 1]);
        Some(gradient * self.elements as f64 / factor)
    }

    /// Sums over draws and batch of numbers `[m n, batch, d, k]` of the chosen moves, in the cells of
    /// the draws, `[d, cells, k]`.
    fn sums(&self, x: Tensor<4>) -> Tensor<3> {
        let of_cell = |cell: &Tensor<4>| -> Tensor<3> {
            let x = x.clone() * repeat_to(cell, &x);
            let [.., d, k] = x.dims();
            x.sum_dim(0).sum_dim(1).reshape([d, 1, k])
        };
        Tensor::cat(self.layer.cells.iter().map(of_cell).collect(), 1)
    }
}

impl Teach for MovesLesson {
    fn teach(&self, state: &mut LayerState) {
        let Some(gradient) = self.gradient() else {
            return;
        };
        let layer = &self.layer;
        let marks = &layer.choice.marks;
        let here = |x: Tensor<4>| repeat_to(&x, marks) * marks.clone();
        // All relative to what the moves were chosen by, like the residuals that the variance is of.
        let predicted = here(layer.scaled(layer.predicted(gradient.clone())));
        let rest = layer.shared(self.slopes.clone()) - predicted;
        let count = self.sums(marks.clone());
        if let Some(residual) = &mut state.residual {
            let left = match &layer.curvature {
                Some(curvature) => rest.clone() - layer.shared(here(curvature.clone())),
                None => rest.clone(),
            };
            residual.observe(self.sums(left.square()), count.clone(), count.clone());
        }
        if let Some(curvature) = &mut state.curvature {
            // The least squares of rest = regressor * h. The sign of the step that was taken says
            // more about h than the expected one.
            let regressor = layer.shared(match &layer.sign {
                Some(_) => here(layer.moves.step()),
                None => marks.clone(),
            });
            let sum = self.sums(regressor.clone() * rest);
            curvature.observe(sum, self.sums(regressor.square()), count);
        }
        if let Some(scale) = &mut state.scale {
            // g = a + scale * b, and b has mean zero: the best scale is -E a b / E b b.
            let unscaled = Layer {
                scale: None,
                ..(**layer).clone()
            };
            let a = layer.differences(self.slopes.clone());
            let b = unscaled.base(gradient.clone()) - unscaled.base_at_chosen(gradient);
            let mean = |x: Tensor<4>| x.mean().reshape([1, 1, 1]);
            let square = mean(b.clone().square());
            let once = square.ones_like();
            scale.observe(mean(-a * b), square, once);
        }
    }
}
