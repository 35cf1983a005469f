//! What a quantiser with a codebook returns.

use std::collections::HashMap;

use burn::tensor::{DType, Int, Tensor};

/// Codes and their indices in the codebook.
#[derive(Clone, Debug)]
pub struct Quantized<const D: usize> {
    /// The values `[..., d]`, on the tape of the input.
    pub codes: Tensor<D>,
    /// The index of each code in the codebook, `[..., 1]`.
    pub indices: Tensor<D, Int>,
}

impl<const D: usize> Quantized<D> {
    /// See [`perplexity`].
    pub fn perplexity(&self) -> f64 {
        perplexity(self.indices.clone())
    }
}

/// The exponential of the entropy of the empirical distribution of indices of any shape.
///
/// It is the number of codes that are used, each counted by how much: 1 if all indices are equal,
/// `n` if `n` of them occur equally often. Without any index it is 1. The indices are read back
/// from their device.
///
/// ```
/// use burn::tensor::{Device, Int, Tensor};
/// use straightflow::nn::perplexity;
///
/// let indices = Tensor::<1, Int>::from_ints([3, 7, 7, 3], &Device::flex());
/// assert!((perplexity(indices) - 2.0).abs() < 1e-12);
/// ```
pub fn perplexity<const D: usize>(indices: Tensor<D, Int>) -> f64 {
    let indices: Vec<i64> = indices
        .into_data_dtype(DType::I64)
        .try_into_vec()
        .expect("the data was converted to i64");
    let mut counts = HashMap::new();
    for index in &indices {
        *counts.entry(*index).or_insert(0u64) += 1;
    }
    // A sum in a fixed order is the same number in every run.
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    let total = indices.len() as f64;
    let shares = counts.iter().map(|&count| count as f64 / total);
    shares.map(|share| -share * share.ln()).sum::<f64>().exp()
}
