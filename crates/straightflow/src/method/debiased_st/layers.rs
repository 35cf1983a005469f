//! Stacked variables: straight-through on the tape, and a correction for each layer, whose moves
//! redraw the layers above with the same uniform numbers.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::layer::{Layer, Seen, watched, with_base};
use super::memory::MovesLesson;
use super::{DebiasedSt, ENTRY, choice_noise};
use crate::antithetic::along;
use crate::distribution::Law;
use crate::error::Result;
use crate::estimate::layers::{Stacked, single, sum_of};
use crate::estimate::objective::CountedObjective;
use crate::estimate::state::Lesson;
use crate::estimate::{Estimator, NoiseLaw, NoiseSource, NoiseSpec, Outcome};
use crate::ops::gradient_only;

/// A layer with its draws.
struct Drawn {
    layer: Arc<Layer>,
    seen: Arc<Seen>,
    /// The law given constant samples below: what is corrected is not seen by the layers below.
    law: Law,
    /// Hard samples, `[n, batch, d, k]`.
    z: Tensor<4>,
    /// The uniform numbers `[n, batch, d, 1]` behind them; none for counts and the lowest layer.
    uniform: Option<Tensor<4>>,
}

impl Stacked for DebiasedSt {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        if objective.layers() == 1 {
            // What is corrected need not be kept from layers below.
            return single(self, noise, objective);
        }
        let mut drawn: Vec<Drawn> = Vec::new();
        let mut on_tape: Vec<Tensor<4>> = Vec::new();
        let mut laws: Vec<Law> = Vec::new();
        for index in 0..objective.layers() {
            let law = objective.layer(&on_tape)?;
            let (one, tape) = self.draw(index, &law, &drawn, noise, objective)?;
            drawn.push(one);
            on_tape.push(tape);
            laws.push(law);
        }
        let cost = objective.evaluate_attached(&on_tape, &laws)?;
        let values = cost.clone().inner();
        let [n, batch] = values.dims();

        // All moved points in one evaluation, layer after layer.
        let moved = (0..drawn.len()).map(|index| moved(index, &drawn, noise, objective));
        let moved: Vec<Vec<Tensor<4>>> = moved.collect::<Result<_>>()?;
        let points: Vec<Tensor<4>> = (0..drawn.len())
            .map(|layer| Tensor::cat(moved.iter().map(|z| z[layer].clone()).collect(), 0))
            .collect();
        let mut fixed = vec![laws[0].constant()];
        for layer in 1..drawn.len() {
            fixed.push(objective.frozen_layer(&points[..layer])?.constant());
        }
        let moved_values = objective.evaluate_frozen(&points, &fixed)?.inner();

        let (mut gradients, mut lessons) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (one, points) in drawn.iter().zip(&moved) {
            let rows = points[0].dims()[0];
            let there = moved_values.clone().narrow(0, start, rows);
            start += rows;
            let rise = there - values.clone().repeat_dim(0, rows / n);
            let slopes = one.layer.slopes(rise);
            let differences = along(&one.law, one.layer.differences_tensor(&slopes));
            gradients.push(Ok(watched(differences, &one.seen)));
            if self.learns() {
                lessons.push(Lesson::new(MovesLesson {
                    layer: one.layer.clone(),
                    seen: one.seen.clone(),
                    slopes,
                    elements: n * batch,
                }));
            }
        }
        Ok(Outcome {
            surrogate: cost.mean() + gradient_only(sum_of(gradients)?),
            values,
            samples: drawn.into_iter().map(|one| one.z).collect(),
            lessons,
        })
    }
}

impl DebiasedSt {
    /// Draws a layer and chooses its moves; also its samples on the tape of its law.
    fn draw(
        &self,
        index: usize,
        law: &Law,
        below: &[Drawn],
        noise: &NoiseSource,
        objective: &CountedObjective,
    ) -> Result<(Drawn, Tensor<4>)> {
        let n = if index == 0 { noise.draws(self) } else { 1 };
        self.check(law, n)?;
        let inner = law.constant();
        let mut specs = match index {
            // The lowest layer is never drawn again.
            0 => vec![NoiseSpec::samples(law, n)],
            _ => vec![draw_noise(law, n)],
        };
        specs.extend(choice_noise(law, n));
        let piece = noise.next(law, &specs)?;
        let (z, uniform) = match specs[0].law {
            NoiseLaw::Uniform => (from_uniform(&inner, &piece.get(0)), Some(piece.get(0))),
            _ => (piece.get(0), None),
        };
        let side = (piece.len() > 2).then(|| piece.get(2));
        let state = self.attached.learned(&ENTRY, self.learns(), index)?;
        let layer = Layer::new(&self.config, state, law, z.clone(), piece.get(1), side)?;
        let (layer, seen) = (Arc::new(layer), Arc::new(Seen::default()));
        let samples: Vec<Tensor<4>> = below.iter().map(|one| one.z.clone()).collect();
        let apart = match index {
            0 => law.clone(),
            _ => objective.layer(&samples)?,
        };
        let parent = Tensor::cat(vec![law.natural(), apart.natural()], 0);
        let tape = with_base(parent, &layer, &seen, true);
        let per_draw = |z: Tensor<4>| match below.first() {
            Some(first) => {
                let [n, batch, ..] = first.z.dims();
                let [.., d, k] = z.dims();
                z.reshape([n, batch, d, k])
            }
            None => z,
        };
        let drawn = Drawn {
            layer,
            seen,
            law: apart,
            z: per_draw(z),
            uniform: uniform.map(per_draw),
        };
        Ok((drawn, per_draw(tape)))
    }
}

/// Samples of all layers `[m n, batch, d, k]` after the moves of one: as before below it, drawn
/// again above it.
fn moved(
    index: usize,
    drawn: &[Drawn],
    noise: &NoiseSource,
    objective: &CountedObjective,
) -> Result<Vec<Tensor<4>>> {
    let [n, batch, d, k] = drawn[index].z.dims();
    let own = drawn[index].layer.moved();
    let [rows, of_law, ..] = own.dims();
    let draws = rows * of_law / batch;
    let again = |x: &Tensor<4>| x.clone().repeat_dim(0, draws / n);
    let mut samples: Vec<Tensor<4>> = drawn[..index].iter().map(|one| again(&one.z)).collect();
    samples.push(own.reshape([draws, batch, d, k]));
    for above in &drawn[index + 1..] {
        let law = objective.frozen_layer(&samples)?.constant();
        let z = match &above.uniform {
            Some(uniform) => {
                let uniform = again(uniform);
                let [draws, batch, d, k] = uniform.dims();
                from_uniform(&law, &uniform.reshape([1, draws * batch, d, k]))
            }
            None => noise.hard(&law)?,
        };
        let [.., d, k] = z.dims();
        samples.push(z.reshape([draws, batch, d, k]));
    }
    Ok(samples)
}

/// Draws come from one uniform number for each variable, if the family can be inverted by tensors.
fn draw_noise(law: &Law, n: usize) -> NoiseSpec {
    let [n, batch, d, _] = law.sample_dims(n);
    match law.family().inverse() {
        Some(_) => NoiseSpec::uniform("uniform", [n, batch, d, 1]),
        None => NoiseSpec::samples(law, n),
    }
}

/// Samples of a law from uniform numbers `[n, batch, d, 1]`.
fn from_uniform(law: &Law, uniform: &Tensor<4>) -> Tensor<4> {
    let samples = law.invert(uniform);
    samples.expect("families without an inverse are drawn as samples")
}
