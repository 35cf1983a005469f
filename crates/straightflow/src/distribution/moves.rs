//! The unit moves of hard samples: a bit flips, a count takes one step, a category is swapped for
//! another. The exact gradient is a sum over them.

use burn::tensor::{Tensor, activation::sigmoid, activation::softmax};

use super::{Family, Law};

/// The moves from samples `z` `[n, batch, d, k]`, one for each coordinate; for a categorical
/// variable, one to each category. Everything is constant.
///
/// With the cost's *slope* along each move, the gradient with respect to the natural parameters is
/// the expectation of `sum over moves of weight * slope * direction`:
///
/// | family | move | weight | slope |
/// |---|---|---|---|
/// | Bernoulli | `z -> 1 - z` | `p (1 - p)` | `(1 - 2 z) (f(moved) - f(z))` |
/// | Binomial(N) | a step `s`: down with probability `z / N`, else up | `N p (1 - p)` | `s (f(moved) - f(z))` |
/// | Poisson | `z -> z + 1` | the rate | `f(moved) - f(z)` |
/// | Negative binomial(r) | `z -> z + 1` | `m (r + z) / (r + m)` | `f(moved) - f(z)` |
/// | Categorical | `z -> e_j`, `j` not the category of `z` | `p_j (1 - p_j)` | `f(moved) - f(z)` |
///
/// The direction is the coordinate itself. For a category it is `(e_j - p) / (1 - p_j)`, that is
/// `e_j` less the probabilities of the others among themselves.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    law: Law,
    z: Tensor<4>,
    /// The step of an ordered coordinate, 1 or -1.
    step: Tensor<4>,
}

impl Moves {
    /// The moves from `z`. A binomial law takes uniform numbers `side` `[n, batch, d, 1]`.
    pub fn new(law: &Law, z: Tensor<4>, side: Option<Tensor<4>>) -> Self {
        let step = match (law.family(), side) {
            (Family::Bernoulli, _) => z.clone() * -2.0 + 1.0,
            (Family::Binomial { trials }, Some(side)) => {
                // One trial, taken at random, had a success with probability z / N.
                let success = side.lower(z.clone() / f64::from(trials));
                success.float().cast(z.dtype()) * -2.0 + 1.0
            }
            _ => z.ones_like(),
        };
        Self {
            law: law.constant(),
            z,
            step,
        }
    }

    pub fn law(&self) -> &Law {
        &self.law
    }

    pub fn samples(&self) -> Tensor<4> {
        self.z.clone()
    }

    /// The step of each ordered coordinate, 1 or -1.
    pub fn step(&self) -> Tensor<4> {
        self.step.clone()
    }

    /// The weight of each move, `[n, batch, d, k]`; zero where there is none.
    pub fn weight(&self) -> Tensor<4> {
        let natural = self.law.natural().unsqueeze::<4>();
        match self.law.family() {
            Family::NegativeBinomial { dispersion } => {
                (self.z.clone() + dispersion) * sigmoid(natural - dispersion.ln())
            }
            Family::Categorical => {
                let variance = self.law.variance().unsqueeze::<4>();
                variance * (-self.z.clone() + 1.0)
            }
            _ => {
                let factor = self.law.chain_factor().unsqueeze::<4>();
                factor.expand(self.z.dims())
            }
        }
    }

    /// The samples after the moves that `chosen` `[m n, batch, d, k]` marks with 1, at most one for
    /// each variable and repetition of the `n` draws.
    pub fn apply(&self, chosen: Tensor<4>) -> Tensor<4> {
        let z = repeat_to(&self.z, &chosen);
        match self.law.family() {
            Family::Categorical => z * (-chosen.clone().sum_dim(3) + 1.0) + chosen,
            _ => z + chosen.clone() * repeat_to(&self.step, &chosen),
        }
    }

    /// The slope of the marked moves from the differences `f(moved) - f(z)` `[m n, batch]`.
    pub fn slope(&self, rise: Tensor<2>, chosen: &Tensor<4>) -> Tensor<4> {
        let rise = rise.unsqueeze_dims::<4>(&[2, 3]);
        match self.law.family() {
            Family::Categorical => rise * chosen.clone(),
            _ => rise * (chosen.clone() * repeat_to(&self.step, chosen)),
        }
    }

    /// What a gradient `df/dz` predicts of the slope of each move.
    pub fn predicted_slope(&self, gradient: Tensor<4>) -> Tensor<4> {
        match self.law.family() {
            Family::Categorical => {
                let here = (gradient.clone() * self.z.clone()).sum_dim(3);
                gradient - here
            }
            _ => gradient,
        }
    }

    /// `sum over all moves of weight * x * direction`, for `x` `[n, batch, d, k]`. For categories
    /// `x` is zero at the category of `z`, or taken relative to it.
    pub fn weighted_sum(&self, x: Tensor<4>) -> Tensor<4> {
        match self.law.family() {
            Family::Categorical => self.law.chain(x),
            _ => self.weight() * x,
        }
    }

    /// `x * direction` for `x` `[m n, batch, d, k]` that is zero but at the marked moves.
    pub fn along(&self, x: Tensor<4>, chosen: &Tensor<4>) -> Tensor<4> {
        match self.law.family() {
            Family::Categorical => {
                let natural = self.law.natural().unsqueeze::<4>().expand(chosen.dims());
                let others = natural.mask_fill(chosen.clone().greater_elem(0.5), f64::NEG_INFINITY);
                x.clone() - softmax(others, 3) * x.sum_dim(3)
            }
            _ => x,
        }
    }
}

/// `x` `[n, ..]` once for each repetition in `like` `[m n, ..]`.
pub(crate) fn repeat_to(x: &Tensor<4>, like: &Tensor<4>) -> Tensor<4> {
    match like.dims()[0] / x.dims()[0] {
        1 => x.clone(),
        m => x.clone().repeat_dim(0, m),
    }
}
