//! A layer of a network in one op: product, bias and an optional leaky rectifier.

use std::cell::Cell;

use burn::tensor::activation::leaky_relu;
use burn::tensor::{Tensor, module};

thread_local! {
    /// Whether this thread composes its layers of burn's operations.
    static COMPOSED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a computation whose layers ([`affine`] and [`bit_affine`](super::bit_affine)) are composed of
/// burn's operations, also where there are kernels: to compare the two, or to have the bits of a
/// backend without kernels.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::fused::{affine, composed_layers};
///
/// let ones = Tensor::<2>::ones([2, 2], &Device::flex());
/// let layer = || affine(ones.clone(), ones.clone(), Tensor::ones([2], &Device::flex()), None);
/// assert_eq!(composed_layers(layer).to_data(), layer().to_data());
/// ```
pub fn composed_layers<T>(compute: impl FnOnce() -> T) -> T {
    /// Puts the former state back, also after a panic.
    struct Former(bool);
    impl Drop for Former {
        fn drop(&mut self) {
            COMPOSED.set(self.0);
        }
    }
    let _former = Former(COMPOSED.replace(true));
    compute()
}

/// `x W + b` of rows `x` `[rows, inputs]`, a weight `[inputs, outputs]` and a bias `[outputs]`,
/// followed by a leaky rectifier if there is a slope: negative values are multiplied by it.
///
/// For `f32` tensors of the flex backend and slopes above zero, bias and rectifier take one pass
/// over memory, and so do their gradients; transposed products read their operands in place, and
/// what nobody reads is not computed. For everything else the layer is composed of burn's
/// operations: the same values up to rounding.
///
/// # Panics
///
/// If the shapes do not fit.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::fused::affine;
///
/// let device = Device::flex().autodiff();
/// let x = Tensor::<2>::from_floats([[1.0, 2.0]], &device);
/// let weight = Tensor::<2>::from_floats([[1.0, 0.0], [0.5, -3.0]], &device).require_grad();
/// let bias = Tensor::<1>::from_floats([1.0, 1.0], &device);
/// let y = affine(x, weight.clone(), bias, Some(0.1));
/// assert_eq!(y.to_data().try_to_vec::<f32>().unwrap(), [3.0, -0.5]);
///
/// let gradient = weight.grad(&y.sum().backward()).unwrap();
/// assert_eq!(gradient.to_data().try_to_vec::<f32>().unwrap(), [1.0, 0.1, 2.0, 0.2]);
/// ```
pub fn affine(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<1>, slope: Option<f64>) -> Tensor<2> {
    #[cfg(feature = "flex")]
    if kernel::fits(&x, &weight, &bias, slope) {
        return kernel::affine(x, weight, bias, slope);
    }
    composed(x, weight, bias, slope)
}

/// [`affine`] from burn's operations.
pub(super) fn composed(
    x: Tensor<2>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    slope: Option<f64>,
) -> Tensor<2> {
    let y = module::linear(x, weight, Some(bias));
    match slope {
        Some(slope) => leaky_relu(y, slope),
        None => y,
    }
}

/// The way through the kernels.
#[cfg(feature = "flex")]
pub(super) mod kernel {
    use std::sync::Arc;

    use burn::backend::flex::FlexTensor;
    use burn::tensor::{DType, Tensor};

    use super::super::flex::{Stored, has_kernels, row_major, to_tensor};
    use super::super::layer::{bend_and_sum, finish, sum_rows};
    use super::super::product::{Transposed, product};
    use super::super::tape::{LayerGradients, LayerRule, Wanted, on_the_tape};
    use super::COMPOSED;

    pub fn fits(x: &Tensor<2>, weight: &Tensor<2>, bias: &Tensor<1>, slope: Option<f64>) -> bool {
        let single = |dtype| dtype == DType::F32;
        !COMPOSED.get()
            && single(x.dtype())
            && single(weight.dtype())
            && single(bias.dtype())
            && slope.is_none_or(|slope| slope > 0.0)
            && x.dims()[0] > 0
            && has_kernels(&x.clone().inner())
            && has_kernels(&weight.clone().inner())
            && has_kernels(&bias.clone().inner())
    }

    pub fn affine(
        x: Tensor<2>,
        weight: Tensor<2>,
        bias: Tensor<1>,
        slope: Option<f64>,
    ) -> Tensor<2> {
        let slope = slope.map(|slope| slope as f32);
        let (constant_x, constant_weight) = (x.clone().inner(), weight.clone().inner());
        let product = product(
            constant_x.clone(),
            constant_weight.clone(),
            Transposed::Neither,
        );
        let mut value = row_major(product);
        let shift = row_major(bias.clone().inner());
        finish(values_mut(&mut value), f32::values(&shift), slope);
        let rule = Affine {
            x: constant_x,
            weight: constant_weight,
            slope,
        };
        on_the_tape([x, weight], bias, to_tensor(value), Arc::new(rule))
    }

    /// The values of a tensor in row-major order. A buffer that others use too is copied before.
    pub fn values_mut(x: &mut FlexTensor) -> &mut [f32] {
        let (start, end) = x.layout().contiguous_offsets().expect("row-major order");
        &mut x.storage_mut::<f32>()[start..end]
    }

    /// The gradient before the rectifier and, if somebody reads them, its sums over the rows.
    pub fn before_rectifier(
        value: Tensor<2>,
        grad: Tensor<2>,
        slope: Option<f32>,
        summed: bool,
    ) -> (Tensor<2>, Option<Vec<f32>>) {
        let columns = grad.dims()[1];
        let mut grad = row_major(grad);
        let mut sums = vec![0.0; columns];
        if let Some(slope) = slope {
            let value = row_major(value);
            let values = f32::values(&value);
            bend_and_sum(values, values_mut(&mut grad), slope, &mut sums);
        } else if summed {
            sum_rows(f32::values(&grad), &mut sums);
        }
        (to_tensor(grad), summed.then_some(sums))
    }

    /// `dx = g W^T`, `dW = x^T g` and the sums of `g` over the rows.
    #[derive(Debug)]
    struct Affine {
        x: Tensor<2>,
        weight: Tensor<2>,
        slope: Option<f32>,
    }

    impl LayerRule for Affine {
        fn backward(&self, value: Tensor<2>, grad: Tensor<2>, wanted: Wanted) -> LayerGradients {
            let columns = grad.dims()[1];
            let (grad, sums) = before_rectifier(value, grad, self.slope, wanted.bias);
            let weight = wanted
                .weight
                .then(|| product(self.x.clone(), grad.clone(), Transposed::Left));
            let input = wanted
                .input
                .then(|| product(grad, self.weight.clone(), Transposed::Right));
            LayerGradients {
                input,
                weight,
                bias: sums.map(|sums| f32::new_tensor(sums, [columns])),
            }
        }
    }
}
