//! Exact expectations and gradients by enumeration: the oracle that every estimator is checked
//! against.
//!
//! Finite supports are enumerated completely. Infinite ones are cut where each tail of each
//! coordinate has probability at most `exp(-log_tail)`; [`Expectation::omitted`] bounds the
//! probability of everything that was left out, so the error is at most that times the largest
//! cost there.

use burn::tensor::Tensor;

use crate::distribution::{Distribution, Law, parameters_of, samples_of};
use crate::error::{Error, Result};
use crate::estimate::layers::sum_of;
use crate::estimate::objective::{Context, IntoCost, Objective, ObjectiveKind, Single, check_cost};
use crate::ops::{from_host, on_the_side};

/// States that are evaluated in one call of the cost.
const CHUNK: usize = 1 << 14;

/// The oracle and its limits.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let q = Poisson::from_rates(Tensor::<2>::from_floats([[5.0]], &Device::flex()))?;
/// // E z^2 = rate + rate^2; by the log-rate, its derivative is rate + 2 rate^2.
/// let gradient = Exact::default().gradient(&q, |z| z.square())?;
/// assert!((gradient.into_scalar::<f32>() - 55.0).abs() < 1e-3);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exact {
    /// Each tail that is cut off has probability at most `exp(-log_tail)`.
    pub log_tail: f64,
    /// The largest number of states.
    pub limit: usize,
}

impl Default for Exact {
    fn default() -> Self {
        Self {
            log_tail: 45.0,
            limit: 1 << 20,
        }
    }
}

/// An exact expectation.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The expected cost of each batch element, `[batch]`, on the tapes of the distribution and of
    /// the cost: its backward pass is the exact gradient of both.
    pub value: Tensor<1>,
    /// The number of states that were visited.
    pub states: usize,
    /// A bound on the probability of all states that were not.
    pub omitted: f64,
}

impl Exact {
    /// The expectation of a cost, `[n, batch, ..]` to `[n, batch]` or `[n, batch, 1, ..]`, under a
    /// distribution of few coordinates.
    ///
    /// # Errors
    ///
    /// If there are more states than the limit, a parameter or the cost is not finite, or the cost
    /// fails or has the wrong shape.
    pub fn expectation<D: Distribution, R: IntoCost>(
        &self,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<Expectation> {
        self.expectation_of(&Single::new(q, (), |z, _: &D, ()| cost(z)))
    }

    /// As [`expectation`](Self::expectation), of a cost that also uses the distribution or a
    /// context.
    ///
    /// # Errors
    ///
    /// As [`expectation`](Self::expectation), and if a bound is asked for.
    pub fn expectation_of<D, C, F, R>(&self, single: &Single<'_, D, C, F>) -> Result<Expectation>
    where
        D: Distribution,
        C: Context,
        F: Fn(D::Samples, &D, C) -> R,
        R: IntoCost,
    {
        let q = single.distribution();
        let law = q.law();
        let grid = self.grid(law)?;
        let part = |chunk| {
            let z = grid.states(chunk, law);
            let probability = law.log_prob(z.clone()).exp();
            let part = (probability * cost_of(single, q, z)?).sum_dim(0);
            Ok(part.squeeze_dim(0))
        };
        Ok(Expectation {
            value: sum_of(grid.chunks().map(part))?,
            states: grid.len,
            omitted: grid.omitted,
        })
    }

    /// The exact gradient of the expected cost of each batch element with respect to its natural
    /// parameters, on no tape and in bounded memory.
    ///
    /// # Errors
    ///
    /// As [`expectation`](Self::expectation).
    pub fn gradient<D: Distribution, R: IntoCost>(
        &self,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<D::Parameters> {
        self.gradient_of(&Single::new(q, (), |z, _: &D, ()| cost(z)))
    }

    /// As [`gradient`](Self::gradient), of a cost that also uses the distribution or a context,
    /// which is a constant here.
    ///
    /// # Errors
    ///
    /// As [`expectation_of`](Self::expectation_of).
    pub fn gradient_of<D, C, F, R>(&self, single: &Single<'_, D, C, F>) -> Result<D::Parameters>
    where
        D: Distribution,
        C: Context,
        F: Fn(D::Samples, &D, C) -> R,
        R: IntoCost,
    {
        let law = single.distribution().law();
        let grid = self.grid(law)?;
        let mut gradient = law.natural().inner().zeros_like();
        for chunk in grid.chunks() {
            let law = law.leaf();
            let z = grid.states(chunk, &law);
            let leaf = D::from_law(law.clone());
            let cost = cost_of(&single.at(&leaf), &leaf, z.clone())?;
            let total = (law.log_prob(z).exp() * cost).sum();
            let part = on_the_side(|| Ok(law.natural().grad(&total.backward())))?;
            if let Some(part) = part {
                gradient = gradient + part;
            }
        }
        Ok(parameters_of::<D>(law, gradient))
    }

    /// All states of a law `[states, batch, d, k]` and their probabilities `[states, batch]`.
    pub(crate) fn states(&self, law: &Law) -> Result<(Tensor<4>, Tensor<2>)> {
        let grid = self.grid(law)?;
        let z = grid.states(0..grid.len, law);
        let probability = law.log_prob(z.clone()).exp();
        Ok((z, probability))
    }

    /// The number of states of a law.
    ///
    /// # Errors
    ///
    /// If it is above the limit, or a parameter is not finite.
    pub fn count(&self, law: &Law) -> Result<usize> {
        self.grid(law).map(|grid| grid.len)
    }

    fn grid(&self, law: &Law) -> Result<Grid> {
        law.validate()?;
        let ranges = common_window(law, self.log_tail);
        Grid::new(ranges, self.limit, self.omitted(law))
    }

    fn omitted(&self, law: &Law) -> f64 {
        match law.family().is_finite() {
            true => 0.0,
            false => 2.0 * law.dims()[1] as f64 * (-self.log_tail).exp(),
        }
    }
}

/// The checked cost `[n, batch]` of states `[n, batch, d, k]`.
fn cost_of<D: Distribution>(
    objective: &impl Objective<D>,
    q: &D,
    z: Tensor<4>,
) -> Result<Tensor<2>> {
    let (expected, got) = (ObjectiveKind::Expectation, objective.kind());
    if got != expected {
        return Err(Error::UnsupportedObjective {
            estimator: "exact",
            expected,
            got,
        });
    }
    let shape = [z.dims()[0], z.dims()[1]];
    let z = samples_of::<D>(q.law(), z);
    check_cost(objective.cost(&[z], std::slice::from_ref(q))?, shape)
}

/// The window of each of the `d` coordinates that serves the whole batch. Finite supports are kept
/// whole.
fn common_window(law: &Law, log_tail: f64) -> Vec<(u64, u64)> {
    let [_, d, _] = law.dims();
    let windows = law.window(match law.family().is_finite() {
        true => f64::INFINITY,
        false => log_tail,
    });
    let of_coordinate = |j: usize| {
        let column = windows.iter().skip(j).step_by(d);
        column.fold((u64::MAX, 0), |(lo, hi), (a, b)| (lo.min(*a), hi.max(*b)))
    };
    (0..d).map(of_coordinate).collect()
}

/// The product of the windows of the coordinates.
struct Grid {
    ranges: Vec<(u64, u64)>,
    len: usize,
    omitted: f64,
}

impl Grid {
    fn new(ranges: Vec<(u64, u64)>, limit: usize, omitted: f64) -> Result<Self> {
        let states: f64 = ranges
            .iter()
            .map(|(lo, hi)| (hi - lo) as f64 + 1.0)
            .product();
        if states > limit as f64 {
            return Err(Error::TooManyStates { states, limit });
        }
        Ok(Self {
            ranges,
            len: states as usize,
            omitted,
        })
    }

    fn chunks(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let len = self.len;
        (0..len)
            .step_by(CHUNK)
            .map(move |start| start..len.min(start + CHUNK))
    }

    /// The states of a range of numbers as samples `[range, batch, d, k]`; the last coordinate
    /// changes fastest.
    fn states(&self, range: std::ops::Range<usize>, law: &Law) -> Tensor<4> {
        let [batch, d, k] = law.dims();
        let n = range.len();
        let mut values = Vec::with_capacity(n * d * k);
        let mut state = vec![0; self.ranges.len()];
        for number in range {
            let mut rest = number;
            for (x, (lo, hi)) in state.iter_mut().zip(&self.ranges).rev() {
                let size = (hi - lo) as usize + 1;
                *x = lo + (rest % size) as u64;
                rest /= size;
            }
            for x in &state {
                match k {
                    1 => values.push(*x as f64),
                    _ => law.family().push_state(*x, k, &mut values),
                }
            }
        }
        let z: Tensor<4> = from_host(values, [n, 1, d, k], &law.natural());
        law.values_of_states(z.expand([n, batch, d, k]))
    }
}

impl Expectation {
    /// A scalar: the mean of [`value`](Self::value) over the batch, whose backward pass gives the
    /// exact gradients.
    pub fn surrogate(&self) -> Tensor<1> {
        self.value.clone().mean()
    }
}
