//! The backward rule of the rotation trick.

use burn::tensor::Tensor;

/// `lambda R' g` with `R` the rotation from the input to the output, on the last axis.
pub(super) fn rotated<const D: usize>(
    input: Tensor<D>,
    output: Tensor<D>,
    grad: Tensor<D>,
) -> Tensor<D> {
    let epsilon = input.dtype().finfo().expect("a type of floats").epsilon;
    let ((u, input_norm), (w, output_norm)) = (direction(input), direction(output));
    let scale = output_norm / input_norm;
    let sum = u.clone() + w.clone();
    let square = sum.clone().square().sum_dim(D - 1);
    // R'g = g - 2 a (a.g) + 2 u (w.g), and a a' = sum sum' / |sum|^2.
    let reflected = sum.clone() * (dot(sum, &grad) * 2.0 / square.clone());
    let turned = grad.clone() - reflected + u * (dot(w, &grad) * 2.0);
    // Opposite vectors leave no digits of their sum, and a zero vector has no direction: there
    // the comparison is false or fails for a number that is not one.
    let defined = square.greater_elem(epsilon);
    let defined = defined.bool_and(scale.clone().is_finite());
    let defined = defined.expand(grad.shape());
    grad.mask_where(defined, turned * scale)
}

/// A vector of length 1, and the length. The largest entry is taken out first, so that no square
/// overflows. The direction of zero is not a number.
fn direction<const D: usize>(x: Tensor<D>) -> (Tensor<D>, Tensor<D>) {
    let largest = x.clone().abs().max_dim(D - 1);
    let x = x / largest.clone();
    let norm = x.clone().square().sum_dim(D - 1).sqrt();
    (x / norm.clone(), norm * largest)
}

fn dot<const D: usize>(a: Tensor<D>, b: &Tensor<D>) -> Tensor<D> {
    (a * b.clone()).sum_dim(D - 1)
}
