//! The noise seam: an estimator declares what randomness it consumes and computes from it, so that
//! tests and quadrature can pass the noise in.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use burn::tensor::Tensor;

use super::run::Estimator;
use crate::Key;
use crate::distribution::Law;
use crate::error::{Error, Result};

/// The law of one noise tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseLaw {
    /// Hard samples of the distribution itself, `[n, batch, d, k]`.
    Samples,
    /// Hard samples of the law `w` of [`Law::weight`], `[n, batch, d, 1]`; ordered families only.
    Weight,
    /// Independent numbers, uniform on the open interval (0, 1).
    Uniform,
}

/// One noise tensor that an estimator consumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSpec {
    /// What it is for.
    pub name: &'static str,
    /// Its law.
    pub law: NoiseLaw,
    /// Its shape, `[n, batch, ..]`.
    pub shape: [usize; 4],
}

impl NoiseSpec {
    /// `n` hard samples of a law.
    pub fn samples(law: &Law, n: usize) -> Self {
        Self {
            name: "samples",
            law: NoiseLaw::Samples,
            shape: law.sample_dims(n),
        }
    }

    /// Uniform numbers of a shape.
    pub fn uniform(name: &'static str, shape: [usize; 4]) -> Self {
        Self {
            name,
            law: NoiseLaw::Uniform,
            shape,
        }
    }

    /// `n` hard samples of the law's weight.
    pub fn weight(law: &Law, n: usize) -> Self {
        Self {
            name: "weight samples",
            law: NoiseLaw::Weight,
            shape: law.sample_dims(n),
        }
    }
}

/// The noise tensors of one estimate, in the order of the declaration, on no tape.
#[derive(Clone, Debug)]
pub struct Noise(Vec<Tensor<4>>);

impl Noise {
    /// Draws what was declared. Tensor `i` comes from the child `i` of the key.
    pub fn draw(key: Key, law: &Law, specs: &[NoiseSpec]) -> Self {
        let natural = law.natural();
        let draw = |(index, spec): (usize, &NoiseSpec)| {
            let key = key.child(index as u64);
            match spec.law {
                NoiseLaw::Samples => law.sample(key, spec.shape[0]),
                NoiseLaw::Weight => law
                    .weight()
                    .expect("only estimators of ordered families ask for it")
                    .sample(key, spec.shape[0]),
                NoiseLaw::Uniform => key.uniform(spec.shape, &natural.device(), natural.dtype()),
            }
        };
        Self(specs.iter().enumerate().map(draw).collect())
    }

    /// Takes given tensors instead, after a look at their shapes.
    ///
    /// # Errors
    ///
    /// If the number of tensors or a shape is not the declared one.
    pub fn given(tensors: Vec<Tensor<4>>, specs: &[NoiseSpec]) -> Result<Self> {
        if tensors.len() != specs.len() {
            return Err(Error::NoiseCount {
                expected: specs.len(),
                got: tensors.len(),
            });
        }
        for (tensor, spec) in tensors.iter().zip(specs) {
            if tensor.dims() != spec.shape {
                return Err(Error::NoiseShape {
                    name: spec.name,
                    expected: spec.shape,
                    got: tensor.dims(),
                });
            }
        }
        Ok(Self(tensors.into_iter().map(Tensor::inner).collect()))
    }

    /// The number of tensors.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The tensor number `index` of the declaration.
    ///
    /// # Panics
    ///
    /// If the estimator declared fewer.
    pub fn get(&self, index: usize) -> Tensor<4> {
        self.0[index].clone()
    }
}

/// Where the noise of an estimate comes from: a [`Key`], or given tensors.
///
/// What is needed depends on what was drawn before, so it is asked for piece by piece: one for a
/// single variable, at least one for each layer of several. Given tensors are one piece
/// (`Vec<Tensor<4>>`), or as many as are asked for (`Vec<Vec<Tensor<4>>>`); the first tensor of the
/// first says how many draws there are.
#[derive(Debug)]
pub struct NoiseSource(Source);

#[derive(Debug)]
enum Source {
    /// Piece `i` is drawn with the child `i` of the key.
    Children {
        key: Key,
        next: Cell<u64>,
    },
    /// The only piece is drawn with the key itself.
    Whole(Cell<Option<Key>>),
    Given(RefCell<VecDeque<Vec<Tensor<4>>>>),
}

impl From<Key> for NoiseSource {
    fn from(key: Key) -> Self {
        let next = Cell::new(0);
        Self(Source::Children { key, next })
    }
}

impl From<Vec<Tensor<4>>> for NoiseSource {
    fn from(piece: Vec<Tensor<4>>) -> Self {
        vec![piece].into()
    }
}

impl From<Vec<Vec<Tensor<4>>>> for NoiseSource {
    fn from(pieces: Vec<Vec<Tensor<4>>>) -> Self {
        Self(Source::Given(RefCell::new(pieces.into())))
    }
}

impl From<&Noise> for NoiseSource {
    fn from(noise: &Noise) -> Self {
        noise.0.clone().into()
    }
}

impl NoiseSource {
    /// The source for an objective of so many layers: a single one takes the key itself.
    pub(crate) fn for_layers(self, layers: usize) -> Self {
        match self.0 {
            Source::Children { key, .. } if layers == 1 => {
                Self(Source::Whole(Cell::new(Some(key))))
            }
            _ => self,
        }
    }

    /// The number of draws of an estimate: that of given noise, else that of the configuration.
    pub fn draws(&self, estimator: &(impl Estimator + ?Sized)) -> usize {
        let given = match &self.0 {
            Source::Given(pieces) => {
                let pieces = pieces.borrow();
                let first = pieces.front().and_then(|piece| piece.first());
                first.map(|tensor| tensor.dims()[0])
            }
            Source::Children { .. } | Source::Whole(_) => None,
        };
        given.unwrap_or_else(|| estimator.draws())
    }

    /// The next piece: noise of a law by its declaration.
    ///
    /// # Errors
    ///
    /// If noise was given and is used up or of another shape.
    pub fn next(&self, law: &Law, specs: &[NoiseSpec]) -> Result<Noise> {
        match &self.0 {
            Source::Children { key, next } => {
                let piece = key.child(next.get());
                next.set(next.get() + 1);
                Ok(Noise::draw(piece, law, specs))
            }
            Source::Whole(key) => match key.take() {
                Some(key) => Ok(Noise::draw(key, law, specs)),
                None => Noise::given(Vec::new(), specs),
            },
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
