//! What the tensors of the suite are computed on: burn's CPU backend, unless a test binary chooses another
//! device before its first check. A device that was chosen computes in single precision.

use std::sync::OnceLock;

use burn::tensor::{DType, Device, Tensor, TensorData};

static DEVICE: OnceLock<Device> = OnceLock::new();

/// Chooses the device, once for the whole process.
///
/// # Panics
///
/// If there was a choice before.
pub fn choose(device: Device) {
    DEVICE.set(device).expect("a device is chosen once");
}

/// The device, without autodiff.
pub fn device() -> Device {
    DEVICE.get().cloned().unwrap_or_else(Device::flex)
}

/// A type of numbers, or single precision on a device that was chosen.
pub fn dtype(wanted: DType) -> DType {
    match DEVICE.get() {
        Some(_) => DType::F32,
        None => wanted,
    }
}

/// The types of numbers that are looked at: both precisions, or single precision alone.
pub fn dtypes() -> &'static [DType] {
    match dtype(DType::F64) {
        DType::F64 => &[DType::F32, DType::F64],
        _ => &[DType::F32],
    }
}

/// A tolerance for double precision, or the same number of units in the last place of single precision.
pub fn tolerance(double: f64) -> f64 {
    match dtype(DType::F64) {
        DType::F64 => double,
        _ => double * f64::from(f32::EPSILON) / f64::EPSILON,
    }
}

/// A constant tensor on a device.
pub fn tensor_on<const D: usize>(
    device: &Device,
    values: Vec<f64>,
    shape: [usize; D],
    dtype: DType,
) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values, shape), (device, dtype))
}
