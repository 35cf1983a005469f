//! The canonical form of every distribution: a family and its natural parameters.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::family::with_formulas;
use super::formulas::Formulas as _;
use super::{Canonical as _, Checks, CountLaw, Family};
use crate::Key;
use crate::error::{Error, Result};
use crate::ops::{check_precision, first_non_finite, guarded, leaf_like, to_host};

/// Independent discrete variables of one family, in the shapes that estimators work with.
///
/// Natural parameters are `[batch, d, k]` and samples `[n, batch, d, k]`, where `k` is the number
/// of categories of a categorical variable, that of the items of a subset, and 1 for every other
/// family. The typed distributions ([`Bernoulli`](super::Bernoulli), ...) wrap a law; they have
/// parameters of any rank and hide the last dimension where it is 1.
#[derive(Clone, Debug)]
pub struct Law {
    family: Family,
    natural: Tensor<3>,
    /// The dimensions that `d` stands for, if it is not one.
    coordinates: Option<Arc<[usize]>>,
    /// The means behind the natural parameters, if those were given, for [`Law::validate`].
    means: Option<Tensor<3>>,
    checks: Checks,
}

impl Law {
    /// A law with natural parameters `[batch, d, k]`, on a tape or not.
    ///
    /// # Errors
    ///
    /// If a dimension is 0, a categorical variable has fewer than two categories, a fixed number
    /// of the family is out of its range, or the device does not compute in double precision and the
    /// parameters are of type `f64`. Values are looked at by [`validate`](Self::validate).
    pub fn new(family: Family, natural: Tensor<3>) -> Result<Self> {
        let shape = natural.dims();
        if shape.contains(&0) {
            let (shape, family) = (Self::user_shape(family, shape), family.kind());
            return Err(Error::EmptyShape { family, shape });
        }
        with_formulas!(family, formulas => formulas.check(shape))?;
        check_precision(&natural)?;
        Ok(Self::unchecked(family, guarded(natural)))
    }

    /// A law with means `[batch, d, k]`; the natural parameters are on their tape.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if the natural parameters do not follow from the means by a
    /// formula.
    pub fn from_means(family: Family, means: Tensor<3>) -> Result<Self> {
        if !with_formulas!(family, formulas => formulas.has_natural_of_means()) {
            return Err(Error::NoNatural {
                family: family.kind(),
            });
        }
        let given = means.clone();
        let natural = with_formulas!(family, formulas => formulas.natural_of_means(given));
        let law = Self::new(family, natural)?;
        Ok(Self {
            means: Some(means.inner()),
            ..law
        })
    }

    /// A law with parameters `[batch, ..]` of numbers, or `[batch, .., k]` of vectors, of any rank;
    /// `make` is for those in canonical shape.
    pub(super) fn of_rank<const R: usize>(
        family: Family,
        parameters: Tensor<R>,
        vectors: bool,
        make: impl FnOnce(Family, Tensor<3>) -> Result<Self>,
    ) -> Result<Self> {
        let dims = parameters.dims();
        if dims.contains(&0) {
            let (shape, family) = (dims.to_vec(), family.kind());
            return Err(Error::EmptyShape { family, shape });
        }
        let (coordinates, k) = match vectors {
            true => (&dims[1..R - 1], dims[R - 1]),
            false => (&dims[1..], 1),
        };
        let last = [coordinates.iter().product(), k];
        let parameters = parameters.into_canonical(&dims[1..], last);
        let law = make(family, parameters.expect("the element is its own"))?;
        Ok(law.with_coordinates((coordinates.len() != 1).then(|| coordinates.into())))
    }

    fn with_coordinates(self, coordinates: Option<Arc<[usize]>>) -> Self {
        Self {
            coordinates,
            ..self
        }
    }

    /// The same law with its coordinates in so many dimensions: as they are, or in one.
    pub(super) fn with_rank(self, dimensions: usize) -> Self {
        if dimensions == 1 {
            return self.with_coordinates(None);
        }
        let own = self.coordinates.as_ref().map_or(1, |own| own.len());
        assert_eq!(own, dimensions, "a law of another rank");
        self
    }

    /// The same law with its coordinates in the dimensions of another.
    pub(crate) fn arranged_as(&self, other: &Self) -> Self {
        self.clone().with_coordinates(other.coordinates.clone())
    }

    /// The shape of the parameters of a batch element: the dimensions of the coordinates, and `k`
    /// for vectors.
    pub(super) fn element(&self, vectors: bool) -> Vec<usize> {
        let [_, d, k] = self.dims();
        let one = [d];
        let coordinates = self.coordinates.as_deref().unwrap_or(&one).iter();
        coordinates.copied().chain(vectors.then_some(k)).collect()
    }

    /// The family.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The natural parameters `[batch, d, k]`, on their tape.
    pub fn natural(&self) -> Tensor<3> {
        self.natural.clone()
    }

    /// `[batch, d, k]`.
    pub fn dims(&self) -> [usize; 3] {
        self.natural.dims()
    }

    /// The shape of `n` samples, `[n, batch, d, k]`.
    pub fn sample_dims(&self, n: usize) -> [usize; 4] {
        let [batch, d, k] = self.dims();
        [n, batch, d, k]
    }

    /// The same law as a constant.
    pub fn constant(&self) -> Self {
        self.with_natural(self.natural().inner())
    }

    /// The same law as a leaf of a new tape, and so apart from whatever network made its
    /// parameters.
    pub fn leaf(&self) -> Self {
        self.with_natural(leaf_like(self.natural(), &self.natural))
    }

    /// A law of the same family with other natural parameters of a valid shape.
    pub(crate) fn with_natural(&self, natural: Tensor<3>) -> Self {
        Self {
            checks: self.checks,
            coordinates: self.coordinates.clone(),
            ..Self::unchecked(self.family, natural)
        }
    }

    /// A law whose family and shape are known to be valid: those of another law.
    pub(crate) fn unchecked(family: Family, natural: Tensor<3>) -> Self {
        Self {
            family,
            natural,
            coordinates: None,
            means: None,
            checks: Checks::On,
        }
    }

    pub(super) fn with_checks(&self, checks: Checks) -> Self {
        Self {
            checks,
            ..self.clone()
        }
    }

    /// Whether estimators leave it to the check of the cost to find bad parameters.
    pub(crate) fn skips_checks(&self) -> bool {
        self.checks == Checks::Off && self.family.is_binary()
    }

    /// The means `[batch, d, k]`, on the tape of the parameters.
    pub fn mean(&self) -> Tensor<3> {
        with_formulas!(self.family, formulas => formulas.mean(self.natural()))
    }

    /// The variance of each coordinate `[batch, d, k]`, on the tape of the parameters.
    pub fn variance(&self) -> Tensor<3> {
        with_formulas!(self.family, formulas => formulas.variance(self.natural()))
    }

    /// Turns a gradient with respect to the means into one with respect to the natural parameters:
    /// the transposed Jacobian `d mean / d natural` times `grad`.
    ///
    /// `grad` is `[batch, d, k]` or `[n, batch, d, k]` (`R` = 3 or 4). The product is arranged so
    /// that logits of any size give zero or a finite number: `p (1 - p)` is
    /// `sigmoid(x) sigmoid(-x)`.
    pub fn chain<const R: usize>(&self, grad: Tensor<R>) -> Tensor<R> {
        with_formulas!(self.family, formulas => formulas.chain(self.natural(), grad))
    }

    /// The chain factor `d mean / d natural` `[batch, d, 1]` of an ordered family; for a
    /// categorical variable, the diagonal `p (1 - p)` of its Jacobian.
    pub fn chain_factor(&self) -> Tensor<3> {
        with_formulas!(self.family, formulas => formulas.chain_factor(self.natural()))
    }

    /// The law `w` of `d/dm E g(Z) = sum_x w(x) [g(x + 1) - g(x)]`, which is again a law of an
    /// ordered family; `None` for a vector and for a number on a lattice.
    ///
    /// | family | `w` |
    /// |---|---|
    /// | Bernoulli(p) | the point mass at 0, as a binomial law without trials |
    /// | Binomial(n, p) | Binomial(n - 1, p) |
    /// | Poisson(m) | Poisson(m) |
    /// | NegativeBinomial(r, p) | NegativeBinomial(r + 1, p) |
    /// | Geometric(p) | NegativeBinomial(2, p) |
    pub fn weight(&self) -> Option<Self> {
        let weight = with_formulas!(self.family, formulas => formulas.weight(self.natural()));
        weight.map(|(family, natural)| Self::unchecked(family, natural).arranged_as(self))
    }

    /// The logarithm of the probability of each coordinate, `[n, batch, d]`, on the tapes of the
    /// parameters and of the samples `[n, batch, d, k]`.
    ///
    /// Relaxed samples are welcome: probabilities are continued linearly (Bernoulli, Categorical)
    /// or by gamma functions (counts).
    ///
    /// # Panics
    ///
    /// If the shapes do not fit.
    pub fn log_prob_each(&self, z: Tensor<4>) -> Tensor<3> {
        with_formulas!(self.family, formulas => formulas.log_prob_each(self.natural(), z))
    }

    /// `log q(z)` of each draw and batch element, `[n, batch]`: the sum of
    /// [`log_prob_each`](Self::log_prob_each) over the coordinates.
    pub fn log_prob(&self, z: Tensor<4>) -> Tensor<2> {
        with_formulas!(self.family, formulas => formulas.log_prob(self.natural(), z))
    }

    /// The score `d log q(z) / d natural` of each coordinate, `[n, batch, d, k]`, for hard samples.
    pub fn score(&self, z: Tensor<4>) -> Tensor<4> {
        let natural = self.natural().unsqueeze::<4>();
        with_formulas!(self.family, formulas => formulas.score(natural, z))
    }

    /// The weights `[down, up]` of the steps of ordered coordinates, `[n, batch, d, 1]`, or
    /// `[1, batch, d, 1]` if a weight does not depend on the draw. With them the gradient of an
    /// expectation with respect to the natural parameters is both `E up(z) [f(z + 1) - f(z)]` and
    /// `E down(z) [f(z) - f(z - 1)]`.
    pub(crate) fn step_weights(&self, z: Tensor<4>) -> [Tensor<4>; 2] {
        let natural = self.natural().unsqueeze::<4>();
        with_formulas!(self.family, formulas => formulas.step_weights(natural, z))
    }

    /// The samples with every ordered coordinate moved by one unit; see
    /// [`trials_of_step`](Family::trials_of_step) for `side`, uniform numbers of the shape of `z`.
    pub(crate) fn moved(&self, z: Tensor<4>, side: Option<Tensor<4>>) -> Tensor<4> {
        with_formulas!(self.family, formulas => formulas.moved(self.natural(), z, side))
    }

    /// The values of ordered coordinates from their numbers `[n, batch, d, 1]` in a window.
    pub(crate) fn values_of_states(&self, numbers: Tensor<4>) -> Tensor<4> {
        with_formulas!(self.family, formulas => {
            formulas.values_of_states(self.natural(), numbers)
        })
    }

    /// The entropy; see [`Distribution::entropy`](super::Distribution::entropy).
    ///
    /// # Errors
    ///
    /// If there is no closed form.
    pub fn entropy(&self) -> Result<Tensor<1>> {
        let each = with_formulas!(self.family, formulas => formulas.entropy(self.natural()));
        let each = each.ok_or(Error::NoClosedForm {
            quantity: "entropy",
            family: self.family.kind(),
        })?;
        Ok(sum_of_element(each))
    }

    /// The divergence; see [`Distribution::kl`](super::Distribution::kl).
    ///
    /// # Errors
    ///
    /// If the families, their fixed numbers or the shapes differ.
    pub fn kl(&self, other: &Self) -> Result<Tensor<1>> {
        let ([batch, d, k], [other_batch, other_d, other_k]) = (self.dims(), other.dims());
        let fits = (other_batch == batch || other_batch == 1) && (d, k) == (other_d, other_k);
        if self.family != other.family || !fits {
            return Err(Error::Mismatch {
                left: self.describe(),
                right: other.describe(),
            });
        }
        let (p, q) = (self.natural(), other.natural().expand([batch, d, k]));
        let each = with_formulas!(self.family, formulas => formulas.divergence(p, q));
        Ok(sum_of_element(each))
    }

    fn describe(&self) -> String {
        format!("{:?} with parameters {:?}", self.family, self.dims())
    }

    /// `n` hard samples `[n, batch, d, k]`, on no tape: 0 or 1, one-hot vectors, or counts.
    ///
    /// The bits depend on the key and the shape only, not on the number of threads. What a
    /// parameter that is not a number gives is not specified; [`validate`](Self::validate) finds
    /// it.
    pub fn sample(&self, key: Key, n: usize) -> Tensor<4> {
        with_formulas!(self.family, formulas => formulas.sample(self, key, n))
    }

    /// Samples of uniform numbers `[n, batch, d, 1]` by inversion, for a family that has
    /// [`inverse`](Family::inverse).
    pub(crate) fn invert(&self, uniform: &Tensor<4>) -> Option<Tensor<4>> {
        let inverse = self.family.inverse()?;
        Some(inverse(self.natural().unsqueeze::<4>(), uniform))
    }

    /// The law of each coordinate in double precision, in row-major order of `[batch, d]`; `None`
    /// for vectors and for numbers on a lattice.
    pub fn count_laws(&self) -> Option<Vec<CountLaw>> {
        let naturals = to_host(self.natural()).into_iter();
        with_formulas!(self.family, formulas => {
            naturals.map(|natural| formulas.count_law(natural)).collect()
        })
    }

    /// The values `lo..=hi` of each coordinate, in row-major order of `[batch, d]`, outside of
    /// which each tail has probability at most `exp(-log_tail)`. The values of a vector are numbered
    /// from 0, a categorical variable has `0..=k - 1`; so are the two neighbours on a lattice.
    pub fn window(&self, log_tail: f64) -> Vec<(u64, u64)> {
        match self.count_laws() {
            Some(laws) => laws.iter().map(|law| law.window(log_tail)).collect(),
            None => {
                let [batch, d, k] = self.dims();
                let states = with_formulas!(self.family, formulas => formulas.states(k));
                vec![(0, states as u64 - 1); batch * d]
            }
        }
    }

    /// Looks for NaN, infinite and out-of-range parameters. It reads every value, so it waits for
    /// a device that computes asynchronously.
    ///
    /// # Errors
    ///
    /// The first bad value, with its index.
    pub fn validate(&self) -> Result<()> {
        if let Some(means) = &self.means {
            let (below, allowed) = with_formulas!(self.family, f => f.allowed_means());
            let values = to_host(means.clone());
            let valid = |x: f64| x > 0.0 && x < below;
            if let Some(index) = values.iter().position(|x| !valid(*x)) {
                return Err(Error::Parameter {
                    family: self.family.kind(),
                    parameter: "mean",
                    index: self.user_index(index),
                    value: values[index],
                    allowed,
                });
            }
        }
        match first_non_finite(&self.natural) {
            None => Ok(()),
            Some((index, value)) => Err(Error::Parameter {
                family: self.family.kind(),
                parameter: with_formulas!(self.family, formulas => formulas.natural_name()),
                index: self.user_index(index),
                value,
                allowed: "finite",
            }),
        }
    }

    fn user_shape(family: Family, shape: [usize; 3]) -> Vec<usize> {
        match family.is_vector() {
            true => shape.to_vec(),
            false => shape[..2].to_vec(),
        }
    }

    fn user_index(&self, flat: usize) -> Vec<usize> {
        let element = self.element(self.family.is_one_hot());
        let (mut rest, mut index) = (flat, Vec::new());
        for size in element.iter().rev() {
            index.push(rest % size);
            rest /= size;
        }
        index.push(rest);
        index.reverse();
        index
    }
}

/// `[batch, d, k]` to `[batch]`.
fn sum_of_element(each: Tensor<3>) -> Tensor<1> {
    each.sum_dim(2).sum_dim(1).squeeze_dims(&[1, 2])
}
