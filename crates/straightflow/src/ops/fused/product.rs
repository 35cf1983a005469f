//! Matrix products of the flex backend, written once into a new buffer.
//!
//! burn's `matmul` zeroes its result, and copies it afterwards where the bytes are not aligned; `faer`
//! does neither, and is faster where an operand is transposed.

use burn::tensor::Tensor;
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::flex::{Stored, row_major};

/// Larger products, in multiplications, are left to burn, which has threads for them.
const LARGEST: usize = 1 << 25;

/// Which operand is transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transposed {
    Neither,
    Left,
    Right,
}

/// The product of two matrices that have kernels and are of type `f32`. A transposed operand is read
/// in place.
pub(super) fn product(left: Tensor<2>, right: Tensor<2>, transposed: Transposed) -> Tensor<2> {
    let ([r, c], [s, d]) = (left.dims(), right.dims());
    let [rows, inner, columns] = match transposed {
        Transposed::Neither => [r, c, d],
        Transposed::Left => [c, r, d],
        Transposed::Right => [r, c, s],
    };
    if rows * inner * columns > LARGEST {
        return match transposed {
            Transposed::Neither => left.matmul(right),
            Transposed::Left => left.transpose().matmul(right),
            Transposed::Right => left.matmul(right.transpose()),
        };
    }
    let (left, right) = (row_major(left), row_major(right));
    let view = |values, [rows, columns]: [usize; 2], transposed| {
        let matrix = MatRef::from_row_major_slice(values, rows, columns);
        if transposed {
            matrix.transpose()
        } else {
            matrix
        }
    };
    let mut out = vec![0.0; rows * columns];
    matmul(
        MatMut::from_row_major_slice_mut(&mut out, rows, columns),
        Accum::Replace,
        view(f32::values(&left), [r, c], transposed == Transposed::Left),
        view(f32::values(&right), [s, d], transposed == Transposed::Right),
        1.0,
        Par::Seq,
    );
    f32::new_tensor(out, [rows, columns])
}
