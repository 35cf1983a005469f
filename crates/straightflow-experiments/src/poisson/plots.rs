//! The plots of a run, from the numbers of the experiment.

use straightflow_report::plot::{Axis, Curves, Flow, Line, Reference, Weights};

use super::cells::Cell;
use super::config::Config;
use super::error::GameError;
use super::pictures::{Curve, distances, flow_step, kernel_weights, learning_curves};
use super::summary::Summary;
use crate::experiment::File;
use crate::looks::look;

/// The names of the files and what is in them.
pub(super) fn draw(
    config: &Config,
    cells: &[Cell],
    summary: &Summary,
) -> Result<Vec<File>, GameError> {
    let plots = [
        ("curves.svg", curves(config, cells, summary)),
        ("distance.svg", distance(config, cells)),
        ("weights.svg", weights(config)?),
        ("flow.svg", flow(config)?),
    ];
    Ok(plots
        .map(|(name, svg)| (name.to_owned(), svg.into_bytes()))
        .to_vec())
}

fn line(curve: Curve) -> Line {
    Line {
        label: curve.label,
        points: curve.points,
        band: curve.band,
        look: look(&curve.spec),
    }
}

/// More lines cannot be told apart.
const LINES: usize = 8;
/// More bands cannot be seen through.
const BANDS: usize = 5;

/// Of many rows, those of the paper's figure and those of matched gain.
fn curves(config: &Config, cells: &[Cell], summary: &Summary) -> String {
    let curves = learning_curves(config, cells)
        .into_iter()
        .zip(&summary.rows);
    let few = summary.rows.len() <= BANDS;
    let shown = curves.filter(|(_, row)| few || row.paper_mean.is_some() || row.is_matched());
    let plot = Curves {
        title: "The generator's rate".to_owned(),
        caption: format!(
            "Medians over {} seeds, with the tenth and ninetieth percentiles as bands. An epoch has {} \
             iterations.",
            config.seeds, config.iterations
        ),
        x_label: "epoch".to_owned(),
        y_label: "rate".to_owned(),
        lines: shown.map(|(curve, _)| line(curve)).take(BANDS).collect(),
        reference: Some(Reference {
            label: "rate of the data".to_owned(),
            value: config.rate,
        }),
        ..Curves::default()
    };
    plot.svg()
}

fn distance(config: &Config, cells: &[Cell]) -> String {
    let lines = distances(config, cells).into_iter().take(LINES);
    let plot = Curves {
        title: "The distance to the rate of the data".to_owned(),
        caption: format!(
            "The root mean square over {} seeds, on a logarithmic axis. What is left at the right end \
             is the oscillation and the offset of its mean.{}",
            config.seeds,
            match config.rows.get(LINES..) {
                None | Some([]) => String::new(),
                Some(rest) => {
                    let names: Vec<&str> = rest.iter().map(|row| row.label.as_str()).collect();
                    format!(" Not shown: {}.", names.join(", "))
                }
            }
        ),
        x_label: "epoch".to_owned(),
        y_label: "root mean square distance".to_owned(),
        y_axis: Axis::Log,
        lines: lines.map(line).collect(),
        ..Curves::default()
    };
    plot.svg()
}

fn weights(config: &Config) -> Result<String, GameError> {
    let weights = kernel_weights(config.rate).map_err(GameError::Estimator)?;
    let plot = Weights {
        title: format!("The weight of a sample of Pois({})", config.rate),
        caption:
            "The weight c(z) that pWGF gives to the gradient at a sample z, relative to its mean, in the limit of small \
                  steps, for bandwidths in standard deviations. Wide kernels give straight-through."
                .to_owned(),
        x_label: "sample z".to_owned(),
        y_label: "relative weight c(z) / E c".to_owned(),
        lines: weights.into_iter().map(line).collect(),
        reference: Some(Reference {
            label: "straight-through".to_owned(),
            value: 1.0,
        }),
    };
    Ok(plot.svg())
}

fn flow(config: &Config) -> Result<String, GameError> {
    let picture = flow_step(config)?;
    let [before, after] = picture.rates;
    let [law, projected] = picture.laws;
    let plot = Flow {
        title: "One step of the projected flow".to_owned(),
        caption: format!(
            "Samples of Pois({before}) move up the discriminator's output, which the generator maximises, with a step of \
             {:.1}, long enough to be seen; the Poisson law nearest to them in the distance of the kernel has rate {after:.2}.",
            picture.step
        ),
        x_label: "count".to_owned(),
        samples: picture.samples,
        moved: picture.moved,
        law,
        projected,
    };
    Ok(plot.svg())
}
