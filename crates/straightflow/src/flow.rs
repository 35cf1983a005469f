//! The projected Wasserstein gradient flow itself: draw, move, project, again and again.
//!
//! This is the paper's algorithm as it is written, with the projection carried out to its argmin.
//! The estimator [`Pwgf`](crate::estimator::Pwgf) takes one gradient step of the same projection.

use crate::Key;
use crate::distribution::{CountLaw, Distribution};
use crate::error::{Error, Result};
use crate::estimate::objective::{CountedObjective, IntoCost, Single, Untyped};
use crate::exact::Exact;
use crate::ops::{from_host, to_host};
use crate::projection::{Atoms, Measure, ProjectionError};

/// How a step of the flow represents the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draws {
    /// By a number of samples, as in the paper.
    Samples(usize),
    /// By all of its states with their probabilities: the flow of the population, without chance.
    /// For few coordinates.
    Population,
}

/// The flow of an expected cost over a family of ordered variables.
///
/// ```
/// use burn::tensor::{DType, Device, Tensor};
/// use straightflow::flow::{Draws, ProjectedFlow};
/// use straightflow::prelude::*;
/// use straightflow::projection::Measure;
///
/// let flow = ProjectedFlow {
///     projection: Measure::Mean,
///     step: 0.1,
///     draws: Draws::Samples(500),
///     steps: 40,
/// };
/// let start = Tensor::<2>::from_data([[2.0]], (&Device::flex(), DType::F64));
/// let path = flow.run(Key::new(1), &Poisson::from_rates(start)?, |z| (z - 6.0).square())?;
/// assert!((path.last().unwrap().means[0] - 6.0).abs() < 0.4);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectedFlow {
    /// The discrepancy of the projection; a bandwidth in standard deviations is resolved anew at
    /// each step. The exact Wasserstein projection stalls.
    pub projection: Measure,
    /// The step `eps` of `z - eps f'(z)`.
    pub step: f64,
    /// How the law is represented at each step.
    pub draws: Draws,
    /// The number of steps.
    pub steps: usize,
}

/// One point of the path.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPoint {
    /// The means, in row-major order of `[batch, d]`.
    pub means: Vec<f64>,
    /// The mean cost there, one number for each batch element.
    pub values: Vec<f64>,
}

/// What one step did, for a picture of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowStep {
    /// Where the step began.
    pub point: FlowPoint,
    /// The samples or states, in row-major order of `[n, batch, d]`.
    pub samples: Vec<f64>,
    /// The same after they moved.
    pub moved: Vec<f64>,
    /// The probability that each draw stands for, in row-major order of `[n, batch]`.
    pub weights: Vec<f64>,
    /// The means after the projection.
    pub projected: Vec<f64>,
}

impl ProjectedFlow {
    /// Runs the flow. The path has one point more than there are steps; the value of a point is
    /// that of the samples drawn there.
    ///
    /// # Errors
    ///
    /// If the variables are categorical, a parameter or the cost is not finite, there are no
    /// samples, or the population has too many states.
    pub fn run<D: Distribution, R: IntoCost>(
        &self,
        key: Key,
        start: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<Vec<FlowPoint>> {
        let mut path = Vec::with_capacity(self.steps + 1);
        let mut q = start.constant();
        for step in 0..=self.steps {
            let outcome = self.step(key.child(step as u64), &q, &cost)?;
            path.push(outcome.point);
            q = with_means(&q, &outcome.projected);
        }
        Ok(path)
    }

    /// One step: draw, move, project.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn step<D: Distribution, R: IntoCost>(
        &self,
        key: Key,
        q: &D,
        cost: impl Fn(D::Samples) -> R,
    ) -> Result<FlowStep> {
        let law = q.law().constant();
        law.validate()?;
        let laws = law.count_laws().ok_or(Error::Unordered {
            family: law.family().kind(),
        })?;
        let (z, weights) = match self.draws {
            Draws::Samples(0) => return Err(Error::Projection(ProjectionError::NoSamples)),
            Draws::Samples(n) => {
                let count = n * law.dims()[0];
                (law.sample(key, n), vec![1.0 / n as f64; count])
            }
            Draws::Population => {
                let (z, probability) = Exact::default().states(&law)?;
                (z, to_host(probability))
            }
        };
        let single = Single::new(q, (), |z, _: &D, ()| cost(z));
        let objective = Untyped::new(&single);
        let objective = CountedObjective::new(&objective)?;
        let (values, slopes) = objective.value_and_gradient(z.clone(), &law)?;
        let (samples, slopes) = (to_host(z), to_host(slopes));
        let moved: Vec<f64> = samples
            .iter()
            .zip(slopes)
            .map(|(z, slope)| z - self.step * slope)
            .collect();
        let [batch, d, _] = law.dims();
        let column = |x: &[f64], start: usize, stride: usize| -> Vec<f64> {
            x.iter().skip(start).step_by(stride).copied().collect()
        };
        let project = |j: usize| {
            let points = column(&moved, j, batch * d);
            let atoms = Atoms::weighted(&points, &column(&weights, j / d, batch))?;
            self.projection.at(&laws[j])?.project_to(&laws[j], &atoms)
        };
        let projected = (0..laws.len()).map(project).collect::<Result<_, _>>()?;
        let costs = to_host(values);
        let value = |element: usize| -> f64 {
            let costs = costs.iter().zip(&weights).skip(element).step_by(batch);
            costs.map(|(cost, weight)| cost * weight).sum()
        };
        Ok(FlowStep {
            point: FlowPoint {
                means: laws.iter().map(CountLaw::mean).collect(),
                values: (0..batch).map(value).collect(),
            },
            samples,
            moved,
            weights,
            projected,
        })
    }
}

/// The same distribution with other means, kept where the natural parameter is finite.
fn with_means<D: Distribution>(q: &D, means: &[f64]) -> D {
    let law = q.law();
    let family = law.family();
    let natural = means.iter().map(|mean| family.natural_of_mean(*mean));
    let natural = from_host(natural.collect(), law.dims(), &law.natural());
    D::from_law(law.with_natural(natural))
}
