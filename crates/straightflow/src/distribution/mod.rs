//! Discrete distributions, factorised over `[batch, d]`.
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

use std::fmt::Debug;

use burn::tensor::Tensor;

use crate::Key;
use crate::error::Result;

/// A tensor that has a canonical form with one more dimension, or is in it already.
///
/// Ordered families hide a last dimension of size 1: `[batch, d]` stands for `[batch, d, 1]`.
pub trait Canonical<const R: usize>: Clone + Debug + Send + 'static {
    /// To the canonical form.
    fn into_canonical(self) -> Tensor<R>;
    /// From the canonical form.
    fn from_canonical(canonical: Tensor<R>) -> Self;
}

impl Canonical<3> for Tensor<2> {
    fn into_canonical(self) -> Tensor<3> {
        self.unsqueeze_dim(2)
    }
    fn from_canonical(canonical: Tensor<3>) -> Self {
        canonical.squeeze_dim(2)
    }
}

impl Canonical<4> for Tensor<3> {
    fn into_canonical(self) -> Tensor<4> {
        self.unsqueeze_dim(3)
    }
    fn from_canonical(canonical: Tensor<4>) -> Self {
        canonical.squeeze_dim(3)
    }
}

impl<const R: usize> Canonical<R> for Tensor<R> {
    fn into_canonical(self) -> Tensor<R> {
        self
    }
    fn from_canonical(canonical: Tensor<R>) -> Self {
        canonical
    }
}

/// What every distribution offers.
///
/// Parameters and single draws are `[batch, d]`, `n` samples are `[n, batch, d]`; categorical
/// variables have a last dimension `k` more. Numbers have the type of the parameters, `f32` or
/// `f64`. Whatever depends on the parameters is on their tape, if they are on one.
pub trait Distribution: Clone + Debug + Send + Sync + 'static {
    /// The type of parameters, means and single draws: `Tensor<2>`, or `Tensor<3>` if categorical.
    type Parameters: Canonical<3>;
    /// The type of samples: `Tensor<3>`, or `Tensor<4>` if categorical.
    type Samples: Canonical<4>;

    /// The canonical form.
    fn law(&self) -> &Law;

    /// The distribution of a law of the same family.
    fn from_law(law: Law) -> Self;

    /// The natural parameters.
    fn natural(&self) -> Self::Parameters {
        Self::Parameters::from_canonical(self.law().natural())
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
        Self::Samples::from_canonical(self.law().sample(key, n))
    }

    /// One hard sample of each variable, of the shape of the parameters, on no tape.
    fn draw(&self, key: Key) -> Self::Parameters {
        Self::Parameters::from_canonical(self.law().sample(key, 1).squeeze_dim(0))
    }

    /// `log q(z)` of each draw and batch element, `[n, batch]`.
    ///
    /// # Panics
    ///
    /// If the shape of `z` is not `[n, batch, d]` (`[n, batch, d, k]`).
    fn log_prob(&self, z: Self::Samples) -> Tensor<2> {
        self.law().log_prob(z.into_canonical())
    }

    /// The means.
    fn mean(&self) -> Self::Parameters {
        Self::Parameters::from_canonical(self.law().mean())
    }

    /// The variances of the coordinates.
    fn variance(&self) -> Self::Parameters {
        Self::Parameters::from_canonical(self.law().variance())
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
}

/// Makes a type whose only field is a [`Law`] a distribution.
macro_rules! wraps_law {
    ($Type:ident, $Parameters:ty, $Samples:ty) => {
        impl Distribution for $Type {
            type Parameters = $Parameters;
            type Samples = $Samples;

            fn law(&self) -> &Law {
                &self.0
            }

            fn from_law(law: Law) -> Self {
                Self(law)
            }
        }
    };
}
use wraps_law;
