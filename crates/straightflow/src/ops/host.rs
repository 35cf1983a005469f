//! Element-wise functions that burn does not have, computed on the host in double precision.

use burn::tensor::{DType, Shape, Tensor, TensorData};
use rayon::prelude::*;

/// Elements per task; below twice that, one thread does it all.
const TASK: usize = 1 << 10;

/// The values of a tensor in row-major order, whatever its type and tape.
pub(crate) fn to_host<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.inner()
        .into_data_dtype(DType::F64)
        .try_into_vec()
        .expect("the data was converted to f64")
}

/// A constant tensor of given values, on the device and of the type of `like`.
pub(crate) fn from_host<const D: usize, const E: usize>(
    values: Vec<f64>,
    shape: impl Into<Shape>,
    like: &Tensor<E>,
) -> Tensor<D> {
    let options = (&like.device().inner(), like.dtype());
    Tensor::from_data(TensorData::new(values, shape), options)
}

/// `f(parameter, x)` for every element of `x` `[n, batch, d, 1]` and its parameter
/// `[batch, d, 1]`, as a constant.
pub(crate) fn map_host(
    parameters: Tensor<3>,
    x: Tensor<4>,
    f: impl Fn(f64, f64) -> f64 + Sync,
) -> Tensor<4> {
    let like = x.clone();
    let shape = x.dims();
    let parameters = to_host(parameters);
    let mut values = to_host(x);
    let period = parameters.len();
    assert!(
        values.len().is_multiple_of(period),
        "one parameter for each coordinate"
    );
    values
        .par_chunks_mut(TASK)
        .enumerate()
        .for_each(|(task, chunk)| {
            for (offset, x) in chunk.iter_mut().enumerate() {
                *x = f(parameters[(task * TASK + offset) % period], *x);
            }
        });
    from_host(values, shape, &like)
}

/// The position and value of the first element that is not a finite number.
pub(crate) fn first_non_finite<const D: usize>(x: &Tensor<D>) -> Option<(usize, f64)> {
    if x.dtype() == DType::F32 {
        let data = x.clone().inner().into_data();
        let values = data.as_slice::<f32>().expect("data of type f32");
        // Without an early exit, this is a few instructions for many numbers.
        if values.iter().fold(true, |all, x| all & x.is_finite()) {
            return None;
        }
    }
    let values = to_host(x.clone());
    let index = values.iter().position(|x| !x.is_finite())?;
    Some((index, values[index]))
}
