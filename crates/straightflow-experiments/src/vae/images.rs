//! Batches of images as tensors.

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use straightflow::Key;
use straightflow::fused::{BitInput, BitRows};
use straightflow_data::{Batches, Dataset, Images as Pixels, Split};

use super::config::Config;
use super::error::VaeError;
use super::input::Input;
use super::protocol::{Centring, Protocol};

/// A batch: images `[batch, pixels]`, binary unless the protocol has grey ones, and what the encoder
/// sees of them.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub x: Tensor<2>,
    pub input: Input,
}

/// What a model is shown of greyscale images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Bits that are drawn once.
    Bits,
    /// Bits that are drawn anew in every epoch.
    NewBits,
    /// The pixels themselves.
    Grey,
}

/// The images of a run.
pub(super) struct Images<'a> {
    data: &'a Dataset,
    splits: [Range<usize>; 3],
    /// The mean of each pixel over the training images.
    means: Vec<f32>,
    /// What the encoder sees of a pixel: `scale * bit + offset`.
    scale: f32,
    offsets: Option<Arc<[f32]>>,
    pixels: Shown,
    key: Key,
    device: Device,
}

impl<'a> Images<'a> {
    /// The images of a configuration, as constants on a device. The key decides about orders and, if
    /// pixels are drawn, about them.
    pub fn new(
        config: &Config,
        data: &'a Dataset,
        key: Key,
        device: &Device,
    ) -> Result<Self, VaeError> {
        let partition = config.partition()?;
        let limit = |range: Range<usize>| match config.images {
            0 => range,
            images => range.start..range.end.min(range.start.saturating_add(images)),
        };
        let [train, valid, test] = Split::ALL.map(|split| data.range(partition, split).map(limit));
        let splits = [train?, valid?, test?];
        if splits.iter().any(Range::is_empty) {
            return Err(VaeError::EmptySplit);
        }
        let means = match (config.inputs, config.output_bias) {
            (Centring::Mean, _) | (_, true) => means(data, splits[0].clone()),
            _ => vec![0.0; data.pixels()],
        };
        let (scale, offsets) = match config.inputs {
            Centring::None => (1.0, None),
            Centring::Signed => (2.0, Some(vec![-1.0; data.pixels()])),
            Centring::Mean => (1.0, Some(means.iter().map(|mean| -mean).collect())),
        };
        Ok(Self {
            data,
            splits,
            means,
            scale,
            offsets: offsets.map(Into::into),
            pixels: match config.protocol {
                Protocol::Threshold | Protocol::Static => Shown::Bits,
                Protocol::Dynamic | Protocol::Uncentred => Shown::NewBits,
                Protocol::Greyscale => Shown::Grey,
            },
            key,
            device: device.clone().inner(),
        })
    }

    /// The mean of each pixel over the training images; zeros if nobody needs them.
    pub fn means(&self) -> &[f32] {
        &self.means
    }

    /// The order of the training images.
    pub fn batches(&self, batch: usize) -> Batches {
        Batches::new(self.key.child(0).seed(), self.range(Split::Train), batch)
    }

    pub fn range(&self, split: Split) -> Range<usize> {
        // In the order of `Split::ALL`.
        self.splits[split as usize].clone()
    }

    /// Images to train on in an epoch.
    pub fn training(&self, epoch: u64, indices: &[usize]) -> Batch {
        let seed = match self.pixels {
            Shown::NewBits => self.key.child(1).child(epoch).seed(),
            Shown::Bits | Shown::Grey => self.fixed(),
        };
        self.batch(seed, indices)
    }

    /// Images to evaluate on, always the same bits.
    pub fn evaluation(&self, indices: &[usize]) -> Batch {
        self.batch(self.fixed(), indices)
    }

    /// The seed of bits that are the same in every run.
    fn fixed(&self) -> [u8; 32] {
        Key::new(0).seed()
    }

    fn batch(&self, seed: [u8; 32], indices: &[usize]) -> Batch {
        if self.pixels == Shown::Grey {
            return self.grey(indices);
        }
        let bits = match self.data.images() {
            Pixels::Binary(images) => {
                let mut bits = BitRows::new(images.pixels());
                for &index in indices {
                    bits.push(images.ones(index));
                }
                bits
            }
            Pixels::Grey(images) => {
                let pixels = images.pixels();
                let mut x = vec![0.0f32; indices.len() * pixels];
                images.binarise_batch(seed, indices, &mut x);
                let mut bits = BitRows::new(pixels);
                for row in x.chunks_exact(pixels) {
                    let ones = row.iter().enumerate().filter(|(_, x)| **x != 0.0);
                    bits.push(ones.map(|(place, _)| place));
                }
                bits
            }
        };
        let plain = BitInput {
            bits: Arc::new(bits),
            scale: 1.0,
            offsets: None,
        };
        let shape = [indices.len(), self.data.pixels()];
        let x = Tensor::from_data(TensorData::new(plain.values(), shape), &self.device);
        let seen = BitInput {
            scale: self.scale,
            offsets: self.offsets.clone(),
            ..plain
        };
        Batch {
            x,
            input: Input::of_bits(seen, &self.device),
        }
    }
}

impl Images<'_> {
    fn grey(&self, indices: &[usize]) -> Batch {
        let pixels = self.data.pixels();
        let mut x = vec![0.0f32; indices.len() * pixels];
        self.data.batch(indices, &mut x);
        let mut seen = x.clone();
        for row in seen.chunks_exact_mut(pixels) {
            for (pixel, seen) in row.iter_mut().enumerate() {
                let offset = self.offsets.as_ref().map_or(0.0, |offsets| offsets[pixel]);
                *seen = self.scale * *seen + offset;
            }
        }
        let tensor = |values| {
            let shape = [indices.len(), pixels];
            Tensor::from_data(TensorData::new(values, shape), &self.device)
        };
        Batch {
            x: tensor(x),
            input: Input::from(tensor(seen)),
        }
    }
}

fn means(data: &Dataset, images: Range<usize>) -> Vec<f32> {
    let mut sums = vec![0.0f64; data.pixels()];
    let count = images.len().max(1) as f64;
    let mut image = vec![0.0f32; data.pixels()];
    for index in images {
        match data.images() {
            Pixels::Binary(bits) => bits.ones(index).for_each(|pixel| sums[pixel] += 1.0),
            Pixels::Grey(_) => {
                data.batch(&[index], &mut image);
                sums.iter_mut()
                    .zip(&image)
                    .for_each(|(s, x)| *s += f64::from(*x));
            }
        }
    }
    sums.into_iter().map(|sum| (sum / count) as f32).collect()
}
