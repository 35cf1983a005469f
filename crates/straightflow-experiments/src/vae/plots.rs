//! The plots of a run.

use straightflow_report::plot::{Curves, Line};

use super::config::Config;
use super::summary::{Epoch, TRAIN_SAMPLE, label};

/// The names of the files and what is in them.
pub(super) fn draw(config: &Config, curve: &[Epoch]) -> Vec<(&'static str, String)> {
    // A line needs two points.
    if curve.len() < 2 {
        return Vec::new();
    }
    let mut plots = vec![("curves.svg", curves(config, curve))];
    let looks = curve
        .iter()
        .filter(|epoch| epoch.gradient_variance.is_some());
    if looks.count() >= 2 {
        plots.push(("variance.svg", variance(config, curve)));
    }
    plots
}

fn line(label: &str, curve: &[Epoch], value: impl Fn(&Epoch) -> Option<f64>) -> Line {
    let point = |epoch: &Epoch| Some((epoch.epoch as f64, value(epoch)?));
    Line {
        label: label.to_owned(),
        points: curve.iter().filter_map(point).collect(),
        ..Line::default()
    }
}

fn curves(config: &Config, curve: &[Epoch]) -> String {
    let plot = Curves {
        title: format!("Negative ELBO, {}", label(config)),
        caption: format!(
            "In nats, with one sample per image, after each epoch. Training images: the first \
             {TRAIN_SAMPLE}."
        ),
        x_label: "epoch".to_owned(),
        y_label: "negative ELBO".to_owned(),
        lines: vec![
            line("train", curve, |epoch| Some(epoch.train_part_nelbo)),
            line("test", curve, |epoch| Some(epoch.test_nelbo)),
        ],
        ..Curves::default()
    };
    plot.svg()
}

fn variance(config: &Config, curve: &[Epoch]) -> String {
    let plot = Curves {
        title: format!("Variance of the encoder's gradient, {}", label(config)),
        caption: "A running average over about 2,000 steps, summed over all parameters.".to_owned(),
        x_label: "epoch".to_owned(),
        y_label: "variance".to_owned(),
        lines: vec![line("variance", curve, |epoch| epoch.gradient_variance)],
        ..Curves::default()
    };
    plot.svg()
}
