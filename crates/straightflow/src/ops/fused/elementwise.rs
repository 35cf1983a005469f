//! Functions of each element, much faster than burn's where a kernel is at hand: for `f32` tensors of
//! the flex backend. burn's call the platform's mathematical library, one element at a time.

use std::sync::Arc;

#[cfg(feature = "flex")]
use burn::tensor::DType;
use burn::tensor::{Tensor, activation};

#[cfg(feature = "flex")]
use super::flex::{Stored, has_kernels, row_major};
#[cfg(feature = "flex")]
use super::kernel::vectorised;
#[cfg(feature = "flex")]
use super::real::{Real, sigmoids};
use crate::ops::{Rule, custom_grad};

/// Whether a tensor is on no tape and has a kernel.
#[cfg(feature = "flex")]
fn single<const D: usize>(x: &Tensor<D>) -> bool {
    x.dtype() == DType::F32 && has_kernels(x)
}

/// A function of each element.
#[cfg(feature = "flex")]
fn map<const D: usize>(x: Tensor<D>, f: impl Fn(f32) -> f32) -> Tensor<D> {
    let shape = x.dims();
    let x = row_major(x);
    let values = f32::values(&x);
    let mut out = vec![0.0; values.len()];
    vectorised(
        #[inline(always)]
        || {
            for (out, x) in out.iter_mut().zip(values) {
                *out = f(*x);
            }
        },
    );
    f32::new_tensor(out, shape)
}

/// A function of the elements of two tensors of one shape.
#[cfg(feature = "flex")]
fn map_pairs<const D: usize>(x: Tensor<D>, y: Tensor<D>, f: impl Fn(f32, f32) -> f32) -> Tensor<D> {
    let shape = x.dims();
    assert_eq!(shape, y.dims(), "two tensors of one shape");
    let (x, y) = (row_major(x), row_major(y));
    let (x, y) = (f32::values(&x), f32::values(&y));
    let mut out = vec![0.0; x.len()];
    vectorised(
        #[inline(always)]
        || {
            for (out, (x, y)) in out.iter_mut().zip(x.iter().zip(y)) {
                *out = f(*x, *y);
            }
        },
    );
    f32::new_tensor(out, shape)
}

/// burn's `sigmoid`; by the kernel if `x` is on no tape, as in rules and samplers.
pub(crate) fn sigmoid<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if single(&x) {
        return map(
            x,
            #[inline(always)]
            |x| sigmoids(x)[0],
        );
    }
    activation::sigmoid(x)
}

/// Slopes below this are zero in single precision. Times a gradient they would give subnormal numbers, with
/// which matrix products take ten times as long.
#[cfg(feature = "flex")]
const FLATTEST: f32 = 1e-30;

/// `grad sigmoid(x) sigmoid(-x)`, for tensors of one shape and on no tape.
pub(crate) fn sigmoid_pullback<const D: usize>(x: Tensor<D>, grad: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if single(&x) && single(&grad) {
        return map_pairs(
            x,
            grad,
            #[inline(always)]
            |x, grad| {
                let [one, zero] = sigmoids(x);
                let slope = one * zero;
                if slope < FLATTEST { 0.0 } else { grad * slope }
            },
        );
    }
    grad * sigmoid(x.clone()) * sigmoid(-x)
}

/// burn's `tanh`.
pub(crate) fn tanh<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if single(&x.clone().inner()) {
        let value = map(
            x.clone().inner(),
            #[inline(always)]
            |x: f32| x.tanh_of_any(),
        );
        return custom_grad(x, value, Arc::new(TanhRule));
    }
    x.tanh()
}

/// `dx = (1 - tanh(x)^2) g`.
#[derive(Debug)]
struct TanhRule;

impl<const D: usize> Rule<D, D> for TanhRule {
    fn backward(&self, _x: Tensor<D>, tanh: Tensor<D>, grad: Tensor<D>) -> Tensor<D> {
        #[cfg(feature = "flex")]
        if single(&tanh) && single(&grad) {
            return map_pairs(
                tanh,
                grad,
                #[inline(always)]
                |tanh, grad| (1.0 - tanh * tanh) * grad,
            );
        }
        (-tanh.square() + 1.0) * grad
    }
}

/// Relaxed bits, the hard ones that belong to them, and what control variates need of both, all
/// `[n, batch, d, 1]` and constant.
#[derive(Clone, Debug)]
pub(crate) struct RelaxedBits {
    /// `logit + ln(u / (1 - u))`.
    pub z: Tensor<4>,
    /// Whether `z` is above zero.
    pub hard: Tensor<4>,
    /// `hard - p`, with all its digits.
    pub score: Tensor<4>,
    /// `(1 - p) / u` where the bit is one, and `p / (1 - u)` where it is zero.
    pub weight: Tensor<4>,
}

/// From logits `[batch, d, 1]` and uniform numbers `[n, batch, d, 1]` of the open interval, on no
/// tape.
pub(crate) fn relaxed_bits(logits: Tensor<3>, u: Tensor<4>) -> RelaxedBits {
    #[cfg(feature = "flex")]
    if logits.dims() == u.dims()[1..] && has_kernels(&logits) && has_kernels(&u) {
        return match (logits.dtype(), u.dtype()) {
            (DType::F32, DType::F32) => relaxed_bits_by_kernel::<f32>(logits, u),
            (DType::F64, DType::F64) => relaxed_bits_by_kernel::<f64>(logits, u),
            _ => composed_relaxed_bits(logits, u),
        };
    }
    composed_relaxed_bits(logits, u)
}

#[cfg(feature = "flex")]
fn relaxed_bits_by_kernel<R: Stored>(logits: Tensor<3>, u: Tensor<4>) -> RelaxedBits {
    let shape = u.dims();
    let (logits, u) = (row_major(logits), row_major(u));
    let (logits, u) = (R::values(&logits), R::values(&u));
    let mut outs = [0; 4].map(|_| vec![R::ZERO; u.len()]);
    let [z, hard, score, weight] = &mut outs;
    vectorised(
        #[inline(always)]
        || {
            for start in (0..u.len()).step_by(logits.len().max(1)) {
                let draw = start..start + logits.len();
                let (z, hard) = (&mut z[draw.clone()], &mut hard[draw.clone()]);
                let (score, weight) = (&mut score[draw.clone()], &mut weight[draw.clone()]);
                let outs = z.iter_mut().zip(hard).zip(score.iter_mut().zip(weight));
                for ((l, u), ((z, hard), (score, weight))) in logits.iter().zip(&u[draw]).zip(outs)
                {
                    let [p, q] = sigmoids(*l);
                    let rest = R::ONE - *u;
                    *z = *l + u.ln_of_unit() - rest.ln_of_unit();
                    let one = *z > R::ZERO;
                    *hard = if one { R::ONE } else { R::ZERO };
                    *score = if one { q } else { R::ZERO - p };
                    *weight = if one { q / *u } else { p / rest };
                }
            }
        },
    );
    let [z, hard, score, weight] = outs.map(|values| R::new_tensor(values, shape));
    RelaxedBits {
        z,
        hard,
        score,
        weight,
    }
}

fn composed_relaxed_bits(logits: Tensor<3>, u: Tensor<4>) -> RelaxedBits {
    let logits = logits.unsqueeze::<4>();
    let (p, q) = (sigmoid(logits.clone()), sigmoid(-logits.clone()));
    let rest = -u.clone() + 1.0;
    let z = logits + u.clone().log() - rest.clone().log();
    let hard = z.clone().greater_elem(0.0).float().cast(z.dtype());
    let zero = -hard.clone() + 1.0;
    RelaxedBits {
        score: hard.clone() * q.clone() - zero.clone() * p.clone(),
        weight: hard.clone() * (q / u) + zero * (p / rest),
        z,
        hard,
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests;
