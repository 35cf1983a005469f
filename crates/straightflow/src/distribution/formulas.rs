//! What a family knows: the formulas that its file gives, and those that all counts share.

use std::fmt::Debug;

use burn::tensor::Tensor;

use super::density::log_prob_of_counts;
use super::divergence::{Divergence, divergence_of_counts};
use super::sampling::sample_counts;
use super::{CountLaw, Family, Law};
use crate::Key;
use crate::error::Result;
use crate::gradient::with_gradient;

/// The least distance of a mean from the end of its range in [`Formulas::natural_of_mean`].
pub(super) const EDGE: f64 = 1e-12;

/// Samples from natural parameters `[1, batch, d, k]` and uniform numbers `[n, batch, d, 1]`.
pub(crate) type Inverse = fn(Tensor<4>, &Tensor<4>) -> Tensor<4>;

/// Means on the tape of the natural parameters, with the chain rule as their gradient.
pub(super) fn with_mean_gradient<F: Formulas>(
    formulas: F,
    natural: Tensor<3>,
    mean: Tensor<3>,
) -> Tensor<3> {
    with_gradient(natural, mean, move |natural, _, grad| {
        formulas.chain(natural, grad)
    })
}

/// The formulas of a family, implemented by its fixed numbers.
///
/// Parameters are canonical: `natural` is `[batch, d, k]` or `[1, batch, d, k]`, samples `z` are
/// `[n, batch, d, k]`. What has a default serves families of counts, whose [`count_law`] knows one
/// coordinate. Formulas are called through a [`Law`], which has checked the shapes.
///
/// [`count_law`]: Formulas::count_law
pub(super) trait Formulas: Copy + Debug + Send + Sync + 'static {
    // The family and its parameters.

    /// The natural parameter's name in messages.
    fn natural_name(&self) -> &'static str;

    /// See [`Family::is_one_hot`].
    fn is_one_hot(&self) -> bool {
        false
    }

    /// See [`Family::is_vector`].
    fn is_vector(&self) -> bool {
        self.is_one_hot()
    }

    /// See [`Family::is_binary`].
    fn is_binary(&self) -> bool {
        false
    }

    /// Whether there are finitely many values.
    fn is_finite(&self) -> bool {
        self.is_binary()
    }

    /// Checks the fixed numbers, and the shape of parameters of which no dimension is 0.
    fn check(&self, _shape: [usize; 3]) -> Result<()> {
        Ok(())
    }

    /// What means that are given have to be below, and the whole condition in words.
    fn allowed_means(&self) -> (f64, &'static str) {
        (f64::INFINITY, "positive and finite")
    }

    /// Whether the natural parameters follow from the means by a formula.
    fn has_natural_of_means(&self) -> bool {
        true
    }

    /// The natural parameters of means, on their tape.
    fn natural_of_means(&self, means: Tensor<3>) -> Tensor<3> {
        means.log()
    }

    /// The natural parameter of one mean, which is kept [`EDGE`] away from where it is infinite.
    fn natural_of_mean(&self, mean: f64) -> f64 {
        mean.max(EDGE).ln()
    }

    // Moments.

    /// See [`Law::mean`].
    fn mean(&self, natural: Tensor<3>) -> Tensor<3>;

    /// See [`Law::variance`].
    fn variance(&self, natural: Tensor<3>) -> Tensor<3>;

    /// See [`Law::chain_factor`]. It is the variance of an exponential family in its natural
    /// parameter.
    fn chain_factor(&self, natural: Tensor<3>) -> Tensor<3> {
        self.variance(natural)
    }

    /// See [`Law::chain`].
    fn chain<const R: usize>(&self, natural: Tensor<3>, grad: Tensor<R>) -> Tensor<R> {
        grad * self.chain_factor(natural).unsqueeze::<R>()
    }

    // Densities.

    /// One coordinate in double precision, of a family of counts.
    fn count_law(&self, _natural: f64) -> Option<CountLaw> {
        None
    }

    /// See [`Law::log_prob_each`].
    fn log_prob_each(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<3> {
        log_prob_of_counts(*self, natural, z).squeeze_dim(3)
    }

    /// See [`Law::log_prob`].
    fn log_prob(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<2> {
        self.log_prob_each(natural, z).sum_dim(2).squeeze_dim(2)
    }

    /// See [`Law::score`].
    fn score(&self, natural: Tensor<4>, z: Tensor<4>) -> Tensor<4> {
        let [down, up] = self.step_weights(natural, z);
        down - up
    }

    /// The entropy of each coordinate `[batch, d, k]`, if it has a closed form.
    fn entropy(&self, _natural: Tensor<3>) -> Option<Tensor<3>> {
        None
    }

    /// The Kullback-Leibler divergence of each coordinate `[batch, d, k]`, on both tapes.
    fn divergence(&self, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
        divergence_of_counts(*self, p, q)
    }

    /// The same of one ordered coordinate in double precision, with its derivatives.
    fn divergence_of(&self, _p: f64, _q: f64) -> Divergence {
        unreachable!("the divergence of counts alone")
    }

    // Samples.

    /// See [`Law::sample`].
    fn sample(&self, law: &Law, key: Key, n: usize) -> Tensor<4> {
        sample_counts(law, key, n)
    }

    /// Samples by inversion of the distribution function in tensors, where that is short.
    fn inverse(&self) -> Option<Inverse> {
        None
    }

    /// The number of values of a vector of `k` numbers.
    fn states(&self, k: usize) -> f64 {
        k as f64
    }

    /// Appends a value of a vector of `k` numbers, by its number: for categories, a corner.
    fn push_state(&self, number: u64, k: usize, to: &mut Vec<f64>) {
        to.extend((0..k as u64).map(|category| f64::from(u8::from(category == number))));
    }

    /// The values of ordered coordinates from their numbers `[n, batch, d, 1]`, where the support
    /// depends on the parameter.
    fn values_of_states(&self, _natural: Tensor<3>, numbers: Tensor<4>) -> Tensor<4> {
        numbers
    }

    // Unit moves, and what they weigh in the gradient.

    /// See [`Law::weight`].
    fn weight(&self, _natural: Tensor<3>) -> Option<(Family, Tensor<3>)> {
        None
    }

    /// See [`Law::step_weights`].
    fn step_weights(&self, _natural: Tensor<4>, _z: Tensor<4>) -> [Tensor<4>; 2] {
        unreachable!("only counts have steps")
    }

    /// Whether the weight of a unit move of an ordered coordinate depends on the draw.
    fn weighs_draws(&self) -> bool {
        false
    }

    /// The weight of each unit move from `z`; see [`Moves`](super::Moves).
    fn move_weight(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<4> {
        let factor = self.chain_factor(natural).unsqueeze::<4>();
        factor.expand(z.dims())
    }

    /// See [`Family::trials_of_step`]: one trial, taken at random, gets the other outcome.
    fn trials_of_step(&self) -> Option<f64> {
        None
    }

    /// Whether a unit move exchanges two items of a vector of zeros and ones.
    fn has_swaps(&self) -> bool {
        false
    }

    /// See [`Family::partner`].
    fn partner(&self, _natural: &[f64], _z: &[f64], _item: usize, _side: f64) -> usize {
        unreachable!("only items of a vector are exchanged")
    }

    /// See [`Family::kernel_response`].
    fn kernel_response(&self, _natural: &[f64], _y: &[f64], _bandwidth: f64) -> Vec<f64> {
        unreachable!("only subsets have it in closed form")
    }

    /// The unit move of an ordered coordinate, 1 or -1. `side` is a uniform number for a family
    /// with [`trials_of_step`](Self::trials_of_step), and ignored by others.
    fn step(&self, _z: f64, _side: f64) -> f64 {
        1.0
    }

    /// Where [`step`](Self::step) leads, as tensors.
    fn moved(&self, _natural: Tensor<3>, z: Tensor<4>, _side: Option<Tensor<4>>) -> Tensor<4> {
        z + 1.0
    }
}
