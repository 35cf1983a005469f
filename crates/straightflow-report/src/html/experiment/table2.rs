//! The grid of the paper's second table: architectures, estimators, seeds.

use serde_json::Value;

use super::Experiment;
use super::vae::{self, text};
use crate::html::load::Object;
use crate::html::table::{Column, Format, Source};

pub fn describe(rows: &[Object]) -> Experiment {
    const OURS: &str = "this run";
    // A line must not begin with the number.
    const PAPER: &str = "paper, Table\u{a0}2";
    const DIFFERENCE: &str = "difference";
    const ALSO_OURS: &str = "also of this run";
    let decimals = Format::Decimals(2);
    let count = Format::Significant(4);
    let also =
        |key: &str, heading: &str, format| Column::new(key, heading, format).group(ALSO_OURS);
    Experiment {
        title: "The autoencoders of Table 2".to_owned(),
        about: "Variational autoencoders with discrete latent variables on images of digits: one row for \
                each estimator of the encoder's gradient, one table for each architecture. Bounds are in \
                nats for each image and averaged over seeds; less is better.",
        columns: vec![
            Column::new("test_nelbo", "test", decimals)
                .group(OURS)
                .about("negative ELBO of the test images"),
            Column::new("test_nelbo_sd", "sd", decimals)
                .group(OURS)
                .about("standard deviation of it over seeds; a dash for one seed"),
            Column::new("paper", "test", decimals).group(PAPER),
            Column::of(Source::Difference("test_nelbo", "paper"), "of test", decimals)
                .group(DIFFERENCE)
                .about("negative ELBO of this run less the paper's; above zero where the paper's is better"),
            also("test_bound_100", "bound", decimals).about(vae::BOUND),
            also("train_nelbo", "train", decimals).about("negative ELBO of the images that the training uses"),
            also("valid_nelbo", "valid", decimals).about("negative ELBO of images that are kept aside"),
            also("gradient_variance", "variance", Format::Significant(3)).about(vae::VARIANCE),
            also("evaluations", "f", count).about(vae::EVALUATIONS),
            also("gradients", "df", count).about(vae::GRADIENTS),
            also("seeds", "seeds", count),
            also("epochs", "epochs", count),
        ],
        split_by: &["arch", "latent"],
        lists: Vec::new(),
        shown_elsewhere: &[],
        remarks: [
            unfinished(rows),
            unstated_protocol(rows),
            fewer_epochs(rows),
            greyscale(rows),
            vae::default_pwgf(rows),
            reading_of_pwgf(rows),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

/// The rows that the paper has a number for.
fn in_paper(rows: &[Object]) -> impl Iterator<Item = &Object> {
    rows.iter()
        .filter(|row| row.get("paper").is_some_and(Value::is_number))
}

fn unfinished(rows: &[Object]) -> Option<String> {
    let name = |row: &Object| {
        let runs = row.get("unfinished")?.as_u64().filter(|runs| *runs > 0)?;
        Some(format!(
            "{}, {} ({runs})",
            text(row, "label"),
            text(row, "arch")
        ))
    };
    let names: Vec<String> = rows.iter().filter_map(name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "These rows have runs that did not end, their numbers are those of the others: {}.",
            names.join("; ")
        )
    })
}

fn unstated_protocol(rows: &[Object]) -> Option<String> {
    in_paper(rows).next().map(|_| {
        "The paper does not state the protocol of its Table 2: how the images are made binary, the epochs, \
         the learning rate, the number N of samples, the bandwidth. Agreement with the table is agreement \
         with one reading of it."
            .to_owned()
    })
}

fn reading_of_pwgf(rows: &[Object]) -> Option<String> {
    let shown = rows
        .iter()
        .any(|row| text(row, "estimator") == "pwgf:preset=paper");
    shown.then(|| {
        "pWGF with the preset of the paper has N = 1 sample for each image, a step eps = 1 and a bandwidth h of \
         one standard deviation, at least 1, and takes the raw gradient with its control variate. The paper \
         states none of the three."
            .to_owned()
    })
}

/// The epochs that the paper's numbers of an architecture are compared as.
fn whole_training(arch: &str) -> Option<u64> {
    match arch {
        "linear" | "nonlinear" => Some(400),
        "two-layer" => Some(1500),
        _ => None,
    }
}

fn fewer_epochs(rows: &[Object]) -> Option<String> {
    let mut short: Vec<String> = in_paper(rows)
        .filter_map(|row| {
            let arch = text(row, "arch");
            let (epochs, whole) = (row.get("epochs")?.as_u64()?, whole_training(arch)?);
            (epochs < whole).then(|| format!("{arch} ({epochs} of {whole})"))
        })
        .collect();
    // Rows of one architecture stand together.
    short.dedup();
    (!short.is_empty()).then(|| {
        format!(
            "The paper's numbers are taken for those of the whole training: 400 epochs for the linear and \
             the nonlinear architecture, 1500 for two layers. Rows with fewer epochs are at an earlier \
             point of it: {}.",
            short.join(", ")
        )
    })
}

/// Columns of the paper that are probably of other data.
fn greyscale(rows: &[Object]) -> Option<String> {
    const METHODS: [(&str, &str); 3] = [
        ("rebar", "REBAR"),
        ("relax", "RELAX"),
        ("gumbel-softmax", "Gumbel-softmax"),
    ];
    let id = |row: &Object| text(row, "estimator").split(':').next().map(str::to_owned);
    let compared: Vec<String> = in_paper(rows).filter_map(id).collect();
    let names: Vec<&str> = METHODS
        .iter()
        .filter(|(id, _)| compared.iter().any(|compared| compared == id))
        .map(|(_, name)| *name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "The paper's numbers of {} are probably of greyscale images, because the public scripts of the \
             time bypass the thresholding there; they are probably not comparable with those of binary \
             images.",
            enumeration(&names)
        )
    })
}

fn enumeration(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remarks(rows: Value) -> Vec<String> {
        let rows: Vec<Object> = serde_json::from_value(rows).expect("objects");
        describe(&rows).remarks
    }

    fn row(estimator: &str, arch: &str, epochs: u64, paper: Option<f64>) -> Value {
        json!({
            "label": estimator.to_uppercase(), "estimator": estimator, "arch": arch,
            "latent": "bernoulli", "epochs": epochs, "paper": paper, "unfinished": 0,
        })
    }

    #[test]
    fn rows_without_a_counterpart_have_no_remarks() {
        assert!(remarks(json!([])).is_empty());
        let rows = json!([
            row("disarm", "linear", 3, None),
            row("rebar", "linear", 3, None),
        ]);
        assert!(remarks(rows).is_empty());
    }

    #[test]
    fn a_whole_training_is_not_called_short() {
        let rows = json!([
            row("arm", "linear", 400, Some(110.3)),
            row("arm", "two-layer", 1500, Some(98.0)),
            row("arm", "other", 1, Some(98.0)),
        ]);
        let remarks = remarks(rows);
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].contains("does not state the protocol"));
    }

    #[test]
    fn architectures_with_fewer_epochs_are_named_once() {
        let rows = json!([
            row("arm", "linear", 100, Some(110.3)),
            row("straight-through", "linear", 100, Some(110.3)),
            row("arm", "nonlinear", 400, Some(99.0)),
            row("arm", "two-layer", 400, Some(98.0)),
        ]);
        let remark = remarks(rows).remove(1);
        assert!(
            remark.ends_with(": linear (100 of 400), two-layer (400 of 1500)."),
            "{remark}"
        );
    }

    #[test]
    fn numbers_of_greyscale_images_are_named_by_their_methods() {
        let rows = json!([
            row("rebar", "linear", 400, Some(111.6)),
            row("relax", "linear", 400, None),
            row("gumbel-softmax", "linear", 400, Some(112.5)),
        ]);
        let remark = remarks(rows).remove(1);
        assert!(
            remark.contains("numbers of REBAR and Gumbel-softmax are"),
            "{remark}"
        );
        assert_eq!(enumeration(&["a", "b", "c"]), "a, b and c");
        assert_eq!(enumeration(&["a"]), "a");
    }

    #[test]
    fn only_the_default_pwgf_on_bits_is_straight_through() {
        let is_named = |estimator: &str, latent: &str| {
            let mut row = row(estimator, "linear", 400, None);
            row["latent"] = json!(latent);
            let remarks = remarks(json!([row]));
            remarks.iter().any(|r| r.contains("straight-through"))
        };
        assert!(is_named("pwgf", "bernoulli"));
        assert!(!is_named("pwgf", "poisson") && !is_named("pwgf:preset=paper", "bernoulli"));
    }

    #[test]
    fn our_reading_of_pwgf_is_stated_where_it_stands() {
        let of = |estimator: &str| remarks(json!([row(estimator, "linear", 400, None)]));
        assert!(of("pwgf:preset=paper")[0].contains("N = 1 sample"));
        assert!(of("arm").is_empty());
    }

    #[test]
    fn rows_with_runs_that_did_not_end_are_named() {
        let mut short = row("arm", "linear", 400, None);
        short["unfinished"] = json!(2);
        let remarks = remarks(json!([short, row("disarm", "linear", 400, None)]));
        assert!(remarks[0].ends_with(": ARM, linear (2)."), "{}", remarks[0]);
    }
}
