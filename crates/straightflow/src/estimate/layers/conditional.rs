//! The cost of several layers as a function of one, with those below fixed and those above drawn
//! from it: an objective of one layer.

use std::cell::RefCell;

use burn::tensor::Tensor;

use crate::distribution::Law;
use crate::error::Result;
use crate::estimate::objective::{CanonicalObjective, CountedObjective, ObjectiveKind};

/// Draws a layer above from its law, `[1, rows, d, k]`; the first argument is its number.
type Draw<'a> = dyn Fn(usize, &Law) -> Result<Tensor<4>> + 'a;

/// An objective of layer `below.len()`.
pub(crate) struct Conditional<'a> {
    all: &'a CountedObjective<'a>,
    /// The law of the layer.
    own: Law,
    /// Samples `[n, batch, d, k]` of the layers below, constants.
    below: Vec<Tensor<4>>,
    /// The law of the lowest layer as a constant; unused for that layer itself.
    first: Law,
    above: &'a Draw<'a>,
    /// Whether costs are on the tapes of the model and of the laws; else they are constants.
    live: bool,
    /// The samples of all layers at which the cost was last evaluated, rather than on the side.
    seen: RefCell<Vec<Tensor<4>>>,
}

impl<'a> Conditional<'a> {
    pub(crate) fn new(
        all: &'a CountedObjective<'a>,
        own: &Law,
        below: &[Tensor<4>],
        first: &Law,
        above: &'a Draw<'a>,
        live: bool,
    ) -> Self {
        Self {
            all,
            own: own.clone(),
            below: below.to_vec(),
            first: first.constant(),
            above,
            live,
            seen: RefCell::default(),
        }
    }

    /// As estimators see it, counted with the whole.
    pub(crate) fn counted(&self) -> CountedObjective<'_> {
        let draws = self.below.first().map_or(1, |z| z.dims()[0]);
        CountedObjective::sharing(self, self.all.counts(), draws)
    }

    /// The samples of all layers of the last call, on no tape.
    pub(crate) fn seen(&self) -> Vec<Tensor<4>> {
        self.seen.take().into_iter().map(Tensor::inner).collect()
    }

    /// The cost `[m, rows]` of samples `[m, rows, d, k]` of the layer.
    fn complete(
        &self,
        z: Tensor<4>,
        law: &Law,
        frozen: bool,
    ) -> Result<(Tensor<2>, Vec<Tensor<4>>)> {
        let [m, rows, d, k] = z.dims();
        let batch = self.first.dims()[0];
        let draws = m * rows / batch;
        // Each of the m samples of a row has the same samples below it.
        let tile = |z: &Tensor<4>| z.clone().repeat_dim(0, m);
        let mut samples: Vec<Tensor<4>> = self.below.iter().map(tile).collect();
        samples.push(z.reshape([draws, batch, d, k]));
        let own = samples.len() - 1;
        let mut laws = Vec::new();
        for layer in 0..self.all.layers() {
            let next = match layer {
                0 if own == 0 => law.clone(),
                0 => self.first.clone(),
                _ if layer <= own => self.all.frozen_layer(&samples[..layer])?.constant(),
                _ if frozen => self.all.frozen_layer(&samples)?,
                _ => self.all.layer(&samples)?,
            };
            if layer > own {
                let z = (self.above)(layer, &next)?;
                let [.., d, k] = z.dims();
                samples.push(z.reshape([draws, batch, d, k]));
            }
            laws.push(next);
        }
        let cost = self.all.unwatched(&samples, &laws, frozen)?;
        // A wrong shape is for the caller to find; a wrong number of elements cannot be reshaped.
        let cost = match cost.dims() == [draws, batch] {
            true => cost.reshape([m, rows]),
            false => cost,
        };
        Ok((cost, samples))
    }
}

impl CanonicalObjective for Conditional<'_> {
    fn kind(&self) -> ObjectiveKind {
        self.all.kind()
    }

    fn layers(&self) -> usize {
        1
    }

    fn layer(&self, _below: &[Tensor<4>], _frozen: bool) -> Result<Law> {
        Ok(self.own.clone())
    }

    fn cost(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Result<Tensor<2>> {
        let (cost, samples) = self.complete(z[0].clone(), &laws[0], frozen || !self.live)?;
        if frozen {
            return Ok(cost);
        }
        self.seen.replace(samples);
        Ok(match self.live {
            true => cost,
            false => cost.inner(),
        })
    }
}
