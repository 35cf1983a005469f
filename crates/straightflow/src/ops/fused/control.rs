//! The loops of control variates on relaxed bits. Each has a counterpart of tensor operations in
//! `relaxed_control`, which serves other families and backends.

use burn::tensor::{DType, Tensor};

use super::flex::{Stored, has_kernels, row_major};
use super::kernel::{LANES, lane_sum, vectorised};
use super::real::{Real, sigmoids};

/// Whether all tensors have kernels and one type.
fn fit(tensors: &[&Tensor<4>]) -> bool {
    tensors
        .iter()
        .all(|x| x.dtype() == tensors[0].dtype() && x.dims() == tensors[0].dims() && has_kernels(x))
}

/// The parts of an estimate with a control variate, `[n, batch, d, 1]` but for the signal and
/// `by_value`, which are `[n, batch]`.
#[derive(Debug)]
pub(crate) struct ControlledBits {
    /// `g = signal score + weight slope`.
    pub gradient: Tensor<4>,
    /// `-sum_j 2 g_j score_j / count`.
    pub by_value: Tensor<2>,
    /// `2 g weight / count`.
    pub by_gradient: Tensor<4>,
}

/// From constants of one shape, or `None` if there are no kernels for them.
pub(crate) fn controlled_bits(
    signal: &Tensor<2>,
    score: &Tensor<4>,
    weight: &Tensor<4>,
    slope: &Tensor<4>,
) -> Option<ControlledBits> {
    if !fit(&[score, weight, slope]) || signal.dtype() != score.dtype() {
        return None;
    }
    Some(match score.dtype() {
        DType::F64 => controlled::<f64>(signal, score, weight, slope),
        _ => controlled::<f32>(signal, score, weight, slope),
    })
}

fn controlled<R: Stored>(
    signal: &Tensor<2>,
    score: &Tensor<4>,
    weight: &Tensor<4>,
    slope: &Tensor<4>,
) -> ControlledBits {
    let shape @ [n, batch, d, _] = score.dims();
    let signal = row_major(signal.clone());
    let [score, weight, slope] = [score, weight, slope].map(|x| row_major(x.clone()));
    let (score, weight, slope) = (R::values(&score), R::values(&weight), R::values(&slope));
    let share = R::from_f64(2.0 / score.len() as f64);
    let mut outs = [0; 2].map(|_| vec![R::ZERO; score.len()]);
    let mut by_value = vec![R::ZERO; n * batch];
    let [gradient, by_gradient] = &mut outs;
    vectorised(
        #[inline(always)]
        || {
            let mut products = vec![R::ZERO; d];
            for (row, signal) in R::values(&signal).iter().enumerate() {
                let own = row * d..(row + 1) * d;
                let given = score[own.clone()]
                    .iter()
                    .zip(&weight[own.clone()])
                    .zip(&slope[own.clone()]);
                let made = gradient[own.clone()]
                    .iter_mut()
                    .zip(&mut by_gradient[own])
                    .zip(&mut products);
                for (((score, weight), slope), ((gradient, by_gradient), product)) in
                    given.zip(made)
                {
                    *gradient = *signal * *score + *weight * *slope;
                    let twice = *gradient * share;
                    *by_gradient = twice * *weight;
                    *product = twice * *score;
                }
                by_value[row] = R::ZERO - lane_sum(&products);
            }
        },
    );
    let [gradient, by_gradient] = outs.map(|values| R::new_tensor(values, shape));
    ControlledBits {
        gradient,
        by_value: R::new_tensor(by_value, [n, batch]),
        by_gradient,
    }
}

/// Where a difference of gradients along the temperature's direction starts: softened bits
/// `sigmoid(logits)`, `[n, batch, d, 1]`, all constants.
#[derive(Debug)]
pub(crate) struct Origin<'a> {
    pub logits: &'a Tensor<4>,
    /// The gradient of the cost.
    pub slope: &'a Tensor<4>,
    /// The derivatives of the variance with respect to the control variate, `[n, batch]`, and to its
    /// gradient.
    pub by_value: &'a Tensor<2>,
    pub by_gradient: &'a Tensor<4>,
    /// Two numbers.
    pub scale: &'a Tensor<4>,
    pub temperature: &'a Tensor<4>,
    /// How far the coordinate that moves most moves.
    pub reach: f64,
    /// Directions shorter than this are as good as zero.
    pub shortest: f64,
}

impl Origin<'_> {
    /// The point beside the softened bits, what the difference of the gradients at both is multiplied
    /// with, and a scalar, what the gradient at the bits themselves contributes; or `None` if there
    /// are no kernels for the tensors.
    pub fn probe(&self) -> Option<([Tensor<4>; 2], Tensor<1>)> {
        let numbers = [self.scale, self.temperature];
        let fits = fit(&[self.logits, self.slope, self.by_gradient])
            && fit(&numbers)
            && self.scale.dtype() == self.logits.dtype();
        fits.then(|| match self.logits.dtype() {
            DType::F64 => self.probe_as::<f64>(),
            _ => self.probe_as::<f32>(),
        })
    }

    fn probe_as<R: Stored>(&self) -> ([Tensor<4>; 2], Tensor<1>) {
        let shape @ [_, _, d, _] = self.logits.dims();
        let tensors =
            [self.logits, self.slope, self.by_gradient].map(|tensor| row_major(tensor.clone()));
        let [logits, slope, by_gradient] = tensors.each_ref().map(R::values);
        let by_value = row_major(self.by_value.clone());
        let [scale, temperature] =
            [self.scale, self.temperature].map(|x| R::values(&row_major(x.clone()))[0]);
        let (reach, shortest) = (R::from_f64(self.reach), R::from_f64(self.shortest));
        let factor = scale / temperature;
        let mut outs = [0; 2].map(|_| vec![R::ZERO; logits.len()]);
        let [end, lever] = &mut outs;
        let mut rest = R::ZERO;
        vectorised(
            #[inline(always)]
            || {
                let mut part = vec![R::ZERO; d];
                for (row, by_value) in R::values(&by_value).iter().enumerate() {
                    let own = row * d..(row + 1) * d;
                    let (by_gradient, logits) = (&by_gradient[own.clone()], &logits[own.clone()]);
                    let (end, lever) = (&mut end[own.clone()], &mut lever[own.clone()]);
                    for (end, (x, l)) in end.iter_mut().zip(by_gradient.iter().zip(logits)) {
                        let [one, zero] = sigmoids(*l);
                        *end = factor * *x * one * zero;
                    }
                    let step = reach / largest(end, shortest);
                    let along = scale * *by_value;
                    let given = by_gradient.iter().zip(logits).zip(&slope[own]);
                    let made = end.iter_mut().zip(lever).zip(&mut part);
                    for (((x, l), slope), ((end, lever), part)) in given.zip(made) {
                        let [one, zero] = sigmoids(*l);
                        let direction = *end;
                        let centre = R::ZERO - *l * one * zero;
                        let turn = centre * (zero - one) * (factor * *x) - direction;
                        *end = one + direction * step;
                        *lever = centre / step;
                        *part = *slope * (turn + along * centre);
                    }
                    rest += lane_sum(&part);
                }
            },
        );
        let outs = outs.map(|values| R::new_tensor(values, shape));
        (outs, R::new_tensor(vec![rest], [1]))
    }
}

/// The largest absolute value, or `least` if all are smaller.
#[inline(always)]
fn largest<R: Real>(row: &[R], least: R) -> R {
    let mut lanes = [least; LANES];
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], block[lane]);
        }
    }
    let all = lanes.iter().chain(rest);
    all.fold(least, |largest, x| larger(largest, *x))
}

/// The larger one of a number that is not negative and the size of another.
#[inline(always)]
fn larger<R: Real>(largest: R, x: R) -> R {
    let size = if x < R::ZERO { R::ZERO - x } else { x };
    if size > largest { size } else { largest }
}
