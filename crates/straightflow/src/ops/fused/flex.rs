//! From tensors of the flex backend to slices and back.

use burn::backend::{Flex, flex::FlexTensor};
use burn::tensor::{DType, Shape, Tensor, TensorData};

use super::real::Real;

/// Whether the kernels know these values: type `f32` or `f64`, of the flex backend, on no tape.
pub(super) fn has_kernels<const D: usize>(x: &Tensor<D>) -> bool {
    matches!(x.dtype(), DType::F32 | DType::F64) && x.clone().try_into_primitive::<Flex>().is_ok()
}

/// The tensor behind a tensor that [`has_kernels`], in row-major order. It is copied only if it is
/// not in that order yet.
pub(super) fn row_major<const D: usize>(x: Tensor<D>) -> FlexTensor {
    let x = x
        .try_into_primitive::<Flex>()
        .expect("a tensor of the flex backend, on no tape");
    match x.is_contiguous() {
        true => x,
        false => x.to_contiguous(),
    }
}

pub(super) fn to_tensor<const D: usize>(x: FlexTensor) -> Tensor<D> {
    Tensor::from_primitive::<Flex>(x)
}

/// Elements of flex tensors.
pub(super) trait Stored: Real {
    /// The values of a tensor in row-major order.
    fn values(x: &FlexTensor) -> &[Self];

    fn new_tensor<const D: usize>(values: Vec<Self>, shape: impl Into<Shape>) -> Tensor<D>;
}

macro_rules! stored {
    ($($real:ty),*) => {$(
        impl Stored for $real {
            fn values(x: &FlexTensor) -> &[Self] {
                x.as_slice().expect("row-major order and the type of the tensor")
            }

            fn new_tensor<const D: usize>(
                values: Vec<Self>,
                shape: impl Into<Shape>,
            ) -> Tensor<D> {
                to_tensor(FlexTensor::from_data(TensorData::new(values, shape)))
            }
        }
    )*};
}

stored!(f32, f64);
