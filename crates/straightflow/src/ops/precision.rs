//! Whether a device computes in the precision of its tensors.

#[cfg(any(feature = "wgpu", feature = "cuda"))]
use std::sync::Mutex;

use burn::tensor::Tensor;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use burn::tensor::{DType, Device};

#[cfg(any(feature = "wgpu", feature = "cuda"))]
use crate::error::Error;
use crate::error::Result;

/// What was found out so far.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
static KNOWN: Mutex<Vec<(Device, bool)>> = Mutex::new(Vec::new());

/// Refuses double precision on a device that stores and adds such numbers, and whose exponential of them is
/// wrong: Vulkan has that function in single precision only, and burn calls it nevertheless.
///
/// # Errors
///
/// [`DoublePrecision`](Error::DoublePrecision).
#[cfg(any(feature = "wgpu", feature = "cuda"))]
pub(crate) fn check_precision<const D: usize>(x: &Tensor<D>) -> Result<()> {
    if x.dtype() != DType::F64 {
        return Ok(());
    }
    let device = x.device().inner();
    let mut known = KNOWN
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let found = known.iter().find(|(other, _)| *other == device);
    let right = match found {
        Some((_, right)) => *right,
        None => {
            let one = Tensor::<1>::ones([1], (&device, DType::F64));
            let got = super::to_host(one.exp())[0];
            let right = (got - std::f64::consts::E).abs() < 1e-12;
            known.push((device, right));
            right
        }
    };
    match right {
        true => Ok(()),
        false => Err(Error::DoublePrecision),
    }
}

/// The CPU backend has both precisions.
#[cfg(not(any(feature = "wgpu", feature = "cuda")))]
pub(crate) fn check_precision<const D: usize>(_: &Tensor<D>) -> Result<()> {
    Ok(())
}
