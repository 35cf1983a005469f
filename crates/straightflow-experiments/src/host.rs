//! Tensors on the host.

use burn::tensor::{DType, Tensor};

/// The values of a tensor in row-major order, whatever its type and tape.
pub(crate) fn to_host<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    let data = x.inner().into_data_dtype(DType::F64);
    data.try_into_vec().expect("the data was converted to f64")
}
