//! One computation in three places: on the CPU in double and in single precision, and on the device.
//!
//! Where the tolerance comes from. The distance of the CPU's single precision from double precision is what
//! the conditioning of a computation makes of errors of about one unit in the last place for each step. On
//! the device a step may be off by [`WORSE`] such units, because that is what its functions are held to
//! (`function::exp` and so on are tests of their own), so the result may be off by as many times the
//! CPU's distance. Where the CPU is exact by luck, its last place counts as its distance.

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::Law;
use straightflow_conformance::device::{device, tensor_on};
use straightflow_conformance::gradients::{error, to_vec};

/// Units in the last place that a function of the device may be off by, for one of the CPU. WebGPU allows
/// `exp` an error of `3 + 2 |x|` of them, and arguments of the suite's problems are below 6 in size.
pub const WORSE: f64 = 16.0;
/// One unit in the last place of a number like 1.
pub const UNIT: f64 = f32::EPSILON as f64;

/// A device and a type of numbers.
#[derive(Clone, Debug)]
pub struct Place {
    pub device: Device,
    pub dtype: DType,
}

impl Place {
    /// The CPU backend.
    pub fn cpu(dtype: DType) -> Self {
        Self {
            device: Device::flex(),
            dtype,
        }
    }

    /// The device under test.
    pub fn device() -> Self {
        Self {
            device: device(),
            dtype: DType::F32,
        }
    }

    /// A constant of given numbers.
    pub fn tensor<const D: usize>(&self, values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        tensor_on(&self.device, values, shape, self.dtype)
    }

    /// The same numbers, here.
    pub fn copy<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let shape = x.dims();
        self.tensor(to_vec(x), shape)
    }

    /// The same law, here.
    pub fn law(&self, law: &Law) -> Law {
        Law::new(law.family(), self.copy(law.natural())).expect("valid parameters")
    }
}

/// Runs a computation in the three places. It gives the distance of the CPU's single precision from its
/// double precision.
pub fn compare(
    what: impl std::fmt::Display,
    run: impl Fn(&Place) -> Result<Vec<f64>, String>,
) -> Result<f64, String> {
    let exact = run(&Place::cpu(DType::F64))?;
    let cpu = error(&run(&Place::cpu(DType::F32))?, &exact) + UNIT;
    let device = error(&run(&Place::device())?, &exact);
    match device <= WORSE * cpu {
        true => Ok(cpu),
        false => Err(format!(
            "{what}: {device:.1e} from double precision, where the CPU's single precision is {cpu:.1e} away"
        )),
    }
}

/// Whether the CPU and the device have the same numbers, to the bit.
pub fn same(what: impl std::fmt::Display, cpu: &[f64], device: &[f64]) -> Result<(), String> {
    let pairs = cpu.iter().zip(device).enumerate();
    let other = pairs.filter(|(_, (cpu, device))| cpu.to_bits() != device.to_bits());
    match other.collect::<Vec<_>>()[..] {
        [] if cpu.len() == device.len() => Ok(()),
        [] => Err(format!(
            "{what}: {} numbers for {}",
            device.len(),
            cpu.len()
        )),
        [(index, (cpu, device)), ..] => Err(format!(
            "{what}: number {index} is {device}, on the CPU {cpu}"
        )),
    }
}
