//! A chain in canonical shapes, as estimators see it: checked and counted.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use burn::tensor::Tensor;

use super::{Chain, ChainOutcome};
use crate::Key;
use crate::distribution::{Canonical, Distribution, Law};
use crate::error::{Error, Result};
use crate::estimator::estimate::Estimator;
use crate::estimator::noise::{Noise, NoiseSpec};
use crate::objective::{Counts, ObjectiveKind};
use crate::ops::gradient_only;

/// [`Chain`] without the type of its distributions.
pub(crate) trait CanonicalChain {
    fn kind(&self) -> ObjectiveKind;
    fn layers(&self) -> usize;
    fn layer(&self, below: &[Tensor<4>]) -> Result<Law>;
    fn cost(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Tensor<2>;
}

/// The bridge from the typed to the canonical form.
pub(crate) struct Untyped<'a, D, C> {
    chain: &'a C,
    distribution: PhantomData<D>,
}

impl<'a, D, C> Untyped<'a, D, C> {
    pub(crate) fn new(chain: &'a C) -> Self {
        Self {
            chain,
            distribution: PhantomData,
        }
    }
}

fn typed<D: Distribution>(z: &[Tensor<4>]) -> Vec<D::Samples> {
    z.iter().cloned().map(D::Samples::from_canonical).collect()
}

impl<D: Distribution, C: Chain<D>> CanonicalChain for Untyped<'_, D, C> {
    fn kind(&self) -> ObjectiveKind {
        self.chain.kind()
    }

    fn layers(&self) -> usize {
        self.chain.layers()
    }

    fn layer(&self, below: &[Tensor<4>]) -> Result<Law> {
        let q = self.chain.layer(&typed::<D>(below))?;
        Ok(q.law().clone())
    }

    fn cost(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Tensor<2> {
        let (z, q) = (typed::<D>(z), laws.iter().cloned().map(D::from_law));
        let q: Vec<D> = q.collect();
        match frozen {
            true => self.chain.frozen_cost(&z, &q),
            false => self.chain.cost(&z, &q),
        }
    }
}

/// A chain in canonical shapes, as estimators see it: checked and counted.
pub struct CountedChain<'a> {
    chain: &'a dyn CanonicalChain,
    counts: Counts,
}

impl fmt::Debug for CountedChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CountedChain").field(&self.counts).finish()
    }
}

impl<'a> CountedChain<'a> {
    pub(crate) fn new(chain: &'a dyn CanonicalChain) -> Result<Self> {
        if chain.layers() == 0 {
            return Err(Error::EmptyChain);
        }
        Ok(Self {
            chain,
            counts: Counts::default(),
        })
    }

    /// What is made of the costs of several draws.
    pub fn kind(&self) -> ObjectiveKind {
        self.chain.kind()
    }

    /// The number of layers, at least 1.
    pub fn layers(&self) -> usize {
        self.chain.layers()
    }

    /// The counts so far, and from now on.
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// The law of layer `below.len()` given samples `[n, batch, d, k]` of those below, on the tapes of
    /// the samples and of the model. It has `batch` rows if it is the lowest, else `n batch`.
    ///
    /// # Errors
    ///
    /// Those of the chain, or if the law has another number of rows.
    pub fn layer(&self, below: &[Tensor<4>]) -> Result<Law> {
        let law = self.chain.layer(below)?;
        if let Some(z) = below.first() {
            let [n, batch, ..] = z.dims();
            let (expected, got) = (n * batch, law.dims()[0]);
            if expected != got {
                let layer = below.len();
                return Err(Error::LayerRows {
                    layer,
                    expected,
                    got,
                });
            }
        }
        Ok(law)
    }

    /// The cost `[n, batch]` of samples `[n, batch, d, k]` of all layers, on the tapes of the samples,
    /// of the laws and of the model.
    ///
    /// # Errors
    ///
    /// If the cost has the wrong shape or is not finite.
    pub fn evaluate(&self, z: &[Tensor<4>], laws: &[Law]) -> Result<Tensor<2>> {
        self.watched(z, laws, false)
    }

    /// As [`evaluate`](Self::evaluate), with the model's own parameters as constants, if the chain
    /// knows how.
    ///
    /// # Errors
    ///
    /// As [`evaluate`](Self::evaluate).
    pub fn evaluate_frozen(&self, z: &[Tensor<4>], laws: &[Law]) -> Result<Tensor<2>> {
        self.watched(z, laws, true)
    }

    fn watched(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Result<Tensor<2>> {
        let [n, batch, ..] = z[0].dims();
        let cost = self.chain.cost(z, laws, frozen);
        self.counts.watch(cost, [n, batch], n)
    }

    /// The cost without checks and counts, for an objective that has its own.
    pub(super) fn cost(&self, z: &[Tensor<4>], laws: &[Law], frozen: bool) -> Tensor<2> {
        self.chain.cost(z, laws, frozen)
    }
}

/// The source of a chain's noise. What is needed depends on what was drawn before, so it is asked for
/// piece by piece.
#[derive(Debug)]
pub struct ChainNoise(Source);

#[derive(Debug)]
enum Source {
    Key { key: Key, next: Cell<u64> },
    Given(RefCell<VecDeque<Vec<Tensor<4>>>>),
}

impl ChainNoise {
    /// Piece `i` is drawn with the child `i` of the key.
    pub fn new(key: Key) -> Self {
        let next = Cell::new(0);
        Self(Source::Key { key, next })
    }

    /// Given pieces, in the order in which they are asked for.
    pub fn given(pieces: impl IntoIterator<Item = Vec<Tensor<4>>>) -> Self {
        Self(Source::Given(RefCell::new(pieces.into_iter().collect())))
    }

    /// The next piece: noise of a law by its declaration.
    ///
    /// # Errors
    ///
    /// If noise was given and is used up or of another shape.
    pub fn next(&self, law: &Law, specs: &[NoiseSpec]) -> Result<Noise> {
        match &self.0 {
            Source::Key { key, next } => {
                let piece = key.child(next.get());
                next.set(next.get() + 1);
                Ok(Noise::draw(piece, law, specs))
            }
            Source::Given(pieces) => {
                let piece = pieces.borrow_mut().pop_front();
                Noise::given(piece.unwrap_or_default(), specs)
            }
        }
    }

    /// One hard sample of each variable of a law, `[1, rows, d, k]`.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn hard(&self, law: &Law) -> Result<Tensor<4>> {
        let noise = self.next(law, &[NoiseSpec::samples(law, 1)])?;
        Ok(noise.get(0))
    }
}

/// Samples of all layers from the lowest up, with their laws.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The law of each layer.
    pub laws: Vec<Law>,
    /// The samples of each layer, `[n, batch, d, k]`.
    pub z: Vec<Tensor<4>>,
}

impl Pass {
    /// Goes up the chain: `draw` makes samples `[n / rows per element, rows, d, k]` of a law from `n`
    /// draws of the lowest layer, and one for each row of every other.
    ///
    /// # Errors
    ///
    /// If the estimator does not take a layer's law, or `draw` fails.
    pub fn new(
        estimator: &(impl Estimator + ?Sized),
        n: usize,
        chain: &CountedChain,
        mut draw: impl FnMut(&Law, usize) -> Result<Tensor<4>>,
    ) -> Result<Self> {
        let mut pass = Self {
            laws: Vec::new(),
            z: Vec::new(),
        };
        for layer in 0..chain.layers() {
            let law = chain.layer(&pass.z)?;
            let draws = if layer == 0 { n } else { 1 };
            // What the number of draws has to be is a matter of the whole chain.
            estimator.check(&law, draws.max(estimator.least_samples()))?;
            let z = draw(&law, draws)?;
            let z = match pass.z.first() {
                None => z,
                Some(first) => {
                    let [n, batch, ..] = first.dims();
                    let [.., d, k] = z.dims();
                    z.reshape([n, batch, d, k])
                }
            };
            pass.laws.push(law);
            pass.z.push(z);
        }
        Ok(pass)
    }

    /// `log q(z)` of all layers together, `[n, batch]`.
    pub fn log_prob(&self) -> Tensor<2> {
        super::chain_log_prob(&self.laws, &self.z)
    }

    /// The outcome of costs `[n, batch]` on their tapes, and of a scalar whose gradient is added to
    /// that of the mean cost.
    pub fn outcome(self, cost: Tensor<2>, gradient: Tensor<1>) -> ChainOutcome {
        ChainOutcome {
            values: cost.clone().inner(),
            surrogate: cost.mean() + gradient_only(gradient),
            samples: self.z.into_iter().map(Tensor::inner).collect(),
            lessons: Vec::new(),
        }
    }
}
