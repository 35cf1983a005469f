//! Stochastic rounding to a lattice.

use burn::tensor::Tensor;

use super::density::with_score;
use super::formulas::{Formulas, with_mean_gradient};
use super::{Distribution, Family, Law, Numbers, wraps_law};
use crate::Key;
use crate::error::{Error, Result};
use crate::ops::{from_host, map_host};

/// The least probability of a neighbour, also where it never occurs: the derivative of a probability
/// is then that of `exp(log_prob)` at the lattice points too, in both precisions.
const LEAST: f64 = 1e-30;

/// Independent numbers `x`, rounded at random to one of their two neighbours on a lattice of a given
/// step, such that the mean is the number itself.
///
/// `z = s (⌊x/s⌋ + b)` with `b ~ Bernoulli(x/s - ⌊x/s⌋)`.
///
/// The mean is `x`, so straight-through is the identity: the gradient of quantisation. The expected
/// cost is the linear interpolant of the cost on the lattice, whose derivative is `(f(hi) - f(lo)) /
/// s`; on a lattice point, that of the cell above. With bounds `x` is clamped to them, and the
/// gradient is zero outside.
///
/// The score of a value is `1 / (s P(z))` in size, so a score-function estimator would have a
/// variance that grows without bound towards a lattice point: `reinforce` and its relatives refuse
/// this family.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use straightflow::prelude::*;
///
/// let x = Tensor::<2>::from_floats([[0.8, -0.25]], &Device::flex());
/// let q = Rounded::from_values(0.5, x)?;
/// let z = q.sample(Key::new(1), 1000);
/// assert!((z.mean_dim(0).into_data().try_to_vec::<f32>().unwrap()[0] - 0.8).abs() < 0.05);
/// // The slope of z^2 between its neighbours 0.5 and 1, and between -0.5 and 0.
/// let gradient = Exact::default().gradient(&q, |z| z.square().sum_dim(2))?;
/// let gradient = gradient.into_data().try_to_vec::<f32>().unwrap();
/// assert!((gradient[0] - 1.5).abs() < 1e-5 && (gradient[1] + 0.5).abs() < 1e-5);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rounded<const R: usize = 2>(Law);

impl<const R: usize> Rounded<R>
where
    Tensor<R>: Numbers,
{
    /// Of numbers `[batch, ..]`, to the multiples of a step.
    ///
    /// # Errors
    ///
    /// If a dimension is 0, or the step is not positive and finite.
    pub fn from_values(step: f64, values: Tensor<R>) -> Result<Self> {
        Self::bounded(step, None, None, values)
    }

    /// As [`from_values`](Self::from_values), to multiples between bounds, which are multiples of
    /// the step themselves.
    ///
    /// # Errors
    ///
    /// As [`from_values`](Self::from_values), and if a bound is no multiple of the step or the lower
    /// one is not below the upper one.
    pub fn bounded(
        step: f64,
        min: Option<f64>,
        max: Option<f64>,
        values: Tensor<R>,
    ) -> Result<Self> {
        Self::of_natural(Family::Rounded { step, min, max }, values)
    }

    /// The numbers before they are rounded, `[batch, ..]`.
    pub fn values(&self) -> Tensor<R> {
        self.natural()
    }
}

wraps_law!(Rounded, Numbers);

/// The formulas of numbers on a lattice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    step: f64,
    min: Option<f64>,
    max: Option<f64>,
}

pub(super) fn formulas(step: f64, min: Option<f64>, max: Option<f64>) -> Fixed {
    Fixed { step, min, max }
}

pub(super) fn examples() -> Vec<(Family, Vec<f64>)> {
    let lattice = |step, min, max| Family::Rounded { step, min, max };
    vec![
        (lattice(2.0, None, None), vec![0.8]),
        // The upper neighbour is rare.
        (lattice(0.5, Some(-1.0), Some(1.5)), vec![0.53]),
    ]
}

/// The neighbours of a number.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// The lower neighbour.
    lo: f64,
    /// The probability of the upper one.
    up: f64,
}

impl Fixed {
    fn clamped(self, x: f64) -> f64 {
        let x = self.min.map_or(x, |min| x.max(min));
        self.max.map_or(x, |max| x.min(max))
    }

    fn is_inside(self, x: f64) -> bool {
        self.clamped(x) == x
    }

    fn cell(self, x: f64) -> Cell {
        let y = self.clamped(x) / self.step;
        let mut level = y.floor();
        if let Some(max) = self.max {
            // No cell is above the last one: its upper end belongs to it.
            level = level.min((max / self.step).round() - 1.0);
        }
        Cell {
            lo: level * self.step,
            up: y - level,
        }
    }

    /// The probability of a value, which is at least [`LEAST`] for a neighbour, and its derivative.
    fn probability(self, x: f64, z: f64) -> (f64, f64) {
        let Cell { lo, up } = self.cell(x);
        let level = ((z - lo) / self.step).round();
        let slope = match self.is_inside(x) {
            true => 1.0 / self.step,
            false => 0.0,
        };
        match level {
            0.0 => ((1.0 - up).max(LEAST), -slope),
            1.0 => (up.max(LEAST), slope),
            _ => (0.0, 0.0),
        }
    }

    /// A number of each coordinate.
    fn of_each(self, natural: &Tensor<3>, number: impl Fn(f64) -> f64 + Sync) -> Tensor<3> {
        let natural = natural.clone().inner();
        let same = natural.clone().unsqueeze::<4>();
        map_host(natural, same, |x, _| number(x)).squeeze_dim(0)
    }

    fn bound(self, option: &'static str, bound: Option<f64>) -> Result<()> {
        let Some(bound) = bound else {
            return Ok(());
        };
        let level = bound / self.step;
        // A bound such as 0.3 with step 0.1 is a multiple up to rounding only.
        let near = (level - level.round()).abs() <= 1e-9 * level.abs().max(1.0);
        match near && level.is_finite() {
            true => Ok(()),
            false => Err(Error::Lattice {
                option,
                value: bound,
                allowed: "a multiple of the step",
            }),
        }
    }
}

impl Formulas for Fixed {
    fn natural_name(&self) -> &'static str {
        "value"
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn check(&self, _shape: [usize; 3]) -> Result<()> {
        if !(self.step.is_finite() && self.step > 0.0) {
            return Err(Error::Lattice {
                option: "step",
                value: self.step,
                allowed: "positive and finite",
            });
        }
        self.bound("lower bound", self.min)?;
        self.bound("upper bound", self.max)?;
        match (self.min, self.max) {
            (Some(min), Some(max)) if min >= max => Err(Error::Lattice {
                option: "lower bound",
                value: min,
                allowed: "less than the upper bound",
            }),
            _ => Ok(()),
        }
    }

    fn has_natural_of_means(&self) -> bool {
        false
    }

    fn mean(&self, natural: Tensor<3>) -> Tensor<3> {
        let mean = self.of_each(&natural, |x| self.clamped(x));
        with_mean_gradient(*self, natural, mean)
    }

    fn variance(&self, natural: Tensor<3>) -> Tensor<3> {
        let lo = self.of_each(&natural, |x| self.cell(x).lo);
        let hi = lo.clone() + self.step;
        let mean = self.mean(natural);
        (mean.clone() - lo) * (hi - mean)
    }

    fn chain_factor(&self, natural: Tensor<3>) -> Tensor<3> {
        self.of_each(&natural, |x| f64::from(u8::from(self.is_inside(x))))
    }

    fn log_prob_each(&self, natural: Tensor<3>, z: Tensor<4>) -> Tensor<3> {
        let z = z.inner();
        let constant = natural.clone().inner();
        let value = map_host(constant, z.clone(), |x, z| self.probability(x, z).0.ln());
        with_score(*self, natural, z, value).squeeze_dim(3)
    }

    fn score(&self, natural: Tensor<4>, z: Tensor<4>) -> Tensor<4> {
        map_host(natural.inner().squeeze_dim(0), z.inner(), |x, z| {
            let (probability, slope) = self.probability(x, z);
            match probability > 0.0 {
                true => slope / probability,
                false => 0.0,
            }
        })
    }

    fn entropy(&self, natural: Tensor<3>) -> Option<Tensor<3>> {
        Some(-self.against(natural.clone(), natural))
    }

    fn divergence(&self, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
        self.against(p.clone(), p.clone()) - self.against(p, q)
    }

    fn sample(&self, law: &Law, key: Key, n: usize) -> Tensor<4> {
        let natural = law.natural().inner();
        let shape = law.sample_dims(n);
        let mut uniform = vec![0.0; shape.iter().product()];
        key.fill_uniform_f64(&mut uniform);
        let uniform: Tensor<4> = from_host(uniform, shape, &natural);
        map_host(natural, uniform, |x, u| {
            let Cell { lo, up } = self.cell(x);
            if u < up { lo + self.step } else { lo }
        })
    }

    /// The lower and the upper neighbour.
    fn states(&self, _k: usize) -> f64 {
        2.0
    }

    fn values_of_states(&self, natural: Tensor<3>, numbers: Tensor<4>) -> Tensor<4> {
        map_host(natural.inner(), numbers, |x, number| {
            self.cell(x).lo + number * self.step
        })
    }

    /// To the other neighbour.
    fn moved(&self, natural: Tensor<3>, z: Tensor<4>, _side: Option<Tensor<4>>) -> Tensor<4> {
        map_host(natural.inner(), z, |x, z| {
            2.0 * self.cell(x).lo + self.step - z
        })
    }
}

impl Fixed {
    /// `E_p log q(z)` of each coordinate, on both tapes; minus infinity if the neighbours differ.
    fn against(&self, p: Tensor<3>, q: Tensor<3>) -> Tensor<3> {
        let lo = self.of_each(&p, |x| self.cell(x).lo).unsqueeze::<4>();
        let term = |z: Tensor<4>| {
            let probability = self.log_prob_each(p.clone(), z.clone()).exp();
            probability * self.log_prob_each(q.clone(), z)
        };
        let sum = term(lo.clone()) + term(lo + self.step);
        sum.squeeze_dim::<2>(0).unsqueeze_dim(2)
    }
}
