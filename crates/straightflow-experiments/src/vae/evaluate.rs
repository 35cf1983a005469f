//! What a model is worth: bounds at hard samples, on images that it was or was not trained on.

use burn::module::Module;
use burn::tensor::{DType, Tensor, activation::sigmoid};
use straightflow::distribution::Law;
use straightflow::objective::Objective;
use straightflow::{Key, Result};
use straightflow_data::Split;

use super::config::Direct;
use super::elbo::Elbo;
use super::error::VaeError;
use super::images::Batch;
use super::model::Vae;
use super::summary::StepBound;
use super::trainer::Trainer;
use crate::host::to_host;

/// The rows that go through the decoder at once.
const ROWS: usize = 2000;

/// The child of the evaluation's key for bounds on the way; no run has so many epochs.
const ON_THE_WAY: u64 = 1 << 40;

/// The costs `[n, batch]` of `n` hard samples for each image of a batch.
fn costs(model: &Vae, batch: Batch, key: Key, n: usize) -> Result<Tensor<2>> {
    let images = batch.x.dims()[0];
    let elbo = Elbo::new(model, batch.x, batch.input, Direct::Dropped);
    let mut z: Vec<Tensor<4>> = Vec::new();
    let mut laws: Vec<Law> = Vec::new();
    for layer in 0..model.layers() {
        let law = elbo.layer(&z)?;
        law.validate()?;
        let [_, d, k] = law.dims();
        let draws = if layer == 0 { n } else { 1 };
        let sample = law.sample(key.child(layer as u64), draws);
        z.push(sample.reshape([n, images, d, k]));
        laws.push(law);
    }
    elbo.cost(&z, &laws)
}

/// `-log (1/n) sum_i exp(-f_i)` for each image, from its costs.
fn bounds(costs: &[f64], images: usize) -> Vec<f64> {
    let draws = costs.len() / images;
    let bound = |image: usize| {
        let own = || (0..draws).map(|draw| costs[draw * images + image]);
        let least = own().fold(f64::INFINITY, f64::min);
        let sum: f64 = own().map(|cost| (least - cost).exp()).sum();
        least - (sum / draws as f64).ln()
    };
    (0..images).map(bound).collect()
}

impl Trainer<'_> {
    /// The mean over images of a split of the bound with `n` draws; with one, it is the negative ELBO.
    /// Images after the first `limit` are left out.
    ///
    /// # Errors
    ///
    /// If a parameter is not finite.
    pub fn bound(
        &self,
        split: Split,
        n: usize,
        limit: usize,
    ) -> std::result::Result<f64, VaeError> {
        let epoch = self.place.epoch;
        let key = self.keys.evaluation.child(epoch);
        let key = key.child(split as u64).child(n as u64);
        let mean = self.mean_bound(key, split, n, limit);
        mean.map_err(|source| VaeError::Evaluation { epoch, source })
    }

    /// Measures the bound of the test images if this step is one after which that is asked for.
    ///
    /// # Errors
    ///
    /// As [`bound`](Self::bound).
    pub(super) fn bound_on_the_way(&mut self) -> std::result::Result<(), VaeError> {
        let (step, every) = (self.place.steps, self.config.bound_every);
        if every == 0 || !step.is_multiple_of(every) {
            return Ok(());
        }
        // Apart from the keys of the epochs.
        let key = self.keys.evaluation.child(ON_THE_WAY).child(step);
        let epoch = self.place.epoch;
        let bound = self.mean_bound(key, Split::Test, self.config.bound_samples, usize::MAX);
        let test_bound = bound.map_err(|source| VaeError::Evaluation { epoch, source })?;
        self.place.bounds.push(StepBound { step, test_bound });
        Ok(())
    }

    fn mean_bound(&self, key: Key, split: Split, n: usize, limit: usize) -> Result<f64> {
        let model = self.model.valid();
        let indices: Vec<usize> = self.images.range(split).take(limit).collect();
        let mut sum = 0.0;
        for (piece, indices) in indices.chunks((ROWS / n).max(1)).enumerate() {
            let batch = self.images.evaluation(indices);
            let costs = to_host(costs(&model, batch, key.child(piece as u64), n)?);
            sum += bounds(&costs, indices.len()).iter().sum::<f64>();
        }
        Ok(sum / indices.len() as f64)
    }

    /// Test images with the probabilities of their pixels given one sample each, and the same for
    /// samples of the prior.
    ///
    /// # Errors
    ///
    /// If a parameter is not finite.
    pub fn pictures(&self, count: usize) -> std::result::Result<Pictures, VaeError> {
        let epoch = self.place.epoch;
        let draw = || -> Result<Pictures> {
            let model = self.model.valid();
            let [codes, dreams] = self.keys.pictures.split();
            let indices: Vec<usize> = self.images.range(Split::Test).take(count).collect();
            let batch = self.images.evaluation(&indices);
            let law = model.posterior(&batch.input, &[])?;
            let images = |pixels: Tensor<2>| -> Vec<f32> {
                let data = pixels.into_data_dtype(DType::F32);
                data.try_into_vec().expect("the data was converted to f32")
            };
            Ok(Pictures {
                originals: images(batch.x),
                reconstructions: images(sigmoid(model.pixels(law.sample(codes, 1)))),
                dreams: images(sigmoid(model.pixels(model.dream(dreams, 10 * count)?))),
            })
        };
        draw().map_err(|source| VaeError::Evaluation { epoch, source })
    }
}

/// Images as intensities from 0 to 1, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Pictures {
    /// Test images.
    pub originals: Vec<f32>,
    /// Their pixels' probabilities, given one sample of the latent variables.
    pub reconstructions: Vec<f32>,
    /// The same for samples of the prior, ten times as many.
    pub dreams: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_the_logarithm_of_the_mean_weight() {
        // Two images with three draws each, draw by draw.
        let costs = [1.0, 1000.0, 2.0, 1000.0, 3.0, 2000.0];
        let bounds = bounds(&costs, 2);
        let mean = ((-1.0f64).exp() + (-2.0f64).exp() + (-3.0f64).exp()) / 3.0;
        assert!((bounds[0] + mean.ln()).abs() < 1e-12);
        // exp(-1000) underflows, its logarithm does not.
        assert!((bounds[1] - (1000.0 + 1.5f64.ln())).abs() < 1e-12);
    }
}
