//! Subsets of fixed size, as k-hot vectors.

mod small;
mod swap;

use std::cell::RefCell;

use burn::tensor::Tensor;
use rayon::prelude::*;

use self::small::{Small, Table};
use super::divergence::{Side, with_slopes};
use super::formulas::{Formulas, with_mean_gradient};
use super::{Distribution, Family, Law, Vectors, wraps_law};
use crate::Key;
use crate::error::{Error, Result};
use crate::gradient::with_gradient;
use crate::ops::{from_host, to_host};

thread_local! {
    /// Kept from call to call: new memory of this size costs as much as filling it.
    static TABLE: RefCell<Table> = RefCell::default();
}

/// Independent variables that choose `size` of `m` items, as vectors of zeros and `size` ones: a
/// subset has a probability proportional to the exponential of the sum of its logits.
///
/// `P(z) = exp(θ·z) / e_k(exp θ)` for `Σ_i z_i = k`, where `e_k` is the elementary symmetric polynomial.
///
/// It is the law of independent bits with these logits, given their sum. Means are the
/// probabilities that an item is in; they sum to `size`. The Jacobian of the means is the covariance
/// matrix of an element, so straight-through is SIMPLE (Ahmed, Zeng, Niepert, Van den Broeck 2023,
/// arXiv 2210.01941). With `size` 1 it is [`Categorical`](super::Categorical).
///
/// It is *not* the law of the `size` largest of the logits plus Gumbel noise, which is that of
/// drawing items without replacement.
///
/// Numbers are exact up to rounding, at a price of `O(m size)` for each variable, on the host in
/// double precision.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// // Two of four items, for a batch of 3.
/// let q = Subset::from_logits(2, Tensor::<3>::zeros([3, 1, 4], &Device::flex()))?;
/// let z = q.sample(Key::new(1), 5);
/// assert_eq!(z.dims(), [5, 3, 1, 4]);
/// assert_eq!(z.sum().into_scalar::<f32>(), 30.0);
/// assert_eq!(q.mean().into_data().try_to_vec::<f32>().unwrap(), [0.5; 12]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Subset<const R: usize = 3>(Law);

impl<const R: usize> Subset<R>
where
    Tensor<R>: Vectors,
{
    /// From logits `[batch, .., m]`; a constant added to the `m` logits of a variable changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If a dimension is 0, or `size` is above `m`.
    pub fn from_logits(size: u32, logits: Tensor<R>) -> Result<Self> {
        Self::of_natural(Family::Subset { size }, logits)
    }

    /// The logits `[batch, .., m]`.
    pub fn logits(&self) -> Tensor<R> {
        self.natural()
    }

    /// `ln e_k(exp(logits))` of each variable, `[batch, d]`, on the tape of the logits: the
    /// logarithm of the sum over all subsets.
    pub fn log_partition(&self) -> Tensor<2> {
        let Family::Subset { size } = self.0.family() else {
            unreachable!("a law of subsets");
        };
        let formulas = formulas(size);
        let natural = self.0.natural();
        let [batch, d, _] = natural.dims();
        let values = formulas.of_each(&natural, |small, _, _| small.full_log_partition());
        let value: Tensor<2> = from_host(values, [batch, d], &natural);
        // The derivatives are the means.
        with_gradient(natural, value, move |natural, _, grad| {
            formulas.constant_mean(&natural) * grad.unsqueeze_dim(2)
        })
    }
}

wraps_law!(Subset, Vectors);

/// The formulas of subsets of a size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    size: usize,
}

pub(super) fn formulas(size: u32) -> Fixed {
    Fixed {
        size: size as usize,
    }
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    vec![
        (Family::Subset { size: 2 }, vec![0.3, -1.2, 0.8, 0.1]),
        // More are in than out, and one item is nearly always.
        (Family::Subset { size: 2 }, vec![2.6, -0.4, 0.3]),
    ]
}

impl Fixed {
    /// A number of each variable, in parallel, from its logits and its place.
    fn of_each(
        self,
        natural: &Tensor<3>,
        number: impl Fn(&Small, &mut Table, usize) -> f64 + Sync,
    ) -> Vec<f64> {
        let rows = self.rows_of_each(natural, |small, table, variable| {
            vec![number(small, table, variable)]
        });
        rows.into_iter().flatten().collect()
    }

    /// The same with several numbers of each.
    fn rows_of_each(
        self,
        natural: &Tensor<3>,
        rows: impl Fn(&Small, &mut Table, usize) -> Vec<f64> + Sync,
    ) -> Vec<Vec<f64>> {
        let [batch, d, m] = natural.dims();
        let logits = to_host(natural.clone());
        (0..batch * d)
            .into_par_iter()
            .map(|variable| {
                let small = Small::new(&logits[variable * m..][..m], self.size);
                TABLE.with_borrow_mut(|table| rows(&small, table, variable))
            })
            .collect()
    }

    /// Rows of `m` numbers, each made from a row of `x` `[.., batch, d, m]` with the table of its
    /// variable.
    fn map_rows(
        self,
        natural: &Tensor<3>,
        x: &[f64],
        make: impl Fn(&mut Table, &[f64], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let [batch, d, m] = natural.dims();
        let variables = batch * d;
        let each = self.rows_of_each(natural, |small, table, variable| {
            table.fill(small);
            let own = x.chunks_exact(m).skip(variable).step_by(variables);
            let mut rows = vec![0.0; own.len() * m];
            for (x, row) in own.zip(rows.chunks_exact_mut(m)) {
                make(table, x, row);
            }
            rows
        });
        if x.len() == variables * m {
            return each.concat();
        }
        let mut all = Vec::with_capacity(x.len());
        for draw in 0..x.len() / (variables * m) {
            let row = |rows: &Vec<f64>| rows[draw * m..(draw + 1) * m].to_vec();
            each.iter().for_each(|rows| all.extend(row(rows)));
        }
        all
    }

    /// The means as a constant.
    fn constant_mean(self, natural: &Tensor<3>) -> Tensor<3> {
        let zeros = vec![0.0; natural.shape().num_elements()];
        let means = self.map_rows(natural, &zeros, |table, _, mean| table.mean(mean));
        from_host(means, natural.dims(), natural)
    }

    /// The means of one variable.
    fn mean_of(self, small: &Small, table: &mut Table, m: usize) -> Vec<f64> {
        table.fill(small);
        let mut mean = vec![0.0; m];
        table.mean(&mut mean);
        mean
    }
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "logit"
    }

    fn is_vector(&self) -> bool {
        true
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn check(&self, shape: [usize; 3]) -> Result<()> {
        match self.size > shape[2] {
            true => Err(Error::SubsetSize {
                size: self.size,
                items: shape[2],
            }),
            false => Ok(()),
        }
    }

    fn has_natural_of_means(&self) -> bool {
        false
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        let mean = self.constant_mean(&natural);
        with_mean_gradient(*self, natural, mean)
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        let mean = self.mean(natural);
        mean.clone() * (-mean + 1.0)
    }

    /// The covariance matrix times each vector, which is not formed.
    fn chain<const R: usize>(&self, natural: Tensor<3>, grad: Tensor<R>) -> Tensor<R> {
        let product = self.map_rows(&natural, &to_host(grad.clone()), Table::covariance);
        from_host(product, grad.dims(), &natural)
    }

    fn log_prob_each(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<3> {
        let [n, rows, d, m] = z.dims();
        let variables = natural.dims()[0] * d;
        let draws = to_host(z.clone());
        let each = self.rows_of_each(&natural, |small, _, variable| {
            let partition = small.log_partition();
            let own = draws.chunks_exact(m).skip(variable).step_by(variables);
            own.map(|z| small.log_prob(z, partition)).collect()
        });
        let count = n * rows * d;
        let values = (0..count).map(|row| each[row % variables][row / variables]);
        let log_prob: Tensor<3> = from_host(values.collect(), [n, rows, d], &natural);
        let constant = natural.clone().inner();
        let (formulas, hard) = (*self, z.clone().inner());
        let by_parameter = with_gradient(natural, log_prob.clone(), move |natural, _, grad| {
            let score = formulas.score(natural.clone().unsqueeze::<4>(), hard.clone());
            let each: Tensor<3> = (score * grad.unsqueeze_dim(3)).sum_dim(0).squeeze_dim(0);
            // One row of parameters may serve all.
            match natural.dims()[0] == each.dims()[0] {
                true => each,
                false => each.sum_dim(0),
            }
        });
        if !z.is_tracked() {
            return by_parameter;
        }
        // The slopes with respect to relaxed samples are the logits.
        let by_sample = with_gradient(z, log_prob.zeros_like(), move |_, _, grad| {
            grad.unsqueeze_dim::<4>(3) * constant.clone().unsqueeze::<4>()
        });
        by_parameter + by_sample
    }

    fn score(&self, natural: Tensor<4>, z: Tensor<4>) -> Tensor<4> {
        let mean = self.mean(natural.squeeze_dim(0));
        z - mean.unsqueeze::<4>()
    }

    fn entropy(&self, natural: Tensor<3>) -> Option<Tensor<3>> {
        let [batch, d, m] = natural.dims();
        let values = self.of_each(&natural, |small, table, _| {
            small.log_partition() - small.along(&self.mean_of(small, table, m))
        });
        let value = from_host(values, [batch, d, 1], &natural);
        // Minus the covariance matrix times the logits.
        let formulas = *self;
        let slope = move |natural: Tensor<3>, _, grad: Tensor<3>| {
            -formulas.chain(natural.clone(), natural) * grad
        };
        Some(with_gradient(natural, value, slope))
    }

    fn divergence(&self, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
        let [batch, d, m] = p.dims();
        let others = to_host(q.clone());
        let values = self.of_each(&p, |small, table, variable| {
            let other = Small::new(&others[variable * m..][..m], self.size);
            let mean = self.mean_of(small, table, m);
            let own = small.along(&mean) - small.log_partition();
            // Rounding must not make it negative.
            (own - other.along(&mean) + other.log_partition()).max(0.0)
        });
        let value: Tensor<3> = from_host(values, [batch, d, 1], &p);
        let formulas = *self;
        with_slopes(p, q, value, move |p, q, side| match side {
            Side::First => formulas.chain(p.clone(), p.clone() - q.clone()),
            Side::Second => formulas.constant_mean(q) - formulas.constant_mean(p),
        })
    }

    /// One uniform number for each item.
    fn sample(&self, law: &Law, key: Key, n: usize) -> Tensor<4> {
        let natural = law.natural();
        let shape = law.sample_dims(n);
        let mut uniform = vec![0.0; shape.iter().product()];
        key.fill_uniform_f64(&mut uniform);
        let z = self.map_rows(&natural, &uniform, |table, u, z| table.draw(u, z));
        from_host(z, shape, &natural)
    }

    fn states(&self, m: usize) -> f64 {
        let smaller = self.size.min(m - self.size);
        // Exact as long as it is below 2^53: each product is a number of subsets again.
        (0..smaller).fold(1.0, |count, i| count * (m - i) as f64 / (i + 1) as f64)
    }

    /// Subsets in the order of their items: `{0, 1}`, `{0, 2}`, ..
    fn push_state(&self, number: u64, m: usize, to: &mut Vec<f64>) {
        let mut rest = number as f64;
        let mut left = self.size;
        for item in 0..m {
            // Subsets that take this item as their next one.
            let within = match left {
                0 => 0.0,
                _ => formulas(left as u32 - 1).states(m - item - 1),
            };
            let taken = left > 0 && rest < within;
            match taken {
                true => left -= 1,
                false => rest -= within,
            }
            to.push(f64::from(u8::from(taken)));
        }
    }

    fn has_swaps(&self) -> bool {
        true
    }

    fn partner(&self, natural: &[f64], z: &[f64], item: usize, side: f64) -> usize {
        Small::new(natural, self.size).partner(z, item, side)
    }

    /// With `|x - y|^2 = k + |y|^2 - 2 x y` the kernel tilts the law: the logits become `logit + y /
    /// h^2`, and what is left is a ratio of partition functions times the difference of the means.
    fn kernel_response(&self, natural: &[f64], y: &[f64], bandwidth: f64) -> Vec<f64> {
        let scale = bandwidth.powi(-2);
        let tilted: Vec<f64> = natural
            .iter()
            .zip(y)
            .map(|(logit, y)| logit + y * scale)
            .collect();
        let (own, tilted) = (
            Small::new(natural, self.size),
            Small::new(&tilted, self.size),
        );
        let square: f64 = y.iter().map(|y| y * y).sum();
        let log_kernel = -0.5 * scale * (self.size as f64 + square) + tilted.full_log_partition()
            - own.full_log_partition();
        let mut table = Table::default();
        let own = self.mean_of(&own, &mut table, natural.len());
        let tilted = self.mean_of(&tilted, &mut table, natural.len());
        let shift = tilted.iter().zip(own).map(|(tilted, own)| tilted - own);
        shift.map(|shift| log_kernel.exp() * shift).collect()
    }

    /// An item comes in or goes out; its partner does the opposite.
    fn step(&self, z: f64, _side: f64) -> f64 {
        1.0 - 2.0 * z
    }
}
