//! Stacked variables: each layer's distribution depends on the samples of the layers below.

mod conditional;
mod pass;
mod rules;

pub(crate) use conditional::Conditional;
pub use pass::Pass;
pub(crate) use rules::{layerwise, on_tape, single};

use burn::tensor::Tensor;

use super::noise::NoiseSource;
use super::pathwise::Pathwise;
use super::run::{Estimator, Outcome};
use crate::distribution::{Distribution, canonical_of};
use crate::error::{Error, Result};
use crate::estimate::objective::CountedObjective;

/// `log q(z)` of all layers together, `[n, batch]`, for samples `[n, batch, ..]` of each.
///
/// # Panics
///
/// If the shapes do not fit.
pub fn layers_log_prob<D: Distribution>(q: &[D], z: &[D::Samples]) -> Tensor<2> {
    let each = q.iter().zip(z).map(|(q, z)| {
        let z = canonical_of::<D>(q.law(), z.clone());
        let [n, batch, ..] = z.dims();
        let rows = to_rows(z, q.law().dims()[0]);
        q.law().log_prob(rows).reshape([n, batch])
    });
    each.reduce(|sum, term| sum + term)
        .expect("an objective has at least one layer")
}

/// The sum of several terms, such as what each layer adds to an estimate.
pub(crate) fn sum_of(terms: impl IntoIterator<Item = Result<Tensor<1>>>) -> Result<Tensor<1>> {
    let terms: Vec<Tensor<1>> = terms.into_iter().collect::<Result<_>>()?;
    let sum = terms.into_iter().reduce(|sum, term| sum + term);
    sum.ok_or(Error::EmptyChain)
}

/// Samples `[n, batch, d, k]` as those of a law with `rows` batch elements.
pub(crate) fn to_rows(z: Tensor<4>, rows: usize) -> Tensor<4> {
    let [n, batch, d, k] = z.dims();
    z.reshape([n * batch / rows, rows, d, k])
}

/// How an estimator treats the layers of an [`Objective`](crate::objective::Objective) that has
/// several.
#[derive(Clone, Copy, Debug)]
pub enum Stacking<'a> {
    /// It takes a single one only.
    Unsupported,
    /// The samples of each layer are on the tape, and so is what depends on them.
    Tape(&'a dyn Pathwise),
    /// One layer after the other, with the layers below fixed at one draw of them and those above
    /// drawn anew for each evaluation.
    Layerwise,
    /// A rule of its own for all layers together, be it one or several.
    Own(&'a dyn Stacked),
}

/// An estimator with a rule of its own for any number of layers.
pub trait Stacked: Estimator {
    /// The estimate for a source of noise.
    ///
    /// # Errors
    ///
    /// If a layer is not one that the estimator supports, or the cost has the wrong shape or is not
    /// finite.
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome>;
}
