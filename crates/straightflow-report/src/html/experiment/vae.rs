//! Variational autoencoders with discrete latent variables: one run, and what it has in common with the
//! grid of runs.

use serde_json::Value;

use super::Experiment;
use crate::html::load::Object;
use crate::html::table::{Column, Format};

/// What two experiments say about one number.
pub const BOUND: &str = "of the negative log-likelihood of the test images, by 100 weighted samples for each; but for \
                         noise it is not above the negative ELBO";
pub const VARIANCE: &str = "variance of an estimate of the encoder's gradient";
pub const EVALUATIONS: &str = "evaluations of the cost for one step of the training";
pub const GRADIENTS: &str = "backward passes through the cost for one step of the training";

pub fn describe(rows: &[Object]) -> Experiment {
    const NEGATIVE_ELBO: &str = "negative ELBO";
    let decimals = Format::Decimals(2);
    let count = Format::Significant(4);
    Experiment {
        title: "The variational autoencoder".to_owned(),
        about: "An encoder gives the law of discrete latent variables for an image, a decoder the law of \
                the pixels for the latent variables. Both are trained to make the negative ELBO small, \
                and the estimator gives the gradient of the encoder. The heading of the table names the \
                architecture, the latent variables and how the images are made binary.",
        columns: vec![
            Column::new("train_nelbo", "train", decimals)
                .group(NEGATIVE_ELBO)
                .about(
                    "negative ELBO of the images that the training uses, in nats for each image",
                ),
            Column::new("valid_nelbo", "valid", decimals)
                .group(NEGATIVE_ELBO)
                .about("the same of images that are kept aside"),
            Column::new("test_nelbo", "test", decimals)
                .group(NEGATIVE_ELBO)
                .about("the same of the test images"),
            Column::new("test_bound_100", "bound", decimals).about(BOUND),
            Column::new("gradient_variance", "variance", Format::Significant(3)).about(VARIANCE),
            Column::new("epochs", "epochs", count),
            Column::new("evaluations", "f", count).about(EVALUATIONS),
            Column::new("gradients", "df", count).about(GRADIENTS),
        ],
        split_by: &["arch", "latent", "protocol"],
        lists: Vec::new(),
        shown_elsewhere: &[
            "train_nelbo",
            "valid_nelbo",
            "test_nelbo",
            "test_bound_100",
            "curve",
        ],
        remarks: default_pwgf(rows).into_iter().collect(),
    }
}

/// That a row of pWGF is not another method than straight-through.
pub fn default_pwgf(rows: &[Object]) -> Option<String> {
    let on_bits =
        |row: &Object| text(row, "estimator") == "pwgf" && text(row, "latent") == "bernoulli";
    rows.iter().any(on_bits).then(|| {
        "With its default configuration pWGF is straight-through on bits: its row is not one of another \
         method."
            .to_owned()
    })
}

/// A field of text, or nothing.
pub fn text<'a>(row: &'a Object, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}
