//! The network of RODEO: two functions of a point and of a cost that many points have in common.
//!
//! Its hidden units are few and its points are many, so layers would write and read all units of all
//! points several times. The loops keep them in registers instead.

use burn::tensor::{DType, Tensor};

use super::flex::{Stored, has_kernels, row_major};
use super::kernel::{LANES, lane_sum, vectorised};
use super::real::Real;
use crate::gradient::with_gradient;

/// Weights and biases, one number for each hidden unit in each part, and the two shifts of the outputs.
struct Units<'a, R> {
    by_point: &'a [R],
    by_cost: &'a [R],
    bias: &'a [R],
    outputs: [&'a [R]; 2],
    shifts: [R; 2],
}

impl<'a, R: Real> Units<'a, R> {
    fn new(weights: &'a [R]) -> Self {
        let hidden = (weights.len() - 2) / 5;
        let part = |i: usize| &weights[i * hidden..(i + 1) * hidden];
        Self {
            by_point: part(0),
            by_cost: part(1),
            bias: part(2),
            outputs: [part(3), part(4)],
            shifts: [weights[5 * hidden], weights[5 * hidden + 1]],
        }
    }
}

/// `o_i(x, c) = s_i + sum_u v_iu leaky(w_u x + y_u c + b_u)` for `i` of 0 and 1, `[2, rows, points]`, at
/// points `x` `[rows, points]` and costs `c` `[rows]`, which are constants; on the tape of the weights
/// `[w, y, b, v_0, v_1, s_0, s_1]`. `None` if there is no kernel for the tensors.
pub(crate) fn stein_functions(
    weights: &Tensor<1>,
    points: &Tensor<2>,
    costs: &Tensor<1>,
    leak: f64,
) -> Option<Tensor<3>> {
    let own = weights.clone().inner();
    let fits = has_kernels(&own)
        && has_kernels(points)
        && has_kernels(costs)
        && points.dtype() == own.dtype()
        && costs.dtype() == own.dtype();
    fits.then(|| match own.dtype() {
        DType::F64 => functions::<f64>(weights, points, costs, leak),
        _ => functions::<f32>(weights, points, costs, leak as f32),
    })
}

fn functions<R: Stored + Send + Sync + 'static>(
    weights: &Tensor<1>,
    points: &Tensor<2>,
    costs: &Tensor<1>,
    leak: R,
) -> Tensor<3> {
    let [rows, columns] = points.dims();
    let value = {
        let [own, costs] = [weights.clone().inner(), costs.clone()].map(row_major);
        let points = row_major(points.clone());
        forward(
            &Units::new(R::values(&own)),
            R::values(&points),
            R::values(&costs),
            leak,
        )
    };
    let value = R::new_tensor(value, [2, rows, columns]);
    let (points, costs) = (points.clone(), costs.clone());
    with_gradient(
        weights.clone(),
        value,
        move |weights, _value, grad: Tensor<3>| {
            let [weights, costs] = [weights, costs.clone()].map(row_major);
            let (points, grad) = (row_major(points.clone()), row_major(grad));
            let weights = R::values(&weights);
            let gradient = backward(
                &Units::new(weights),
                R::values(&points),
                R::values(&costs),
                R::values(&grad),
                leak,
            );
            R::new_tensor(gradient, [weights.len()])
        },
    )
}

#[inline(always)]
fn leaky<R: Real>(x: R, leak: R) -> R {
    if x < R::ZERO { x * leak } else { x }
}

/// Sums over the points of a row, one number for each point.
fn forward<R: Real>(units: &Units<R>, points: &[R], costs: &[R], leak: R) -> Vec<R> {
    let columns = points.len() / costs.len();
    let mut out = vec![R::ZERO; 2 * points.len()];
    let (first, second) = out.split_at_mut(points.len());
    vectorised(
        #[inline(always)]
        || {
            let rows = points.chunks_exact(columns).zip(costs);
            let outs = first
                .chunks_exact_mut(columns)
                .zip(second.chunks_exact_mut(columns));
            for ((points, cost), (first, second)) in rows.zip(outs) {
                first.fill(units.shifts[0]);
                second.fill(units.shifts[1]);
                for unit in 0..units.bias.len() {
                    let by_point = units.by_point[unit];
                    let shift = units.by_cost[unit] * *cost + units.bias[unit];
                    let [v, w] = units.outputs.map(|weights| weights[unit]);
                    for (x, (first, second)) in
                        points.iter().zip(first.iter_mut().zip(&mut *second))
                    {
                        let value = leaky(by_point * *x + shift, leak);
                        *first += v * value;
                        *second += w * value;
                    }
                }
            }
        },
    );
    out
}

/// A number for each of some hidden units.
type Lanes<R> = [R; LANES];

/// Hidden units in whole blocks, with zeros behind the last one.
fn blocks<R: Real>(units: &[R]) -> Vec<Lanes<R>> {
    let block = |part: &[R]| {
        let mut block = [R::ZERO; LANES];
        block[..part.len()].copy_from_slice(part);
        block
    };
    units.chunks(LANES).map(block).collect()
}

/// The gradient of the weights, in their order.
fn backward<R: Real>(units: &Units<R>, points: &[R], costs: &[R], grad: &[R], leak: R) -> Vec<R> {
    let columns = points.len() / costs.len();
    let hidden = units.bias.len();
    let (first, second) = grad.split_at(points.len());
    let [w, y, b] = [units.by_point, units.by_cost, units.bias].map(blocks);
    let [v, u] = units.outputs.map(blocks);
    let zero = || vec![[R::ZERO; LANES]; w.len()];
    let mut sums = [0; 5].map(|_| zero());
    let mut shifts = [R::ZERO; 2];
    vectorised(
        #[inline(always)]
        || {
            for (row, cost) in costs.iter().enumerate() {
                let own = row * columns..(row + 1) * columns;
                let (points, first, second) =
                    (&points[own.clone()], &first[own.clone()], &second[own]);
                for block in 0..w.len() {
                    let (w, v, u) = (&w[block], &v[block], &u[block]);
                    let mut shift = [R::ZERO; LANES];
                    for lane in 0..LANES {
                        shift[lane] = y[block][lane] * *cost + b[block][lane];
                    }
                    let mut by_point = [R::ZERO; LANES];
                    let mut bias = [R::ZERO; LANES];
                    let mut by_first = [R::ZERO; LANES];
                    let mut by_second = [R::ZERO; LANES];
                    for (x, (g, h)) in points.iter().zip(first.iter().zip(second)) {
                        for lane in 0..LANES {
                            let before = w[lane] * *x + shift[lane];
                            let value = leaky(before, leak);
                            let slope = if before < R::ZERO { leak } else { R::ONE };
                            let through = (*g * v[lane] + *h * u[lane]) * slope;
                            by_point[lane] += through * *x;
                            bias[lane] += through;
                            by_first[lane] += *g * value;
                            by_second[lane] += *h * value;
                        }
                    }
                    for lane in 0..LANES {
                        sums[0][block][lane] += by_point[lane];
                        sums[1][block][lane] += bias[lane] * *cost;
                        sums[2][block][lane] += bias[lane];
                        sums[3][block][lane] += by_first[lane];
                        sums[4][block][lane] += by_second[lane];
                    }
                }
                for (shift, grad) in shifts.iter_mut().zip([first, second]) {
                    *shift += lane_sum(grad);
                }
            }
        },
    );
    let parts = sums.iter().flat_map(|part| &part.as_flattened()[..hidden]);
    parts.chain(&shifts).copied().collect()
}
