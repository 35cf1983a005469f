//! From the runs to the rows of the table.

use serde::{Deserialize, Serialize};

use crate::vae::{Architecture, Config, Epoch, Latent, Protocol, Summary, label};

/// The paper's test negative ELBOs: linear, two layers, nonlinear.
const PUBLISHED: [(&str, [Option<f64>; 3]); 7] = [
    ("pwgf:preset=paper", [Some(119.8), Some(108.3), Some(104.6)]),
    ("straight-through", [Some(119.1), Some(107.6), Some(104.2)]),
    ("arm:preset=paper", [Some(110.3), Some(98.2), Some(101.3)]),
    // The same estimator with a better trained decoder.
    ("arm", [Some(110.3), Some(98.2), Some(101.3)]),
    ("relax:control=sum", [Some(122.1), Some(114.0), Some(110.9)]),
    ("rebar", [Some(123.2), Some(113.7), Some(111.6)]),
    ("gumbel-softmax", [Some(129.2), None, Some(112.5)]),
];

/// The results of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSummary {
    /// One for each architecture and estimator with a complete run.
    pub rows: Vec<TableRow>,
    /// The runs that failed, each with its name and the reason.
    pub failures: Vec<(String, String)>,
}

/// An estimator on an architecture: means over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// The networks.
    pub arch: String,
    /// The latent variables.
    pub latent: String,
    /// The variables of a layer, if there are not as many as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<usize>,
    /// The protocol.
    pub protocol: String,
    /// The name of the images.
    pub data: String,
    /// How many images of each split were used; 0 for all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub images: usize,
    /// The specification of the estimator.
    pub estimator: String,
    /// Its name.
    pub label: String,
    /// The runs behind the means.
    pub seeds: usize,
    /// The epochs of each run.
    pub epochs: u64,
    /// The negative ELBO of the training images.
    pub train_nelbo: f64,
    /// The negative ELBO of the validation images.
    pub valid_nelbo: f64,
    /// The negative ELBO of the test images.
    pub test_nelbo: f64,
    /// Its standard deviation over seeds; none for a single one.
    pub test_nelbo_sd: Option<f64>,
    /// The bound of the test images; how many draws it has, `bound_samples` says.
    pub test_bound_100: f64,
    /// The draws of the bound.
    pub bound_samples: usize,
    /// The running variance of the encoder's gradient at the end.
    pub gradient_variance: Option<f64>,
    /// Evaluations of the cost in a step, for each image.
    pub evaluations: f64,
    /// Backward passes through the cost in a step, for each image.
    pub gradients: f64,
    /// The paper's test negative ELBO.
    pub paper: Option<f64>,
    /// The seeds whose runs failed; they are in no mean.
    pub unfinished: usize,
    /// The mean over seeds after each epoch.
    pub curve: Vec<Epoch>,
}

impl TableSummary {
    /// The means of runs, each with its configuration, in the order of the table's
    /// [cells](super::TableConfig::cells); a run that failed has no summary.
    pub fn new(runs: &[(Config, Option<Summary>)], failures: Vec<(String, String)>) -> Self {
        let same = |a: &(Config, Option<Summary>), b: &(Config, Option<Summary>)| {
            a.0.arch == b.0.arch && a.0.estimator == b.0.estimator
        };
        let row = |runs: &[(Config, Option<Summary>)]| {
            let finished: Vec<&Summary> = runs.iter().filter_map(|run| run.1.as_ref()).collect();
            let unfinished = runs.len() - finished.len();
            (!finished.is_empty()).then(|| row(&runs[0].0, &finished, unfinished))
        };
        Self {
            rows: runs.chunk_by(same).filter_map(row).collect(),
            failures,
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The mean of numbers that may be missing; missing if one is.
fn mean_of_all(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    values.map(|values| mean(values.into_iter()))
}

fn row(config: &Config, runs: &[&Summary], unfinished: usize) -> TableRow {
    let each = |value: fn(&Summary) -> f64| mean(runs.iter().map(|s| value(s)));
    let test_nelbo = each(|s| s.test_nelbo);
    let squares = runs.iter().map(|s| (s.test_nelbo - test_nelbo).powi(2));
    let spread = squares.sum::<f64>() / (runs.len() as f64 - 1.0);
    TableRow {
        arch: config.arch.name().to_owned(),
        latent: config.latent.name().to_owned(),
        units: config.units,
        protocol: config.protocol.name().to_owned(),
        data: config.data.clone(),
        images: config.images,
        estimator: config.estimator.to_string(),
        label: label(config),
        seeds: runs.len(),
        epochs: config.epochs,
        train_nelbo: each(|s| s.train_nelbo),
        valid_nelbo: each(|s| s.valid_nelbo),
        test_nelbo,
        test_nelbo_sd: (runs.len() > 1).then(|| spread.sqrt()),
        test_bound_100: each(|s| s.test_bound_100),
        bound_samples: config.bound_samples,
        gradient_variance: mean_of_all(runs.iter().map(|s| s.rows[0].gradient_variance)),
        evaluations: each(|s| s.rows[0].evaluations),
        gradients: each(|s| s.rows[0].gradients),
        paper: published(config),
        unfinished,
        curve: mean_curve(runs),
    }
}

/// The paper's number, which is for bits, and most likely for thresholded MNIST.
fn published(config: &Config) -> Option<f64> {
    let comparable = config.latent == Latent::Bernoulli
        && config.protocol == Protocol::Threshold
        && config.data == "mnist-threshold"
        && config.images == 0;
    if !comparable {
        return None;
    }
    let place = Architecture::ALL.iter().position(|a| *a == config.arch)?;
    in_paper(&config.estimator.to_string())?[place]
}

/// A label that fits a plot: the paper's method by the name that the page explains.
pub(super) fn short(label: &str) -> String {
    // Records of before have the longer name of Gumbel-softmax.
    let label = label.replace(" (binary Concrete)", "");
    label.replace("Projected Wasserstein gradient flow", "pWGF")
}

/// The paper's numbers of an estimator, in the order of [`Architecture::ALL`].
pub(super) fn in_paper(spec: &str) -> Option<[Option<f64>; 3]> {
    let found = PUBLISHED.iter().find(|(known, _)| *known == spec);
    found.map(|(_, numbers)| *numbers)
}

fn mean_curve(runs: &[&Summary]) -> Vec<Epoch> {
    let epochs = runs.iter().map(|s| s.curve.len()).min().unwrap_or(0);
    let at = |i: usize| {
        let each = |value: fn(&Epoch) -> f64| mean(runs.iter().map(|s| value(&s.curve[i])));
        let variances = runs.iter().map(|s| s.curve[i].gradient_variance);
        Epoch {
            objective: each(|e| e.objective),
            train_part_nelbo: each(|e| e.train_part_nelbo),
            valid_nelbo: each(|e| e.valid_nelbo),
            test_nelbo: each(|e| e.test_nelbo),
            gradient_variance: mean_of_all(variances),
            ..runs[0].curve[i].clone()
        }
    };
    (0..epochs).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vae::Settings;

    #[test]
    fn the_papers_numbers_stand_where_it_has_them() {
        let data = Protocol::Threshold.load(None).expect("embedded data");
        let paper = |latent, arch, spec: &str| {
            let spec = spec.parse().expect("a specification");
            let settings = Settings {
                latent,
                ..Settings::new(arch, spec)
            };
            published(&settings.config(&data).expect("valid settings"))
        };
        let (bits, nonlinear) = (Latent::Bernoulli, Architecture::Nonlinear);
        assert_eq!(paper(bits, nonlinear, "arm"), Some(101.3));
        assert_eq!(paper(bits, Architecture::TwoLayer, "gumbel-softmax"), None);
        assert_eq!(paper(bits, nonlinear, "pwgf"), None);
        assert_eq!(
            paper(Latent::Categorical, nonlinear, "straight-through"),
            None
        );
    }
}
