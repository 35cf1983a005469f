//! What several modules need: tensors from numbers and back, and one distribution of each family.

use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::distribution::{FamilyKind, Law};

/// The values of a tensor as `f64`, whatever its type and tape.
pub fn values<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    x.inner()
        .into_data_dtype(DType::F64)
        .try_into_vec()
        .expect("f64 values")
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

/// The largest difference of two vectors, relative to the larger of 1 and the largest entry.
pub fn error(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len(), "lengths differ");
    assert!(got.iter().all(|x| x.is_finite()), "not finite: {got:?}");
    let size = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let gaps = got.iter().zip(want).map(|(a, b)| (a - b).abs());
    gaps.fold(0.0, f64::max) / size
}

/// Fails with both vectors if they differ by more than a tolerance (see [`error`]).
#[track_caller]
pub fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    let error = error(got, want);
    assert!(
        error <= tolerance,
        "{what}: error {error:.2e} above {tolerance:.0e}\n got {got:?}\nwant {want:?}"
    );
}

/// A law of every family with a score, with moderate parameters, `[2, 2]` or `[2, 2, 3]`.
pub fn laws(dtype: DType) -> Vec<Law> {
    let ordered = [0.3, -1.2, 0.8, 0.1];
    let logits: Vec<f64> = (0..12).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let law = |kind: &FamilyKind| {
        let (family, _) = kind.examples().swap_remove(0);
        let natural = match family.is_vector() {
            true => tensor(&logits, [2, 2, 3], dtype),
            false => tensor(&ordered, [2, 2, 1], dtype),
        };
        Law::new(family, natural).expect("valid")
    };
    FamilyKind::WITH_SCORE.iter().map(law).collect()
}
