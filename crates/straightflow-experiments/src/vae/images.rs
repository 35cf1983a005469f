//! Batches of images as tensors.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};
use straightflow::Key;
use straightflow_data::{Batches, Dataset, Images as Pixels, Split};

use super::config::Config;
use super::error::VaeError;
use super::protocol::{Centring, Protocol};

/// A batch: binary images `[batch, pixels]`, and what the encoder sees of them.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub x: Tensor<2>,
    pub input: Tensor<2>,
}

/// The images of a run.
pub(super) struct Images<'a> {
    data: &'a Dataset,
    splits: [Range<usize>; 3],
    /// The mean of each pixel over the training images.
    means: Vec<f32>,
    centring: Centring,
    dynamic: bool,
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
        Ok(Self {
            data,
            splits,
            means,
            centring: config.inputs,
            // Greyscale images are binary once and for all in every other protocol.
            dynamic: config.protocol == Protocol::Dynamic,
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
        let seed = match self.dynamic {
            true => self.key.child(1).child(epoch).seed(),
            false => self.fixed(),
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
        let pixels = self.data.pixels();
        let shape = [indices.len(), pixels];
        let mut x = vec![0.0f32; indices.len() * pixels];
        self.data.binary_batch(seed, indices, &mut x);
        let tensor =
            |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, shape), &self.device);
        let input = match self.centring {
            Centring::None => None,
            Centring::Signed => Some(x.iter().map(|x| 2.0 * x - 1.0).collect()),
            Centring::Mean => {
                let rows = x.chunks_exact(pixels);
                let centred = rows.flat_map(|row| row.iter().zip(&self.means).map(|(x, m)| x - m));
                Some(centred.collect())
            }
        };
        let x = tensor(x);
        let input = input.map_or_else(|| x.clone(), tensor);
        Batch { x, input }
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
