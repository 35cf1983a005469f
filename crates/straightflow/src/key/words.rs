//! Numbers of the host in the record of a module.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use burn::module::{
    Content, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor, Param,
    ParamId,
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};

/// What a module that has no tensors says of devices.
macro_rules! stays_on_the_host {
    () => {
        fn train(self) -> Self {
            self
        }

        fn materialize(self) -> Self {
            self
        }

        fn to_device(self, _device: &Device) -> Self {
            self
        }

        fn fork(self, _device: &Device) -> Self {
            self
        }

        fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
            devices
        }
    };
}
pub(super) use stays_on_the_host;

/// Words that a module counts with in its forward pass, and that its record has as integers. Copies
/// share them, except that a module in evaluation has its own.
#[derive(Clone, Debug)]
pub(crate) struct Words<const N: usize> {
    id: ParamId,
    words: Arc<Mutex<[u32; N]>>,
}

impl<const N: usize> Words<N> {
    pub(crate) fn new(words: [u32; N]) -> Self {
        Self {
            id: ParamId::new(),
            words: Arc::new(Mutex::new(words)),
        }
    }

    pub(crate) fn get(&self) -> [u32; N] {
        self.change(|words| *words)
    }

    /// Reads and changes the words in one go.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut [u32; N]) -> T) -> T {
        // Words are written as a whole, so those of a thread that panicked are in order.
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut words)
    }

    fn param(&self) -> Param<Tensor<1, Int>> {
        let words = self.get().map(u32::cast_signed);
        let data = TensorData::new(words.to_vec(), [N]);
        let tensor = Tensor::from_data(data, (&Device::default(), DType::I32));
        Param::initialized(self.id, tensor)
    }
}

/// A count in the first two words.
pub(crate) fn count<const N: usize>(words: &[u32; N]) -> u64 {
    u64::from(words[0]) | u64::from(words[1]) << 32
}

/// Writes a count into the first two words.
pub(crate) fn set_count<const N: usize>(words: &mut [u32; N], count: u64) {
    (words[0], words[1]) = (count as u32, (count >> 32) as u32);
}

impl<const N: usize> Module for Words<N> {
    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        visitor.visit_int(&self.param());
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        let param = mapper.map_int(self.param());
        let words = param.val().into_data_dtype(DType::I32);
        let words: Vec<i32> = words.try_into_vec().expect("data of type i32");
        let words: Vec<u32> = words.into_iter().map(i32::cast_unsigned).collect();
        let words: [u32; N] = words.try_into().expect("a mapper keeps shapes");
        match words == self.get() {
            true => Self {
                id: param.id,
                ..self
            },
            false => Self {
                id: param.id,
                ..Self::new(words)
            },
        }
    }

    fn valid(&self) -> Self {
        Self {
            id: self.id,
            ..Self::new(self.get())
        }
    }

    stays_on_the_host!();
}

impl<const N: usize> fmt::Display for Words<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", count(&self.get()))
    }
}

impl<const N: usize> ModuleDisplayDefault for Words<N> {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&self.to_string()).optional()
    }
}

impl<const N: usize> ModuleDisplay for Words<N> {}
