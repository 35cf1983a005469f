//! One layer of variables: a base on the tape, and its correction along the chosen moves.
//!
//! What concerns single moves is scalar code on the host: there are few of them, and reading a
//! batch of samples is cheaper than the many tensor operations on all moves that it replaces.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Tensor, activation::softmax};

use super::choice::{Pick, Preference, choose};
use super::memory::{Cells, Memory};
use super::{ChoiceBy, DebiasedBase, DebiasedStConfig};
use crate::distribution::{Law, Moves};
use crate::error::Result;
use crate::estimate::state::LayerState;
use crate::gradient::with_gradient;
use crate::method::second_order_st::weighted;
use crate::ops::{from_host, to_host};

/// The draws of a layer and the moves that were chosen for them, all constant.
#[derive(Debug)]
pub(super) struct Layer {
    pub base: DebiasedBase,
    z: Tensor<4>,
    pub moves: Moves,
    /// The chosen moves in the order of their evaluation: for each of the `flips`, one of each
    /// draw.
    pub picks: Vec<Option<Pick>>,
    /// The weight of each move over that which it is chosen by, at most 1; `None` if they are
    /// equal.
    share: Option<Vec<f64>>,
    pub cells: Cells,
    /// What is added to the predicted slope of each move.
    pub curvature: Option<Vec<f64>>,
    /// The factor of the base.
    pub scale: f64,
}

impl Layer {
    /// Chooses moves from draws `z` with uniform numbers `[n, batch, 1, 1]`. Some families take
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
        let cells = Cells::new(&moves);
        let memory = Memory::read(config, state, &moves, &cells)?;
        // Items are corrected by what the base says of them, and need no weights of its own.
        let second = config.base == DebiasedBase::SecondOrderSt && !moves.has_swaps();
        let second = second.then(|| selection(&moves, &z));
        let (chosen_by, share) = match &second {
            Some((own, share)) => (own, Some(share.clone())),
            None => (&moves.weight, None),
        };
        let preference = |draw: usize| match (config.choice, &memory.rms) {
            (ChoiceBy::Learned, Some(rms)) => Preference::WeightTimes(row(rms, draw, &moves)),
            (ChoiceBy::Uniform, _) => Preference::Equal,
            _ => Preference::Weight,
        };
        let flips = config.flips.min(moves.per_draw());
        let mut picks = vec![None; flips * moves.draws()];
        for (draw, uniform) in to_host(uniform).into_iter().enumerate() {
            let weights = row(chosen_by, draw, &moves);
            let chosen = choose(weights, preference(draw), uniform, flips);
            for (flip, pick) in chosen.into_iter().enumerate() {
                picks[flip * moves.draws() + draw] = Some(pick);
            }
        }
        Ok(Self {
            base: config.base,
            z,
            picks,
            share,
            cells,
            curvature: memory.curvature,
            scale: memory.scale,
            moves,
        })
    }

    /// The chosen moves: their place in the order of evaluation, their place among all moves of all
    /// draws, and their factor.
    pub fn chosen(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let (draws, moves) = (self.moves.draws(), self.moves.per_draw());
        let picks = self.picks.iter().enumerate();
        picks.filter_map(move |(place, pick)| {
            pick.map(|pick| (place, place % draws * moves + pick.index, pick.factor))
        })
    }

    /// The samples after the chosen moves, `[flips n, batch, d, k]`.
    pub fn moved(&self) -> Tensor<4> {
        let [n, batch, d, k] = self.moves.dims;
        let per_draw = self.moves.per_draw();
        let flips = self.picks.len() / self.moves.draws();
        let mut points = self.moves.z.repeat(flips);
        for (place, index, _) in self.chosen() {
            let point = &mut points[place * per_draw..(place + 1) * per_draw];
            self.moves.apply(index, point);
        }
        from_host(points, [flips * n, batch, d, k], &self.z)
    }

    /// The slope along each chosen move, from `f(moved) - f(z)` in the order of evaluation.
    pub fn slopes(&self, rise: Tensor<2>) -> Vec<f64> {
        let mut slopes = to_host(rise);
        for (place, index, _) in self.chosen() {
            slopes[place] *= self.moves.step(index);
        }
        slopes
    }

    /// The part of the estimate that is not the base's, for all moves: differences along the chosen
    /// ones, and the curvature with its own correction.
    pub fn differences(&self, slopes: &[f64]) -> Vec<f64> {
        let mut gradient = vec![0.0; self.moves.z.len()];
        if let Some(curvature) = &self.curvature {
            self.moves.add_weighted(curvature, &mut gradient);
        }
        for (place, index, factor) in self.chosen() {
            let rest = slopes[place] - self.curvature_at(index);
            let x = factor * self.share(index) * rest;
            self.moves.add_along(index, x, &mut gradient);
        }
        gradient
    }

    /// [`differences`](Self::differences) as a constant `[n, batch, d, k]`.
    pub fn differences_tensor(&self, slopes: &[f64]) -> Tensor<4> {
        from_host(self.differences(slopes), self.moves.dims, &self.z)
    }

    /// The base for a gradient `df/dz`, `[n, batch, d, k]`.
    fn base(&self, gradient: Tensor<4>) -> Tensor<4> {
        match self.base {
            DebiasedBase::None => gradient.zeros_like(),
            DebiasedBase::SecondOrderSt => weighted(self.moves.law(), self.z.clone(), gradient),
            DebiasedBase::StraightThrough => match self.moves.law().family().weighs_draws() {
                true => {
                    let weight = self.moves.weight.clone();
                    gradient * from_host::<4, 4>(weight, self.moves.dims, &self.z)
                }
                false => self.moves.law().chain(gradient),
            },
        }
    }

    /// The base along the chosen moves, each over its probability: its mean is the base.
    fn base_at_chosen(&self, gradient: &[f64]) -> Vec<f64> {
        let mut taken = vec![0.0; gradient.len()];
        let predicted = self.predictions(gradient);
        for (_, index, factor) in self.chosen() {
            let x = factor * predicted(index);
            match self.base {
                // e_j - z, of which the rule is the mean over j.
                DebiasedBase::SecondOrderSt if self.moves.is_categorical() => {
                    taken[index] += x;
                    let start = index - index % self.moves.dims[3];
                    taken[start + self.moves.category(index)] -= x;
                }
                _ => self.moves.add_along(index, x, &mut taken),
            }
        }
        taken
    }

    /// The base, and what the correction takes off it, both with the factor of the base.
    fn parts(&self, gradient: Tensor<4>) -> [Tensor<4>; 2] {
        let taken = self.base_at_chosen(&to_host(gradient.clone()));
        let taken = from_host(taken, self.moves.dims, &self.z);
        match self.scale {
            1.0 => [self.base(gradient), taken],
            scale => [self.base(gradient) * scale, taken * scale],
        }
    }

    /// The base less what the correction takes off it, before its factor.
    pub fn unscaled_rest(&self, gradient: &[f64]) -> Vec<f64> {
        let tensor = from_host(gradient.to_vec(), self.moves.dims, &self.z);
        let base = to_host(self.base(tensor));
        let taken = self.base_at_chosen(gradient);
        base.iter()
            .zip(taken)
            .map(|(base, taken)| base - taken)
            .collect()
    }

    /// What the base says of the slope of each chosen move, before its factor, in units of what the
    /// move is chosen by.
    pub fn predictions(&self, gradient: &[f64]) -> impl Fn(usize) -> f64 {
        // The base of an item depends on the slopes of all.
        let of_items = match self.moves.has_swaps() {
            true => to_host(self.base(from_host(gradient.to_vec(), self.moves.dims, &self.z))),
            false => Vec::new(),
        };
        move |index| match self.base {
            DebiasedBase::None => 0.0,
            _ if self.moves.has_swaps() => of_items[index] / self.moves.weight[index],
            DebiasedBase::StraightThrough => self.moves.predicted_slope(index, gradient),
            DebiasedBase::SecondOrderSt => 0.5 * self.moves.predicted_slope(index, gradient),
        }
    }

    pub fn share(&self, index: usize) -> f64 {
        self.share.as_ref().map_or(1.0, |share| share[index])
    }

    pub fn curvature_at(&self, index: usize) -> f64 {
        self.curvature
            .as_ref()
            .map_or(0.0, |curvature| curvature[index])
    }
}

/// The numbers of one draw.
fn row<'a>(x: &'a [f64], draw: usize, moves: &Moves) -> &'a [f64] {
    let size = moves.per_draw();
    &x[draw * size..(draw + 1) * size]
}

/// What moves are chosen by for the second-order rule, which has factors of its own that are larger
/// than the weights, and the weights relative to them.
fn selection(moves: &Moves, z: &Tensor<4>) -> (Vec<f64>, Vec<f64>) {
    let law = moves.law();
    if moves.is_categorical() {
        let p = softmax(law.natural(), 2).unsqueeze::<4>();
        let own = p.clone() * (-z.clone() + 1.0);
        let share = (-p + 1.0).expand(z.dims());
        return (to_host(own), to_host(share));
    }
    let own = to_host(weighted(law, z.clone(), z.ones_like()) * 2.0);
    let share = moves
        .weight
        .iter()
        .zip(&own)
        .map(|(weight, own)| match *own > 0.0 {
            true => weight / own,
            false => 0.0,
        });
    let share = share.collect();
    (own, share)
}

/// What the backward pass tells: `d surrogate / dz`, and the factor that the surrogate has in what
/// was differentiated.
#[derive(Debug, Default)]
pub(super) struct Seen {
    gradient: Mutex<Option<Tensor<4>>>,
    factor: Mutex<Option<Tensor<1>>>,
}

impl Seen {
    /// Whether the backward pass was here.
    pub fn is_complete(&self) -> bool {
        told(&self.factor).is_some()
    }

    /// `df/dz` at `count` draws that the surrogate is the mean over; zero if the cost does not
    /// depend on them, `None` before the backward pass.
    pub fn slope(&self, count: usize, size: usize) -> Option<Vec<f64>> {
        let factor = to_host(told(&self.factor)?)[0];
        let gradient = told(&self.gradient).map_or_else(|| vec![0.0; size], to_host);
        // A surrogate that was multiplied by zero teaches nothing.
        let each = count as f64 / factor;
        each.is_finite()
            .then(|| gradient.into_iter().map(|g| g * each).collect())
    }
}

fn tell<T>(to: &Mutex<Option<T>>, what: T) {
    *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

fn told<T: Clone>(by: &Mutex<Option<T>>) -> Option<T> {
    by.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Draws on the tape of `parent`, whose gradient is the base less what the correction takes off it;
/// the differences are added elsewhere. If the two are kept apart, the parent has two halves, `[2
/// batch, d, k]`: the first gets the base alone and the second what is taken off.
pub(super) fn with_base(
    parent: Tensor<3>,
    layer: &Arc<Layer>,
    seen: &Arc<Seen>,
    apart: bool,
) -> Tensor<4> {
    let (z, layer, seen) = (layer.z.clone(), layer.clone(), seen.clone());
    if layer.base == DebiasedBase::None {
        return z;
    }
    with_gradient(parent, z, move |_, _, dz| {
        tell(&seen.gradient, dz.clone());
        let [base, taken] = layer.parts(dz);
        let sum = |x: Tensor<4>| x.sum_dim(0).squeeze_dim::<3>(0);
        match apart {
            true => Tensor::cat(vec![sum(base), -sum(taken)], 0),
            false => sum(base - taken),
        }
    })
}

/// Tells the state the factor that a surrogate has, when it is differentiated.
pub(super) fn watched(carrier: Tensor<1>, seen: &Arc<Seen>) -> Tensor<1> {
    let seen = seen.clone();
    with_gradient(carrier.clone(), carrier.inner(), move |_, _, factor| {
        tell(&seen.factor, factor.clone());
        factor
    })
}
