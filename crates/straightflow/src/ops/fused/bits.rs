//! A layer whose input is binary: sums of rows of the weight in place of a product.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};

#[cfg(feature = "flex")]
use super::layer::Lists;

/// Binary rows `[rows, columns]` as the places of their ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitRows {
    columns: usize,
    /// Where the ones of each row begin; the last number is where they end.
    starts: Vec<u32>,
    ones: Vec<u32>,
}

impl BitRows {
    /// Rows without a single one so far: none at all.
    pub fn new(columns: usize) -> Self {
        Self {
            columns,
            starts: vec![0],
            ones: Vec::new(),
        }
    }

    /// Adds a row with ones at these places.
    ///
    /// # Panics
    ///
    /// If a place is not below the number of columns.
    pub fn push(&mut self, ones: impl IntoIterator<Item = usize>) {
        let columns = self.columns;
        self.ones.extend(ones.into_iter().map(|place| {
            assert!(place < columns, "place {place} of {columns}");
            place as u32
        }));
        self.starts.push(self.ones.len() as u32);
    }

    /// The rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The places of the ones of a row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn ones(&self, row: usize) -> &[u32] {
        &self.ones[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// The rows with a one in each column.
    #[cfg(feature = "flex")]
    fn transposed(&self) -> Self {
        let mut starts = vec![0u32; self.columns + 1];
        for place in &self.ones {
            starts[*place as usize + 1] += 1;
        }
        for column in 0..self.columns {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut ones = vec![0u32; self.ones.len()];
        for row in 0..self.rows() {
            for place in self.ones(row) {
                let next = &mut next[*place as usize];
                ones[*next as usize] = row as u32;
                *next += 1;
            }
        }
        Self {
            columns: self.rows(),
            starts,
            ones,
        }
    }
}

#[cfg(feature = "flex")]
impl Lists for BitRows {
    #[inline(always)]
    fn list(&self, index: usize) -> &[u32] {
        self.ones(index)
    }
}

/// What a network sees of bits: `scale * bit + offset`, with an offset for each column, or none.
#[derive(Clone, Debug, PartialEq)]
pub struct BitInput {
    /// The bits.
    pub bits: Arc<BitRows>,
    /// The difference between a one and a zero.
    pub scale: f32,
    /// What a zero is, column by column.
    pub offsets: Option<Arc<[f32]>>,
}

impl BitInput {
    /// The numbers that the network sees, `[rows, columns]`.
    pub fn values(&self) -> Vec<f32> {
        let columns = self.bits.columns();
        let mut values = match &self.offsets {
            Some(offsets) => offsets.repeat(self.bits.rows()),
            None => vec![0.0; self.bits.rows() * columns],
        };
        for row in 0..self.bits.rows() {
            for place in self.bits.ones(row) {
                values[row * columns + *place as usize] += self.scale;
            }
        }
        values
    }
}

/// [`affine`](super::affine) of a binary input.
///
/// For `f32` weights of the flex backend, products are sums of the rows of the weight where the bits
/// are one, and of the rows of the gradient likewise: cheaper than a product if fewer than about a
/// third of the bits are. For everything else the layer is composed of burn's operations.
///
/// # Panics
///
/// If the shapes do not fit.
///
/// ```
/// use std::sync::Arc;
/// use burn::tensor::{Device, Tensor};
/// use straightflow::fused::{BitInput, BitRows, bit_affine};
///
/// let mut bits = BitRows::new(3);
/// bits.push([0, 2]);
/// // -1 for a zero, and 1 for a one.
/// let signs = BitInput { bits: Arc::new(bits), scale: 2.0, offsets: Some([-1.0; 3].into()) };
/// let device = Device::flex();
/// let weight = Tensor::<2>::from_floats([[1.0], [10.0], [100.0]], &device);
/// let y = bit_affine(&signs, weight, Tensor::from_floats([0.5], &device), None);
/// assert_eq!(y.into_scalar::<f32>(), 1.0 - 10.0 + 100.0 + 0.5);
/// ```
pub fn bit_affine(
    input: &BitInput,
    weight: Tensor<2>,
    bias: Tensor<1>,
    slope: Option<f64>,
) -> Tensor<2> {
    let columns = input.bits.columns();
    assert!(
        weight.dims() == [columns, bias.dims()[0]]
            && input.offsets.as_ref().is_none_or(|x| x.len() == columns),
        "{columns} bits a row, a weight {:?} and a bias {:?}",
        weight.dims(),
        bias.dims(),
    );
    #[cfg(feature = "flex")]
    if kernel::fits(&weight, &bias, slope) {
        return kernel::affine(input, weight, bias, slope);
    }
    let shape = [input.bits.rows(), columns];
    let options = (&weight.device().inner(), weight.dtype());
    let x = Tensor::from_data(TensorData::new(input.values(), shape), options);
    super::affine::composed(x, weight, bias, slope)
}

/// The way through the kernels.
#[cfg(feature = "flex")]
mod kernel {
    use std::sync::Arc;

    use burn::tensor::Tensor;

    use super::super::affine::kernel::{before_rectifier, fits as fits_affine};
    use super::super::flex::{Stored, row_major};
    use super::super::layer::Sums;
    use super::super::tape::{LayerGradients, LayerRule, Wanted, on_the_tape};
    use super::BitInput;

    pub fn fits(weight: &Tensor<2>, bias: &Tensor<1>, slope: Option<f64>) -> bool {
        fits_affine(weight, weight, bias, slope)
    }

    pub fn affine(
        input: &BitInput,
        weight: Tensor<2>,
        bias: Tensor<1>,
        slope: Option<f64>,
    ) -> Tensor<2> {
        let slope = slope.map(|slope| slope as f32);
        let (rows, [_, columns]) = (input.bits.rows(), weight.dims());
        let mut value = vec![0.0; rows * columns];
        {
            let matrix = row_major(weight.clone().inner());
            let shift = row_major(bias.clone().inner());
            let sums = Sums {
                matrix: f32::values(&matrix),
                columns,
                lists: &*input.bits,
                scale: input.scale,
            };
            let offsets = input.offsets.as_deref();
            sums.forward(f32::values(&shift), offsets, slope, &mut value);
        }
        let rule = Rows {
            input: input.clone(),
            slope,
        };
        let value = f32::new_tensor(value, [rows, columns]);
        // The bits have no gradient: a constant stands in for their node.
        let constant = value.clone();
        on_the_tape([constant, weight], bias, value, Arc::new(rule))
    }

    /// `dW_j = offset_j s + scale * (the sum of g over the rows where bit j is one)`, with the sums
    /// `s` of `g` over all rows.
    #[derive(Debug)]
    struct Rows {
        input: BitInput,
        slope: Option<f32>,
    }

    impl LayerRule for Rows {
        fn backward(&self, value: Tensor<2>, grad: Tensor<2>, wanted: Wanted) -> LayerGradients {
            let columns = grad.dims()[1];
            let (grad, sums) = before_rectifier(value, grad, self.slope, true);
            let sums = sums.expect("they were asked for");
            let weight = wanted.weight.then(|| {
                let inputs = self.input.bits.columns();
                let mut gradient = vec![0.0; inputs * columns];
                let grad = row_major(grad);
                let rows = Sums {
                    matrix: f32::values(&grad),
                    columns,
                    lists: &self.input.bits.transposed(),
                    scale: self.input.scale,
                };
                rows.backward(&sums, self.input.offsets.as_deref(), &mut gradient);
                f32::new_tensor(gradient, [inputs, columns])
            });
            LayerGradients {
                input: None,
                weight,
                bias: wanted.bias.then(|| f32::new_tensor(sums, [columns])),
            }
        }
    }
}
