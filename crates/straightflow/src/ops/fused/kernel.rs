//! The loops, over slices, compiled for several instruction sets.
//!
//! The functions that [`vectorised`] calls, and all that these call, are `#[inline(always)]`: only
//! what is inlined there is compiled with the instructions that the CPU was found to have.

use super::real::Real;

/// Partial sums of a row: one register of the widest instruction set, for `f32`.
pub(super) const LANES: usize = 16;

/// Runs a loop with the best instructions of this CPU.
///
/// `pulp::Arch` would do, but leaves AVX2 out unless a feature of pulp is switched on that burn's
/// matrix product does not need, and pulp is built only once.
pub(super) fn vectorised(work: impl FnOnce()) {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(avx_512) = pulp::x86::V4::try_new() {
            return avx_512.vectorize(work);
        }
        if let Some(avx_2) = pulp::x86::V3::try_new() {
            return avx_2.vectorize(work);
        }
    }
    work();
}

/// Two matrices with `d` columns whose rows meet each other: row `i` of the longer one meets row
/// `i % rows` of the shorter one.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, R> {
    pub logits: &'a [R],
    pub x: &'a [R],
    pub d: usize,
}

impl<'a, R: Real> Rows<'a, R> {
    fn len(&self) -> usize {
        self.logits.len().max(self.x.len()) / self.d
    }

    /// The pairs that a row of a matrix of this size is part of.
    #[inline(always)]
    fn pairs_of(&self, row: usize, matrix: &[R]) -> impl Iterator<Item = usize> + use<R> {
        (row..self.len()).step_by(matrix.len() / self.d)
    }

    #[inline(always)]
    fn logits_of(&self, pair: usize) -> &'a [R] {
        row_of(self.logits, pair, self.d)
    }

    #[inline(always)]
    fn x_of(&self, pair: usize) -> &'a [R] {
        row_of(self.x, pair, self.d)
    }

    /// `sum_j x l - ln(1 + exp(l))` of each pair.
    pub fn log_prob(self) -> Vec<R> {
        let mut out = vec![R::ZERO; self.len()];
        vectorised(
            #[inline(always)]
            || self.write_log_prob(&mut out),
        );
        out
    }

    /// Each logarithm is computed once, however often its row is repeated.
    #[inline(always)]
    fn write_log_prob(self, out: &mut [R]) {
        let mut tail = vec![R::ZERO; self.d];
        for (row, logits) in self.logits.chunks_exact(self.d).enumerate() {
            for (tail, l) in tail.iter_mut().zip(logits) {
                *tail = l.exp_of_minus_abs().ln_1p_of_unit();
            }
            for pair in self.pairs_of(row, self.logits) {
                out[pair] = row_log_prob(logits, self.x_of(pair), &tail);
            }
        }
    }

    /// [`log_prob`](Self::log_prob) with its derivatives `x - sigmoid(l)` with respect to the logits,
    /// if each row of logits meets one row of `x`: both are made of one exponential.
    pub fn log_prob_and_slopes(self) -> (Vec<R>, Vec<R>) {
        debug_assert!(
            self.logits.len() >= self.x.len(),
            "one pair for each row of logits"
        );
        let mut out = vec![R::ZERO; self.len()];
        let mut slopes = vec![R::ZERO; self.logits.len()];
        vectorised(
            #[inline(always)]
            || {
                let mut tail = vec![R::ZERO; self.d];
                let rows = slopes.chunks_exact_mut(self.d).zip(&mut out).enumerate();
                for (row, (slopes, out)) in rows {
                    let (logits, x) = (self.logits_of(row), self.x_of(row));
                    let values = logits.iter().zip(x).zip(tail.iter_mut().zip(slopes));
                    for ((l, x), (tail, slope)) in values {
                        let e = l.exp_of_minus_abs();
                        *tail = e.ln_1p_of_unit();
                        *slope = slope_of(*l, *x, e / (R::ONE + e));
                    }
                    *out = row_log_prob(logits, x, &tail);
                }
            },
        );
        (out, slopes)
    }

    /// `sum g (x - sigmoid(l))` over the pairs of each row of logits.
    pub fn gradient_by_logits(self, grad: &[R]) -> Vec<R> {
        let mut out = vec![R::ZERO; self.logits.len()];
        vectorised(
            #[inline(always)]
            || self.add_gradient_by_logits(grad, &mut out),
        );
        out
    }

    #[inline(always)]
    fn add_gradient_by_logits(self, grad: &[R], out: &mut [R]) {
        let mut rare = vec![R::ZERO; self.d];
        let rows = self.logits.chunks_exact(self.d);
        for (row, (logits, out)) in rows.zip(out.chunks_exact_mut(self.d)).enumerate() {
            for (rare, l) in rare.iter_mut().zip(logits) {
                *rare = rare_probability(*l);
            }
            for pair in self.pairs_of(row, self.logits) {
                let g = grad[pair];
                let values = logits.iter().zip(self.x_of(pair)).zip(&rare);
                for (out, ((l, x), rare)) in out.iter_mut().zip(values) {
                    *out += g * slope_of(*l, *x, *rare);
                }
            }
        }
    }

    /// `sum g l` over the pairs of each row of `x`.
    pub fn gradient_by_x(self, grad: &[R]) -> Vec<R> {
        let mut out = vec![R::ZERO; self.x.len()];
        vectorised(
            #[inline(always)]
            || self.add_gradient_by_x(grad, &mut out),
        );
        out
    }

    #[inline(always)]
    fn add_gradient_by_x(self, grad: &[R], out: &mut [R]) {
        for (row, out) in out.chunks_exact_mut(self.d).enumerate() {
            for pair in self.pairs_of(row, self.x) {
                let g = grad[pair];
                for (out, l) in out.iter_mut().zip(self.logits_of(pair)) {
                    *out += g * *l;
                }
            }
        }
    }
}

#[inline(always)]
fn row_of<R>(matrix: &[R], pair: usize, d: usize) -> &[R] {
    let row = pair % (matrix.len() / d);
    &matrix[row * d..(row + 1) * d]
}

#[inline(always)]
fn row_log_prob<R: Real>(logits: &[R], x: &[R], tail: &[R]) -> R {
    let mut lanes = [R::ZERO; LANES];
    let (l, l_rest) = logits.as_chunks::<LANES>();
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (t, t_rest) = tail.as_chunks::<LANES>();
    for ((l, x), t) in l.iter().zip(x).zip(t) {
        for lane in 0..LANES {
            lanes[lane] += coordinate(l[lane], x[lane], t[lane]);
        }
    }
    let mut sum = sum_of_lanes(lanes);
    for ((l, x), t) in l_rest.iter().zip(x_rest).zip(t_rest) {
        sum += coordinate(*l, *x, *t);
    }
    sum
}

#[inline(always)]
fn sum_of_lanes<R: Real>(lanes: [R; LANES]) -> R {
    let mut sum = R::ZERO;
    for lane in lanes {
        sum += lane;
    }
    sum
}

/// The sum of a row, by lanes.
#[inline(always)]
pub(super) fn lane_sum<R: Real>(row: &[R]) -> R {
    let mut lanes = [R::ZERO; LANES];
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            lanes[lane] += block[lane];
        }
    }
    let mut sum = sum_of_lanes(lanes);
    for x in rest {
        sum += *x;
    }
    sum
}

/// The difference of the first two is exact for `x` of 0 or 1, so nothing cancels.
#[inline(always)]
fn coordinate<R: Real>(l: R, x: R, tail: R) -> R {
    let positive = if l > R::ZERO { l } else { R::ZERO };
    (x * l - positive) - tail
}

/// `x - sigmoid(l)`, given the probability of the less likely value: for `x = 1` and a large logit the
/// difference would have lost its digits.
#[inline(always)]
fn slope_of<R: Real>(l: R, x: R, rare: R) -> R {
    if l >= R::ZERO {
        (x - R::ONE) + rare
    } else {
        x - rare
    }
}

/// Each row of a matrix times its own number.
pub(super) fn scale_rows<R: Real>(matrix: &[R], d: usize, by: &[R]) -> Vec<R> {
    let mut out = Vec::with_capacity(matrix.len());
    vectorised(
        #[inline(always)]
        || {
            for (row, by) in matrix.chunks_exact(d).zip(by) {
                out.extend(row.iter().map(|x| *by * *x));
            }
        },
    );
    out
}

/// The probability `sigmoid(-|l|)` of the less likely value.
#[inline(always)]
fn rare_probability<R: Real>(l: R) -> R {
    let e = l.exp_of_minus_abs();
    e / (R::ONE + e)
}

/// Turns uniform numbers, any number for each logit, into bits: the less likely value occurs where
/// the number is below its probability.
pub(super) fn bits_from_uniform<R: Real>(logits: &[R], values: &mut [R]) {
    let mut rare = vec![R::ZERO; logits.len()];
    vectorised(
        #[inline(always)]
        || {
            for (rare, l) in rare.iter_mut().zip(logits) {
                *rare = rare_probability(*l);
            }
            for draw in values.chunks_exact_mut(logits.len()) {
                for (value, (l, rare)) in draw.iter_mut().zip(logits.iter().zip(&rare)) {
                    let one = (*value < *rare) ^ (*l > R::ZERO);
                    *value = if one { R::ONE } else { R::ZERO };
                }
            }
        },
    );
}

#[cfg(test)]
mod tests;
