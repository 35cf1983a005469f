//! What an encoder sees of a batch of images.

use std::cell::OnceCell;

use burn::tensor::{Device, Tensor, TensorData};
use straightflow::fused::BitInput;

/// Numbers `[batch, pixels]`, or the bits that they are made of. The numbers of bits are computed only
/// if somebody asks for them.
#[derive(Clone, Debug)]
pub struct Input {
    bits: Option<(BitInput, Device)>,
    tensor: OnceCell<Tensor<2>>,
}

impl From<Tensor<2>> for Input {
    fn from(tensor: Tensor<2>) -> Self {
        Self {
            bits: None,
            tensor: OnceCell::from(tensor),
        }
    }
}

impl Input {
    /// The input of bits, whose numbers are to be on a device.
    pub fn of_bits(bits: BitInput, device: &Device) -> Self {
        Self {
            bits: Some((bits, device.clone())),
            tensor: OnceCell::new(),
        }
    }

    /// The bits, if the input is made of them.
    pub fn bits(&self) -> Option<&BitInput> {
        self.bits.as_ref().map(|(bits, _)| bits)
    }

    /// The numbers, `[batch, pixels]`.
    pub fn tensor(&self) -> Tensor<2> {
        let numbers = || {
            let (input, device) = self.bits.as_ref().expect("bits, if there are no numbers");
            let shape = [input.bits.rows(), input.bits.columns()];
            Tensor::from_data(TensorData::new(input.values(), shape), device)
        };
        self.tensor.get_or_init(numbers).clone()
    }
}
