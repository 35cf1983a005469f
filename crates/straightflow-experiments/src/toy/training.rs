//! The runs: Adam on the logit of one bit, many runs at once where the estimator allows it.

use burn::module::{Module, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use straightflow::distribution::{Bernoulli, Distribution};
use straightflow::estimator::{Estimator, EstimatorExt};
use straightflow::{Key, Result};

use super::{Stop, ToyConfig};
use crate::host::to_host;
use crate::learner::{Learner, adam};

/// The probability of the optimum that counts as arrival.
const ARRIVED: f64 = 0.95;
/// The points of a learning curve, besides the start.
const POINTS: usize = 40;

/// The runs of one estimator for one `p0`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Runs {
    /// `p0` of the cost.
    pub p0: f64,
    /// The runs that end on the optimum's side of `p = 1/2`.
    pub right: usize,
    /// The runs in which the probability of the optimum exceeds 0.95 at some step.
    pub arrived: usize,
    /// The median of the first such step; none if less than half of the runs get there.
    pub median_steps: Option<usize>,
    /// The probability of the optimum at the end, on average over the runs.
    pub end: f64,
    /// The learning curve: the probability of the optimum on average over the runs, at steps with
    /// equal distances, from the start to the end.
    pub curve: Vec<f64>,
}

/// The parameters of independent runs, one bit each.
#[derive(Module, Debug)]
pub(super) struct Bits {
    logits: Param<Tensor<2>>,
}

/// Fair bits, in double precision, on a tape.
pub(super) fn bits(count: usize) -> Bits {
    let device = Device::flex().autodiff();
    let zeros = Tensor::zeros([count, 1], (&device, DType::F64));
    Bits {
        logits: Param::from_tensor(zeros),
    }
}

impl Bits {
    /// The logits `[runs, 1]`.
    pub(super) fn logits(&self) -> Tensor<2> {
        self.logits.val()
    }
}

/// The cost `-(z - p0)^2`, a polynomial of the bit, with a `p0` for each batch element.
pub(super) fn cost(p0: &[f64]) -> impl Fn(Tensor<3>) -> Tensor<2> + use<> {
    let p0 = TensorData::new(p0.to_vec(), [1, p0.len()]);
    let p0 = Tensor::<2>::from_data(p0, (&Device::flex(), DType::F64));
    move |z| -(z.squeeze_dim::<2>(2) - p0.clone()).square()
}

/// The keys of the three uses of randomness: runs without state, runs with state, variances.
pub(super) fn keys(config: &ToyConfig) -> [Key; 3] {
    Key::new(config.seed).split()
}

/// All runs of one estimator, unless it is stopped.
///
/// Without state they are one batch, whose elements do not see each other. Learned state that served
/// several runs would average over them and couple them, so then each run is a batch of its own.
pub(super) fn train(
    config: &ToyConfig,
    estimator: &dyn Estimator,
    steps: usize,
    stop: &Stop,
) -> Result<Option<Vec<Runs>>> {
    let p0_of_run = config.p0.iter().flat_map(|p0| vec![*p0; config.seeds]);
    let p0_of_run: Vec<f64> = p0_of_run.collect();
    let [together, apart, _] = keys(config);
    let one_bit = Bernoulli::from_logits(bits(1).logits())?;
    let rate = config.state_learning_rate;
    let tracks = if Learner::new(estimator, apart, one_bit.law(), rate).is_none() {
        let batch = Batch {
            p0: &p0_of_run,
            key: together,
            learner: None,
        };
        descend(config, estimator, steps, batch, stop)?
    } else {
        let runs = p0_of_run.par_iter().enumerate().map(|(run, p0)| {
            let [initial, draws] = apart.child(run as u64).split();
            let learner = Learner::new(estimator, initial, one_bit.law(), rate);
            let batch = Batch {
                p0: &[*p0],
                key: draws,
                learner,
            };
            descend(config, estimator, steps, batch, stop)
        });
        let runs: Result<Option<Vec<Vec<Track>>>> = runs.collect();
        runs?.map(|runs| runs.concat())
    };
    let Some(tracks) = tracks else {
        return Ok(None);
    };
    let of_p0 = config.p0.iter().zip(tracks.chunks(config.seeds));
    let runs = of_p0.map(|(p0, tracks)| Runs::new(*p0, tracks));
    Ok(Some(runs.collect()))
}

/// Bits that are trained together.
struct Batch<'a> {
    /// Their costs.
    p0: &'a [f64],
    key: Key,
    /// What the estimator learns on them.
    learner: Option<Learner>,
}

/// Adam on a batch of bits, each with its own `p0`.
fn descend(
    config: &ToyConfig,
    estimator: &dyn Estimator,
    steps: usize,
    batch: Batch,
    stop: &Stop,
) -> Result<Option<Vec<Track>>> {
    let Batch {
        p0,
        key,
        mut learner,
    } = batch;
    let mut optimiser = adam();
    let cost = cost(p0);
    let mut bits = bits(p0.len());
    let mut tracks = vec![Track::default(); p0.len()];
    let every = steps.div_ceil(POINTS);
    for step in 0..=steps {
        let on_curve = step % every == 0 || step == steps;
        for ((track, logit), p0) in tracks.iter_mut().zip(to_host(bits.logits())).zip(p0) {
            track.observe(step, probability_of_optimum(logit, *p0), on_curve);
        }
        if step == steps {
            break;
        }
        if stop() {
            return Ok(None);
        }
        let current = estimator.at_step(step as u64)?;
        let current = match &learner {
            Some(learner) => learner.bind(current.as_ref())?,
            None => current,
        };
        let q = Bernoulli::from_logits(bits.logits())?;
        let estimate = current.estimate(key.child(step as u64), &q, &cost)?;
        let mut gradients = estimate.surrogate.backward();
        // The surrogate is a mean over the batch, but each run is an optimisation of its own.
        let gradient = bits.logits().grad_remove(&mut gradients);
        let gradient = gradient.expect("the logits are on the tape of the surrogate");
        let mut own = GradientsParams::new();
        own.register(bits.logits.id, gradient * p0.len() as f64);
        bits = optimiser.step(config.learning_rate, bits, own);
        if let Some(learner) = &mut learner {
            learner.learn(&mut gradients, &estimate);
        }
    }
    Ok(Some(tracks))
}

/// What is remembered of one run.
#[derive(Clone, Debug, Default)]
struct Track {
    arrival: Option<usize>,
    curve: Vec<f64>,
}

impl Track {
    fn observe(&mut self, step: usize, p: f64, on_curve: bool) {
        if p > ARRIVED && self.arrival.is_none() {
            self.arrival = Some(step);
        }
        if on_curve {
            self.curve.push(p);
        }
    }

    fn end(&self) -> f64 {
        *self.curve.last().expect("the end is on the curve")
    }
}

impl Runs {
    fn new(p0: f64, tracks: &[Track]) -> Self {
        let count = tracks.len();
        let mut arrivals: Vec<usize> = tracks.iter().filter_map(|track| track.arrival).collect();
        arrivals.sort_unstable();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count as f64;
        let points = 0..tracks[0].curve.len();
        Self {
            p0,
            right: tracks.iter().filter(|track| track.end() > 0.5).count(),
            arrived: arrivals.len(),
            // Runs that never arrive stand at the end of the order.
            median_steps: arrivals.get((count - 1) / 2).copied(),
            end: mean(&mut tracks.iter().map(Track::end)),
            curve: points
                .map(|point| mean(&mut tracks.iter().map(|track| track.curve[point])))
                .collect(),
        }
    }
}

/// The probability of the better value of the bit: 1 if `p0 < 1/2`, else 0.
fn probability_of_optimum(logit: f64, p0: f64) -> f64 {
    let logit = if p0 < 0.5 { logit } else { -logit };
    1.0 / (1.0 + (-logit).exp())
}
