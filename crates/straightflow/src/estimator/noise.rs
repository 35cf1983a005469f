//! The noise seam: an estimator declares what randomness it consumes and computes from it, so that
//! tests and quadrature can pass the noise in.

use burn::tensor::Tensor;

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
    pub(super) fn len(&self) -> usize {
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
