//! What the tensors of a training are computed on.

use burn::tensor::Device;
use serde::{Deserialize, Serialize};

use crate::arguments::Words;

/// The processors, in words.
pub const PROCESSORS: &Words = &[
    ("cpu", "burn's pure-Rust backend"),
    (
        "wgpu",
        "A GPU through Vulkan, Metal or DirectX; feature `wgpu`",
    ),
    ("cuda", "An NVIDIA GPU; feature `cuda`"),
];

/// What tensors are computed on. Random numbers come from the same keys everywhere; sums are rounded in
/// another order, so results agree statistically and not bit for bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Processor {
    /// The CPU.
    #[default]
    Cpu,
    /// A GPU through WebGPU.
    Wgpu,
    /// An NVIDIA GPU.
    Cuda,
}

/// Why a processor cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessorError {
    /// The program was built without it.
    #[error("this program was built without `{0}`: rebuild it with --features {0}")]
    NotBuilt(&'static str),
    /// The machine has none.
    #[error("no device for `{0}` was found: its driver is missing, or the machine has none")]
    NotFound(&'static str),
}

impl Processor {
    /// The word in commands and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
        }
    }

    /// Whether it is the CPU, which records do not mention.
    pub fn is_cpu(&self) -> bool {
        *self == Self::Cpu
    }

    /// Whether the program was built for it.
    ///
    /// # Errors
    ///
    /// If it was not.
    pub fn check(self) -> Result<(), ProcessorError> {
        let built = match self {
            Self::Cpu => true,
            Self::Wgpu => cfg!(feature = "wgpu"),
            Self::Cuda => cfg!(feature = "cuda"),
        };
        match built {
            true => Ok(()),
            false => Err(ProcessorError::NotBuilt(self.name())),
        }
    }

    /// Its device, without autodiff. With several of a kind it is the first; for WebGPU,
    /// `CUBECL_WGPU_DEFAULT_DEVICE` chooses another.
    ///
    /// # Errors
    ///
    /// If the program was built without it, or the machine has none.
    pub fn open(self) -> Result<Device, ProcessorError> {
        match self {
            Self::Cpu => Ok(Device::flex()),
            Self::Wgpu => wgpu(),
            Self::Cuda => cuda(),
        }
    }
}

#[cfg(feature = "wgpu")]
fn wgpu() -> Result<Device, ProcessorError> {
    use burn::tensor::{DeviceKind, DeviceType};
    match Device::enumerate(DeviceType::Wgpu).into_vec().is_empty() {
        true => Err(ProcessorError::NotFound("wgpu")),
        false => Ok(Device::wgpu(DeviceKind::DefaultDevice)),
    }
}

#[cfg(not(feature = "wgpu"))]
fn wgpu() -> Result<Device, ProcessorError> {
    Err(ProcessorError::NotBuilt("wgpu"))
}

#[cfg(feature = "cuda")]
fn cuda() -> Result<Device, ProcessorError> {
    use burn::tensor::DeviceType;
    match Device::enumerate(DeviceType::Cuda).into_vec().is_empty() {
        true => Err(ProcessorError::NotFound("cuda")),
        false => Ok(Device::cuda(0)),
    }
}

#[cfg(not(feature = "cuda"))]
fn cuda() -> Result<Device, ProcessorError> {
    Err(ProcessorError::NotBuilt("cuda"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::assert_known;

    #[test]
    fn the_words_of_the_command_line_are_processors() {
        assert_known::<Processor>(PROCESSORS);
        for (word, _) in PROCESSORS {
            let processor: Processor =
                serde_json::from_value((*word).into()).expect("a word of the records");
            assert_eq!(processor.name(), *word);
        }
    }

    #[test]
    fn what_was_not_built_is_refused() {
        assert!(Processor::Cpu.check().is_ok() && Processor::Cpu.open().is_ok());
        #[cfg(not(feature = "cuda"))]
        {
            let error = Processor::Cuda.open().expect_err("it was not built");
            assert_eq!(error, ProcessorError::NotBuilt("cuda"));
            assert_eq!(Processor::Cuda.check(), Err(error));
        }
    }
}
