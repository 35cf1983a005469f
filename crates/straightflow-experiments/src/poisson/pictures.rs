//! The numbers behind the pictures of the game.

use burn::tensor::Device;
use straightflow::distribution::CountLaw;
use straightflow::flow::{Draws, ProjectedFlow};
use straightflow::kernel::{Bandwidth, KernelFamily};
use straightflow::prelude::*;
use straightflow::projection::{Measure, MmdLaw};

use super::cells::Cell;
use super::config::{Config, Row, poisson};
use super::discriminator::{Critics, Discriminator};
use super::error::GameError;
use super::game::{Game, draw};

/// A line of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it shows.
    pub label: String,
    /// The row as it is asked for; empty for a line that is not about one.
    pub spec: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Below and above each point; empty for none.
    pub band: Vec<(f64, f64)>,
}

/// The rate after each epoch, for each row: the median over seeds, and the tenth and ninetieth
/// percentiles.
pub fn learning_curves(config: &Config, cells: &[Cell]) -> Vec<Curve> {
    let curve = |row: &Row| {
        let (mut points, mut band) = (Vec::new(), Vec::new());
        for (epoch, mut rates) in rates_of(config, cells, row).enumerate() {
            rates.sort_by(f64::total_cmp);
            points.push((epoch as f64, percentile(&rates, 0.5)));
            band.push((percentile(&rates, 0.1), percentile(&rates, 0.9)));
        }
        Curve {
            label: row.label.clone(),
            spec: row.id.clone(),
            points,
            band,
        }
    };
    config.rows.iter().map(curve).collect()
}

/// The distance to the rate of the data after each epoch, for each row: the root mean square over
/// seeds.
pub fn distances(config: &Config, cells: &[Cell]) -> Vec<Curve> {
    let distance = |rates: Vec<f64>| {
        let squares: f64 = rates.iter().map(|rate| (rate - config.rate).powi(2)).sum();
        (squares / rates.len() as f64).sqrt()
    };
    let curve = |row: &Row| Curve {
        label: row.label.clone(),
        spec: row.id.clone(),
        points: rates_of(config, cells, row)
            .enumerate()
            .map(|(epoch, rates)| (epoch as f64, distance(rates)))
            .collect(),
        band: Vec::new(),
    };
    config.rows.iter().map(curve).collect()
}

/// The rates of all games of a row, epoch by epoch.
fn rates_of(config: &Config, cells: &[Cell], row: &Row) -> impl Iterator<Item = Vec<f64>> {
    let cells = cells.iter().filter(|cell| cell.row == row.id);
    let games: Vec<&Game> = cells.flat_map(|cell| &cell.games).collect();
    (0..=config.epochs).map(move |epoch| games.iter().map(|game| game.curve[epoch]).collect())
}

/// Linear interpolation between the sorted values.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

/// `c(z) / E c`, the weight that pWGF gives to the gradient at a sample in the limit of small steps,
/// for several bandwidths. Straight-through has the weight 1.
///
/// # Errors
///
/// If the rate is not positive and finite.
pub fn kernel_weights(rate: f64) -> straightflow::Result<Vec<Curve>> {
    let law = CountLaw::Poisson { rate };
    let last = (rate + 4.0 * rate.sqrt()).ceil().max(4.0) as u64;
    // At most a few hundred points, also for large rates.
    let stride = (last / 200).max(1) as usize;
    let weights = |deviations: f64| {
        let bandwidth = Bandwidth::deviations(deviations).map_err(into_error)?;
        let bandwidth = bandwidth.resolve(&law);
        let kernel = KernelFamily::Rbf.at(bandwidth).map_err(into_error)?;
        let prepared = MmdLaw::new(&law, kernel.as_ref())?;
        let mean = prepared.self_terms().gain;
        let values = (0..=last).step_by(stride).map(|z| z as f64);
        Ok(Curve {
            label: format!("{deviations} sd"),
            spec: String::new(),
            points: values.map(|z| (z, prepared.c(z) / mean)).collect(),
            band: Vec::new(),
        })
    };
    [1.0, 2.0, 3.0, 5.0].into_iter().map(weights).collect()
}

fn into_error(error: straightflow::kernel::KernelError) -> straightflow::Error {
    straightflow::projection::ProjectionError::Kernel(error).into()
}

/// One step of the projected flow of the generator's cost.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPicture {
    /// The size of the step.
    pub step: f64,
    /// The samples of the generator.
    pub samples: Vec<f64>,
    /// The same, moved.
    pub moved: Vec<f64>,
    /// The rate before the step and after the projection.
    pub rates: [f64; 2],
    /// The values of the two laws with their probabilities.
    pub laws: [Vec<(f64, f64)>; 2],
}

/// One step of the flow at the beginning of the game, after a discriminator has learnt for some
/// time while the generator stood still. The step is so long that the farthest sample moves by one
/// standard deviation of the data.
///
/// # Errors
///
/// If the projection fails.
pub fn flow_step(config: &Config) -> Result<FlowPicture, GameError> {
    let [network, data, fakes, samples] = Key::new(config.seed).split();
    let mut discriminator = Discriminator::new(network, config.rate);
    for iteration in 0..LESSONS {
        let mut data = draw(data.child(iteration), config.rate, config.samples);
        let mut fakes = draw(fakes.child(iteration), config.init, config.samples);
        discriminator.learn(config.objective, &mut data, &mut fakes);
    }
    let step = |step: f64| {
        let device = Device::flex();
        let critics = Critics::new(&[&discriminator], &device);
        let flow = ProjectedFlow {
            projection: Measure::Mmd {
                kernel: KernelFamily::Rbf,
                bandwidth: Bandwidth::deviations(1.0).map_err(into_error)?,
            },
            step,
            draws: Draws::Samples(config.samples),
            steps: 1,
        };
        let q = poisson(&[config.init], &device)?;
        flow.step(samples, &q, |z| critics.cost(z))
    };
    let farthest = |step: &straightflow::flow::FlowStep| {
        let moves = step.moved.iter().zip(&step.samples);
        moves.fold(0.0, |far: f64, (y, z)| far.max((y - z).abs()))
    };
    let unit = step(1.0).map_err(GameError::Estimator)?;
    // A saturated discriminator moves nothing, however long the step.
    let size = match farthest(&unit) {
        0.0 => 1.0,
        far => config.rate.sqrt() / far,
    };
    let taken = step(size).map_err(GameError::Estimator)?;
    let rates = [config.init, taken.projected[0]];
    Ok(FlowPicture {
        step: size,
        samples: taken.samples,
        moved: taken.moved,
        rates,
        laws: rates.map(probabilities),
    })
}

/// The discriminator's steps before the picture of the flow.
const LESSONS: u64 = 100;

fn probabilities(rate: f64) -> Vec<(f64, f64)> {
    let law = CountLaw::Poisson { rate };
    let last = (rate + 6.0 * rate.sqrt()).ceil().max(4.0) as u64;
    let first = (rate - 6.0 * rate.sqrt()).floor().max(0.0) as u64;
    let values = first..=last;
    values
        .map(|x| (x as f64, law.ln_pmf(x as f64).exp()))
        .collect()
}
