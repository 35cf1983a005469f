//! The loops of layers, over slices in row-major order; see `kernel` for how they are compiled.

use super::kernel::vectorised;

/// Adds the bias to each row and, if there is a slope, multiplies what is negative by it.
pub(super) fn finish(rows: &mut [f32], bias: &[f32], slope: Option<f32>) {
    vectorised(
        #[inline(always)]
        || {
            for row in rows.chunks_exact_mut(bias.len()) {
                for (y, b) in row.iter_mut().zip(bias) {
                    *y = rectified(*y + *b, slope);
                }
            }
        },
    );
}

#[inline(always)]
fn rectified(y: f32, slope: Option<f32>) -> f32 {
    match slope {
        Some(slope) if y < 0.0 => y * slope,
        _ => y,
    }
}

/// From the gradient of rectified rows to the one before the rectifier, in place, and its sums over
/// the rows. A positive slope keeps signs, so the values after the rectifier tell where it bent.
pub(super) fn bend_and_sum(values: &[f32], grad: &mut [f32], slope: f32, sums: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            let columns = sums.len();
            let rows = values
                .chunks_exact(columns)
                .zip(grad.chunks_exact_mut(columns));
            for (values, grad) in rows {
                for ((y, g), sum) in values.iter().zip(grad).zip(sums.iter_mut()) {
                    *g = if *y < 0.0 { *g * slope } else { *g };
                    *sum += *g;
                }
            }
        },
    );
}

/// The sums of a matrix over its rows.
pub(super) fn sum_rows(matrix: &[f32], sums: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for row in matrix.chunks_exact(sums.len()) {
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum += *x;
                }
            }
        },
    );
}

/// Lists of places, one after the other.
pub(super) trait Lists {
    /// List number `index`.
    fn list(&self, index: usize) -> &[u32];
}

/// For each list `i`: `out_i = base(i) + scale * (the sum of the rows of the matrix in the list)`,
/// where `base(i)` is `shift + offset_i * direction`, column by column.
///
/// Blocks of columns stay in registers while the rows of a list are added.
pub(super) struct Sums<'a, L> {
    pub matrix: &'a [f32],
    pub columns: usize,
    pub lists: &'a L,
    pub scale: f32,
}

impl<L: Lists> Sums<'_, L> {
    /// The forward pass: `rectified(base + scale * sum)`, where `base` is the bias plus the sum of all
    /// rows of the matrix, each times its offset.
    pub fn forward(
        &self,
        bias: &[f32],
        offsets: Option<&[f32]>,
        slope: Option<f32>,
        out: &mut [f32],
    ) {
        vectorised(
            #[inline(always)]
            || {
                let mut from = 0;
                while from < self.columns {
                    from += match self.columns - from {
                        96.. => self.forward_block::<96>(from, bias, offsets, slope, out),
                        64.. => self.forward_block::<64>(from, bias, offsets, slope, out),
                        40.. => self.forward_block::<40>(from, bias, offsets, slope, out),
                        16.. => self.forward_block::<16>(from, bias, offsets, slope, out),
                        8.. => self.forward_block::<8>(from, bias, offsets, slope, out),
                        _ => self.forward_block::<1>(from, bias, offsets, slope, out),
                    };
                }
            },
        );
    }

    #[inline(always)]
    fn forward_block<const W: usize>(
        &self,
        from: usize,
        bias: &[f32],
        offsets: Option<&[f32]>,
        slope: Option<f32>,
        out: &mut [f32],
    ) -> usize {
        let mut base = *block::<W>(bias, from);
        for (row, offset) in offsets.unwrap_or(&[]).iter().enumerate() {
            let row = block::<W>(self.matrix, row * self.columns + from);
            for (base, x) in base.iter_mut().zip(row) {
                *base += *offset * *x;
            }
        }
        for (index, out) in out.chunks_exact_mut(self.columns).enumerate() {
            let sum = self.sum::<W>(index, from);
            for (out, (base, sum)) in out[from..].iter_mut().zip(base.iter().zip(sum)) {
                *out = rectified(*base + self.scale * sum, slope);
            }
        }
        W
    }

    /// The backward pass: `offset_i * direction + scale * sum`, one row for each list.
    pub fn backward(&self, direction: &[f32], offsets: Option<&[f32]>, out: &mut [f32]) {
        vectorised(
            #[inline(always)]
            || {
                let mut from = 0;
                while from < self.columns {
                    from += match self.columns - from {
                        96.. => self.backward_block::<96>(from, direction, offsets, out),
                        64.. => self.backward_block::<64>(from, direction, offsets, out),
                        40.. => self.backward_block::<40>(from, direction, offsets, out),
                        16.. => self.backward_block::<16>(from, direction, offsets, out),
                        8.. => self.backward_block::<8>(from, direction, offsets, out),
                        _ => self.backward_block::<1>(from, direction, offsets, out),
                    };
                }
            },
        );
    }

    #[inline(always)]
    fn backward_block<const W: usize>(
        &self,
        from: usize,
        direction: &[f32],
        offsets: Option<&[f32]>,
        out: &mut [f32],
    ) -> usize {
        let direction = *block::<W>(direction, from);
        for (index, out) in out.chunks_exact_mut(self.columns).enumerate() {
            let offset = offsets.map_or(0.0, |offsets| offsets[index]);
            let sum = self.sum::<W>(index, from);
            for (out, (x, sum)) in out[from..].iter_mut().zip(direction.iter().zip(sum)) {
                *out = offset * *x + self.scale * sum;
            }
        }
        W
    }

    /// The sum of the rows of a list, in the columns from `from` on.
    #[inline(always)]
    fn sum<const W: usize>(&self, list: usize, from: usize) -> [f32; W] {
        let mut sum = [0.0; W];
        for row in self.lists.list(list) {
            let row = block::<W>(self.matrix, *row as usize * self.columns + from);
            for (sum, x) in sum.iter_mut().zip(row) {
                *sum += *x;
            }
        }
        sum
    }
}

#[inline(always)]
fn block<const W: usize>(values: &[f32], from: usize) -> &[f32; W] {
    values[from..]
        .first_chunk()
        .expect("a block inside of a row")
}
