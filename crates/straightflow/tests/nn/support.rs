//! Tensors from numbers and back, records, and comparisons.

use burn::module::Module;
use burn::store::ModuleRecord;
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use straightflow::Error;

/// The values of a tensor as `f64`, whatever its type and tape.
pub fn values<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.inner()
        .into_data_dtype(DType::F64)
        .try_into_vec()
        .expect("f64 values")
}

/// The values of a tensor of integers.
pub fn integers<const D: usize>(x: Tensor<D, Int>) -> Vec<i64> {
    x.into_data_dtype(DType::I64)
        .try_into_vec()
        .expect("i64 values")
}

/// A constant tensor.
pub fn tensor<const D: usize>(values: &[f64], shape: [usize; D], dtype: DType) -> Tensor<D> {
    Tensor::from_data(
        TensorData::new(values.to_vec(), shape),
        (&Device::flex(), dtype),
    )
}

/// A tensor on an autodiff device that wants its gradient.
pub fn leaf<const D: usize>(values: &[f64], shape: [usize; D], dtype: DType) -> Tensor<D> {
    let device = Device::flex().autodiff();
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (&device, dtype)).require_grad()
}

/// The gradient of `sum(output * weights)` with respect to `input`.
pub fn pull_back<const D: usize, const E: usize>(
    input: &Tensor<D>,
    output: Tensor<E>,
    weights: &[f64],
) -> Vec<f64> {
    let weights = tensor(weights, output.dims(), output.dtype());
    let grads = (output * weights).sum().backward();
    values(input.grad(&grads).expect("a gradient"))
}

/// Fails if two vectors differ by more than a tolerance, relative to the larger of 1 and the
/// largest entry.
#[track_caller]
pub fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: lengths differ");
    assert!(
        got.iter().all(|x| x.is_finite()),
        "{what}: not finite: {got:?}"
    );
    let size = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let gaps = got.iter().zip(want).map(|(a, b)| (a - b).abs());
    let error = gaps.fold(0.0, f64::max) / size;
    assert!(
        error <= tolerance,
        "{what}: error {error:.2e} above {tolerance:.0e}\n got {got:?}\nwant {want:?}"
    );
}

/// A module that was saved, and loaded into another one of the same configuration.
pub fn reload<M: Module>(saved: &M, fresh: M) -> M {
    let bytes = saved.clone().into_record().into_bytes().expect("a record");
    fresh.load_record(ModuleRecord::from_bytes(bytes).expect("a record"))
}

/// The layer and the option that an error names.
#[track_caller]
pub fn refused<T>(outcome: Result<T, Error>) -> (&'static str, &'static str) {
    match outcome.map(|_| ()) {
        Err(Error::InvalidLayer { layer, option, .. }) => (layer, option),
        Err(other) => panic!("another error: {other}"),
        Ok(()) => panic!("not refused"),
    }
}
