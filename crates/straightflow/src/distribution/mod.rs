//! Discrete distributions: independent variables in a tensor of parameters, whose first dimension is
//! the batch.
//!
//! | type | samples | natural parameter | constructors |
//! |---|---|---|---|
//! | [`Bernoulli`] | 0 or 1 | logit | `from_logits`, `from_means` |
//! | [`Categorical`] | one-hot vectors of length `k` | `k` logits | `from_logits`, `from_probabilities` |
//! | [`Poisson`] | 0, 1, 2, .. | log-rate | `from_log_rates`, `from_rates` |
//! | [`Binomial`] | 0, .., trials | logit | `from_logits`, `from_means` |
//! | [`NegativeBinomial`] | 0, 1, 2, .. | log-mean | `from_log_means`, `from_means` |
//! | [`Geometric`] | 0, 1, 2, .. | log-mean | `from_log_means`, `from_means` |
//! | [`Rounded`] | multiples of a step | the mean, any number | `from_values`, `bounded` |
//! | [`Subset`] | vectors of `m` zeros and ones, `size` of them ones | `m` logits | `from_logits` |
//!
//! Parameters have any rank from 1 to 6, such as the `[batch, channels, height, width]` of feature
//! maps; the last dimension of categorical ones is `k`, so they have at least rank 2. The rank is
//! part of the type, and follows from that of the parameters: `Bernoulli<4>`. Where a type is written
//! out, `Bernoulli` is short for `Bernoulli<2>` and `Categorical` for `Categorical<3>`.
//!
//! Everything that two families share is in the trait [`Distribution`]; the canonical form that
//! estimators work with is [`Law`]; [`CountLaw`] is one coordinate in double precision.

mod bernoulli;
mod binomial;
mod categorical;
pub(crate) mod checks;
pub(crate) mod count;
mod density;
mod divergence;
mod family;
mod formulas;
mod geometric;
mod law;
mod loader;
mod moves;
mod negative_binomial;
mod poisson;
mod rank;
mod rounded;
mod sampling;
mod subset;

pub use checks::Checks;
pub use count::CountLaw;
pub(crate) use family::all;
pub use family::all::*;
pub use family::{Family, FamilyKind};
pub use law::Law;
pub(crate) use moves::Moves;
use rank::wraps_law;
pub use rank::{Canonical, Numbers, Vectors};
pub(crate) use rank::{canonical_of, parameters_of, samples_of};

use std::fmt::Debug;

use burn::tensor::Tensor;

use crate::Key;
use crate::error::Result;

/// What every distribution offers.
///
/// Parameters and single draws have one shape, `[batch, ..]` or `[batch, .., k]` if categorical; `n`
/// samples have a dimension `n` in front of it. Numbers have the type of the parameters, `f32` or
/// `f64`. Whatever depends on the parameters is on their tape, if they are on one.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// // Binary feature maps: a batch of 2, 3 channels of 4 x 4.
/// let q = Bernoulli::from_logits(Tensor::<4>::zeros([2, 3, 4, 4], &Device::flex()))?;
/// assert_eq!(q.draw(Key::new(1)).dims(), [2, 3, 4, 4]);
/// let z = q.sample(Key::new(2), 5);
/// assert_eq!(z.dims(), [5, 2, 3, 4, 4]);
/// assert_eq!(q.log_prob(z).dims(), [5, 2]);
/// # Ok::<(), Error>(())
/// ```
pub trait Distribution: Clone + Debug + Send + Sync + 'static {
    /// The type of parameters, means and single draws: a tensor.
    type Parameters: Canonical<3>;
    /// The type of `n` samples: a tensor of one rank more.
    type Samples: Canonical<4>;

    /// The canonical form.
    fn law(&self) -> &Law;

    /// The distribution of a law of the same family.
    ///
    /// # Panics
    ///
    /// If the law comes from parameters of another rank, and the distribution's are not `[batch, d]`
    /// or `[batch, d, k]`.
    fn from_law(law: Law) -> Self;

    /// The shape of the parameters of one batch element, for a law of the same family and rank.
    fn element(law: &Law) -> Vec<usize>;

    /// The natural parameters.
    fn natural(&self) -> Self::Parameters {
        parameters_of::<Self>(self.law(), self.law().natural())
    }

    /// The same distribution as a constant, on no tape.
    ///
    /// A cost that is given `q.constant()` has no direct dependence on the parameters.
    fn constant(&self) -> Self {
        Self::from_law(self.law().constant())
    }

    /// `n` hard samples, on no tape. For samples on the tape, see
    /// [`EstimatorExt::sample`](crate::estimator::EstimatorExt::sample).
    fn sample(&self, key: Key, n: usize) -> Self::Samples {
        samples_of::<Self>(self.law(), self.law().sample(key, n))
    }

    /// One hard sample of each variable, of the shape of the parameters, on no tape.
    fn draw(&self, key: Key) -> Self::Parameters {
        parameters_of::<Self>(self.law(), self.law().sample(key, 1).squeeze_dim(0))
    }

    /// `log q(z)` of each draw and batch element, `[n, batch]`.
    ///
    /// # Panics
    ///
    /// If the shape of `z` is not `[n, batch, ..]`, with the dimensions of the parameters.
    fn log_prob(&self, z: Self::Samples) -> Tensor<2> {
        self.law().log_prob(canonical_of::<Self>(self.law(), z))
    }

    /// The means.
    fn mean(&self) -> Self::Parameters {
        parameters_of::<Self>(self.law(), self.law().mean())
    }

    /// The variances of the coordinates.
    fn variance(&self) -> Self::Parameters {
        parameters_of::<Self>(self.law(), self.law().variance())
    }

    /// The entropy of each batch element in nats, `[batch]`.
    ///
    /// # Errors
    ///
    /// [`NoClosedForm`](crate::Error::NoClosedForm) for Poisson and binomial variables, and for
    /// negative binomial ones that are not geometric.
    fn entropy(&self) -> Result<Tensor<1>> {
        self.law().entropy()
    }

    /// The Kullback-Leibler divergence from `self` to `other` of each batch element in nats,
    /// `[batch]`, on the tapes of both. `other` may have a batch of 1, which serves all elements.
    ///
    /// # Errors
    ///
    /// [`Mismatch`](crate::Error::Mismatch) if the families, their fixed numbers or the shapes
    /// differ.
    fn kl(&self, other: &Self) -> Result<Tensor<1>> {
        self.law().kl(other.law())
    }

    /// The same distribution, at whose parameters estimators look first or not.
    #[must_use]
    fn with_checks(self, checks: Checks) -> Self {
        Self::from_law(self.law().with_checks(checks))
    }

    /// Looks for NaN, infinite and out-of-range parameters; see [`Law::validate`].
    ///
    /// # Errors
    ///
    /// The first bad value, with its index.
    fn validate(&self) -> Result<()> {
        self.law().validate()
    }
}

/// The canonical form is a distribution itself, for code that serves every family, and for
/// objectives whose layers are of different families.
impl Distribution for Law {
    type Parameters = Tensor<3>;
    type Samples = Tensor<4>;

    fn law(&self) -> &Law {
        self
    }

    fn from_law(law: Law) -> Self {
        law
    }

    fn element(law: &Law) -> Vec<usize> {
        law.dims()[1..].to_vec()
    }
}
