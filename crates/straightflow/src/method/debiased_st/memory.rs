//! What is learned of moves, how it is read, and what an estimate teaches.

use std::sync::Arc;

use super::layer::{Layer, Seen};
use super::{ChoiceBy, DebiasedStConfig, ENTRY};
use crate::distribution::Moves;
use crate::error::{Error, Result};
use crate::estimate::state::{LayerState, RunningMeans, Teach};
use crate::ops::to_host;

/// The least root mean square of a residual, so that a choice by it is defined where all are zero.
const LEAST_RESIDUAL: f64 = 1e-12;
/// The largest factor of the base that is learned.
const LARGEST_SCALE: f64 = 2.0;

/// The cells of the tables `[d, cells, k]` of a state: below the mean and above it, which for a bit
/// is 0 and 1; for a variable of categories, each; for an item, out and in.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// The cell of each move of each draw.
    of_move: Vec<usize>,
    /// The expected sign of a step, by which a curvature counts; `None` if it is 1.
    sign: Option<Vec<f64>>,
}

impl Cells {
    pub fn new(moves: &Moves) -> Self {
        let [_, _, d, k] = moves.dims;
        let law = moves.law();
        let of_move = if moves.is_categorical() {
            let cell = |index: usize| {
                let variable = index / k % d;
                (variable * k + moves.category(index)) * k + index % k
            };
            (0..moves.z.len()).map(cell).collect()
        } else {
            // A mean that rounds to 1 would put both bits below it.
            let middles = match law.family().is_binary() {
                true => vec![0.5],
                false => to_host(law.mean()),
            };
            let above = |i: usize, z: f64| usize::from(z > middles[i % middles.len()]);
            let draws = moves.z.iter().enumerate();
            let cell = |(i, z): (usize, &f64)| (i / k % d * k.max(2) + above(i, *z)) * k + i % k;
            draws.map(cell).collect()
        };
        let sign = law.family().trials_of_step().map(|trials| {
            let sign = |z: &f64| 1.0 - 2.0 * z / trials;
            moves.z.iter().map(sign).collect()
        });
        Self { of_move, sign }
    }

    fn spread(&self, table: &[f64]) -> Vec<f64> {
        self.of_move.iter().map(|cell| table[*cell]).collect()
    }
}

/// What a state knows about the moves of an estimate.
pub(super) struct Memory {
    /// What is added to the predicted slope of each move.
    pub curvature: Option<Vec<f64>>,
    /// The root mean square of what is left of each.
    pub rms: Option<Vec<f64>>,
    /// The factor of the base.
    pub scale: f64,
}

impl Memory {
    pub fn read(
        config: &DebiasedStConfig,
        state: Option<&LayerState>,
        moves: &Moves,
        cells: &Cells,
    ) -> Result<Self> {
        let part = |means: fn(&LayerState) -> &Option<RunningMeans>| -> Result<&RunningMeans> {
            let means = state.and_then(|state| means(state).as_ref());
            let means = means.ok_or(Error::MissingState {
                estimator: ENTRY.id,
            })?;
            means.fits(moves.law())?;
            Ok(means)
        };
        let curvature = match config.curvature.is_learned() {
            true => {
                let table = part(|state| &state.curvature)?.means(0.0);
                Some(signed(cells.spread(&table), moves, cells))
            }
            false => None,
        };
        let rms = match config.choice {
            ChoiceBy::Learned => {
                let squares = mean_squares(part(|state| &state.residual)?);
                let rms: Vec<f64> = squares
                    .iter()
                    .map(|x| x.sqrt().max(LEAST_RESIDUAL))
                    .collect();
                Some(cells.spread(&rms))
            }
            ChoiceBy::Variance | ChoiceBy::Uniform => None,
        };
        let scale = match config.scale.is_learned() {
            true => ratio(part(|state| &state.scale)?),
            false => 1.0,
        };
        Ok(Self {
            curvature,
            rms,
            scale,
        })
    }
}

/// A curvature with the expected sign of its steps, and without one where there is no move: to the
/// category of a draw.
fn signed(mut curvature: Vec<f64>, moves: &Moves, cells: &Cells) -> Vec<f64> {
    if let Some(sign) = &cells.sign {
        curvature
            .iter_mut()
            .zip(sign)
            .for_each(|(h, sign)| *h *= sign);
    }
    if moves.is_categorical() {
        let hot = curvature
            .iter_mut()
            .zip(&moves.z)
            .filter(|(_, z)| **z == 1.0);
        hot.for_each(|(h, _)| *h = 0.0);
    }
    curvature
}

/// Mean squares, where that of a cell starts at the mean of all; 1 before the first observation,
/// because then the scale does not matter.
fn mean_squares(residual: &RunningMeans) -> Vec<f64> {
    let [sums, weights] = residual.parts();
    let (sum, weight): (f64, f64) = (sums.iter().sum(), weights.iter().sum());
    let all = if weight > 0.0 { sum / weight } else { 1.0 };
    let squares = residual.means(all.max(0.0)).into_iter();
    squares.map(|x| x.max(0.0)).collect()
}

/// The ratio of two means, 1 before the first observation.
fn ratio(scale: &RunningMeans) -> f64 {
    let [sum, weight] = scale.parts().map(|part| part[0]);
    match weight > 0.0 {
        true => (sum / weight).clamp(0.0, LARGEST_SCALE),
        false => 1.0,
    }
}

/// What the chosen moves say about curvature, residuals and the scale of the base.
#[derive(Debug)]
pub(super) struct MovesLesson {
    pub layer: Arc<Layer>,
    pub seen: Arc<Seen>,
    /// The slopes of the chosen moves.
    pub slopes: Vec<f64>,
    /// The draws and batch elements that the surrogate is a mean over.
    pub elements: usize,
}

impl Teach for MovesLesson {
    fn is_complete(&self) -> bool {
        self.seen.is_complete()
    }

    fn teach(&self, state: &mut LayerState) {
        let layer = &self.layer;
        let Some(gradient) = self.seen.slope(self.elements, layer.moves.z.len()) else {
            return;
        };
        let mut left = Vec::new();
        let mut curvatures = Vec::new();
        let predictions = layer.predictions(&gradient);
        for (place, index, _) in layer.chosen() {
            let cell = layer.cells.of_move[index];
            let share = layer.share(index);
            // Relative to what the move was chosen by, like the residuals that the variance is of.
            let predicted = layer.scale * predictions(index);
            let rest = share * self.slopes[place] - predicted;
            left.push((
                cell,
                (rest - share * layer.curvature_at(index)).powi(2),
                1.0,
            ));
            // The least squares of rest = share * sign * h. The sign of the step that was taken
            // says more about h than the expected one.
            let sign = layer
                .cells
                .sign
                .as_ref()
                .map_or(1.0, |_| layer.moves.step(index));
            curvatures.push((cell, share * sign * rest, share * share));
        }
        if let Some(residual) = &mut state.residual {
            residual.observe(&left);
        }
        if let Some(curvature) = &mut state.curvature {
            curvature.observe(&curvatures);
        }
        if let Some(scale) = &mut state.scale {
            // g = a + scale * b, and b has mean zero: the best scale is -E a b / E b b.
            let a = layer.differences(&self.slopes);
            let b = layer.unscaled_rest(&gradient);
            let product: f64 = a.iter().zip(&b).map(|(a, b)| -a * b).sum();
            let square: f64 = b.iter().map(|b| b * b).sum();
            let size = b.len() as f64;
            scale.observe(&[(0, product / size, square / size)]);
        }
    }
}
