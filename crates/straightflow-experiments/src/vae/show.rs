//! What is said about an autoencoder, and what it has in common with a table of them.

use straightflow_report::page::{Column, Format, Label, Page, Table};

use super::summary::{Row, StepBound, Summary};
use crate::experiment::place;

/// What two experiments say about one number.
pub(crate) const BOUND: &str = "the importance-weighted bound (IWAE) on the negative log-likelihood of the test images, with that many \
                                samples; it is at most the negative ELBO, up to noise";
pub(crate) const VARIANCE: &str =
    "running variance of the encoder's gradient, summed over its parameters";
pub(crate) const EVALUATIONS: &str = "evaluations of the cost per step and image";
pub(crate) const GRADIENTS: &str = "backward passes through the cost per step and image, including those that train the decoder; draws that are \
     evaluated together all count";

pub(super) fn page(summary: &Summary) -> Page {
    let tables = Table::split(
        &columns(summary.bound_samples),
        &summary.rows,
        |row| {
            let latent = sized(&row.latent, row.units);
            format!("{}, {latent}, {}", row.arch, row.protocol)
        },
        |row| Label::new(&row.label, &row.estimator),
    );
    Page::new(
        "The variational autoencoder",
        "An encoder maps an image to a distribution of discrete latent variables, and a decoder maps those to a \
         distribution of the pixels. Both are trained to minimise the negative ELBO; the estimator supplies the \
         gradient of the encoder. The heading of the table names the architecture, the latent variables \
         and how the images are made binary.",
    )
    .lead(summary.rows.first().map_or_else(String::new, lead))
    .at(place::VAE)
    .tables(tables)
    .remarks(
        summary
            .rows
            .iter()
            .any(|row| default_pwgf(&row.estimator, &row.latent))
            .then_some(DEFAULT_PWGF),
    )
    .remarks(selected(summary))
    .remarks(on_the_way(summary))
}

/// The test value at the best validation value, by which protocol B chooses a model.
fn selected(summary: &Summary) -> Option<String> {
    let of_protocol_b = summary.rows.iter().any(|row| row.protocol == "static");
    let best = summary.selected().filter(|_| of_protocol_b)?;
    Some(format!(
        "The best validation value, {:.2}, was reached after epoch {}; the test value there is {:.2} nats.",
        best.valid_nelbo, best.epoch, best.test_nelbo
    ))
}

/// The bounds that were measured on the way.
fn on_the_way(summary: &Summary) -> Option<String> {
    let last = summary.bounds.last()?;
    let better = |a: &&StepBound, b: &&StepBound| a.test_bound.total_cmp(&b.test_bound);
    let best = summary.bounds.iter().min_by(better)?;
    Some(format!(
        "The {}-sample bound on the test images during training: {:.2} nats after {} steps, the last of {} \
         measurements; the best is {:.2}, after {}.",
        summary.bound_samples,
        last.test_bound,
        last.step,
        summary.bounds.len(),
        best.test_bound,
        best.step
    ))
}

fn lead(row: &Row) -> String {
    let steps = row.steps / row.epochs.max(1);
    format!(
        "{}, {} with {} variables, {} epoch{} of {} step{}, seed {}.",
        row.label,
        row.arch,
        sized(&row.latent, row.units),
        row.epochs,
        if row.epochs == 1 { "" } else { "s" },
        steps,
        if steps == 1 { "" } else { "s" },
        row.seed
    )
}

fn columns(bound_samples: usize) -> Vec<Column<Row>> {
    let nelbo = |key: &str, heading: &str, value: fn(&Row) -> f64| {
        Column::new(key, heading, Format::Decimals(2), value)
            .group("negative ELBO")
            .unit("nats")
    };
    let count = Format::Significant(4);
    let each = Format::Decimals(1);
    vec![
        nelbo("train_nelbo", "train", |row| row.train_nelbo)
            .about("negative ELBO of the training images, per image"),
        nelbo("valid_nelbo", "valid", |row| row.valid_nelbo)
            .about("the same for the validation images"),
        nelbo("test_nelbo", "test", |row| row.test_nelbo).about("the same for the test images"),
        nelbo(
            "test_bound_100",
            &format!("{bound_samples}-sample bound"),
            |row| row.test_bound_100,
        )
        .group("")
        .about(BOUND),
        Column::new(
            "gradient_variance",
            "variance",
            Format::Significant(3),
            |row: &Row| row.gradient_variance,
        )
        .about(VARIANCE),
        Column::new("epochs", "epochs", count, |row: &Row| row.epochs),
        Column::new("evaluations", "f", each, |row: &Row| row.evaluations).about(EVALUATIONS),
        Column::new("gradients", "df", each, |row: &Row| row.gradients).about(GRADIENTS),
    ]
}

/// That a row of pWGF is not another method than straight-through.
pub(crate) const DEFAULT_PWGF: &str = "With its default configuration pWGF is straight-through on bits, so its row repeats that of \
                                       straight-through.";

/// The latent variables, with their number if it is not the usual one.
pub(crate) fn sized(latent: &str, units: Option<usize>) -> String {
    match units {
        Some(units) => format!("{units} {latent}"),
        None => latent.to_owned(),
    }
}

/// Whether a row is one of which [`DEFAULT_PWGF`] is to be said.
pub(crate) fn default_pwgf(estimator: &str, latent: &str) -> bool {
    estimator == "pwgf" && latent == "bernoulli"
}
