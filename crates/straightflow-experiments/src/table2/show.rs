//! What is said about the table: the rows beside the paper's numbers, and how far they can be compared.

use straightflow_report::page::{Column, Format, Label, Page, Table};

use super::opening::{findings, glance, paper};
use super::plots;
use super::recorded::beside;
use super::summary::{TableRow, TableSummary, short};
use crate::experiment::place;
use crate::vae::{
    Architecture, BOUND, DEFAULT_PWGF, EVALUATIONS, GRADIENTS, Latent, Protocol, VARIANCE,
    default_pwgf, sized,
};

pub(super) fn page(summary: &TableSummary) -> Page {
    let rows = &summary.rows;
    let bound_samples = rows.first().map_or(0, |row| row.bound_samples);
    let tables = Table::split(
        &columns(rows, bound_samples),
        rows,
        |row| format!("{}, {}", row.arch, sized(&row.latent, row.units)),
        |row| Label::new(short(&row.label), &row.estimator),
    );
    let failures = summary.failures.iter();
    let remarks = [
        unfinished(rows),
        unstated_protocol(rows),
        fewer_epochs(rows),
        greyscale(rows),
        rows.iter()
            .any(|row| default_pwgf(&row.estimator, &row.latent))
            .then(|| DEFAULT_PWGF.to_owned()),
        reading_of_pwgf(rows),
    ];
    let page = Page::new(
        title(rows),
        "Variational autoencoders with discrete latent variables on images of digits: one row for each \
         estimator of the encoder's gradient, one table for each architecture. Bounds are in nats per image, averaged \
         over seeds; lower is better.",
    )
    .at(place::TABLE2)
    .findings(findings(rows))
    .tables(tables.into_iter().map(|table| {
        table.look("Look at “test” under “this run”: nats per image, lower is better. Compare our rows only at equal epochs.")
    }))
    .figures(plots::draw(summary))
    .remarks(remarks.into_iter().flatten())
    .remarks(failures.map(|(cell, reason)| format!("{cell} failed: {reason}.")));
    match glance(rows) {
        Some(glance) => page.glance(glance),
        None => page,
    }
}

/// The experiment, and what sets this run apart.
fn title(rows: &[TableRow]) -> String {
    let each = |value: fn(&TableRow) -> String| {
        let mut values: Vec<String> = rows.iter().map(value).collect();
        values.dedup();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        enumeration(&values)
    };
    let latent = |row: &TableRow| {
        let variables = match row.latent.as_str() {
            "bernoulli" => "bits",
            "poisson" => "counts",
            "categorical" => "categories",
            other => other,
        };
        match row.units {
            Some(units) => format!("{units} {variables}"),
            None => variables.to_owned(),
        }
    };
    if rows.is_empty() {
        return "Table 2".to_owned();
    }
    let specs = rows.iter().map(|row| row.estimator.as_str());
    let mut specs: Vec<&str> = specs.collect();
    specs.sort_unstable();
    specs.dedup();
    let methods = match specs.as_slice() {
        few if few.len() <= 3 => enumeration(few),
        many => format!("{} estimators", many.len()),
    };
    let seeds = match each(|row| row.seeds.to_string()).as_str() {
        "1" => String::new(),
        seeds => format!(", {seeds} seeds"),
    };
    let protocol = match each(|row| row.protocol.clone()).as_str() {
        "threshold" => String::new(),
        other => format!(", protocol {other}"),
    };
    format!(
        "Table 2: autoencoders, {}, {}{protocol}, {} epochs{seeds}: {methods}",
        each(|row| row.arch.clone()),
        each(latent),
        each(|row| row.epochs.to_string())
    )
}

fn columns(rows: &[TableRow], bound_samples: usize) -> Vec<Column<TableRow>> {
    const OURS: &str = "this run";
    const ALSO_OURS: &str = "more from this run";
    let bound = |key: &str, heading: &str, value: fn(&TableRow) -> f64| {
        Column::new(key, heading, Format::Decimals(2), value)
            .group(ALSO_OURS)
            .unit("nats")
    };
    let count = Format::Significant(4);
    let each = Format::Decimals(1);
    let mut columns = vec![
        bound("test_nelbo", "test", |row| row.test_nelbo)
            .group(OURS)
            .about(match rows.iter().any(|row| is_whole(row) && paper(row).is_some()) {
                true => {
                    "negative ELBO of the test images; a positive difference means that the paper's number is \
                     better; runs shorter than the full training have none"
                }
                false => "negative ELBO of the test images; the paper's numbers are for full training",
            })
            .paper("Table 2", paper)
            .compared_if(is_whole),
        Column::new("test_nelbo_sd", "sd", Format::Decimals(2), |row: &TableRow| row.test_nelbo_sd)
            .group(OURS)
            .about("its standard deviation over seeds; a dash for one seed"),
        Column::new("epochs", "epochs", count, |row: &TableRow| row.epochs).group(OURS),
        bound("test_bound_100", &format!("{bound_samples} draws"), |row| row.test_bound_100)
            .about(BOUND),
        bound("train_nelbo", "train", |row| row.train_nelbo)
            .about("negative ELBO of the training images"),
        bound("valid_nelbo", "valid", |row| row.valid_nelbo)
            .about("negative ELBO of the validation images"),
        Column::new("gradient_variance", "variance", Format::Significant(3), |row: &TableRow| {
            row.gradient_variance
        })
        .group(ALSO_OURS)
        .about(VARIANCE),
        Column::new("evaluations", "f", each, |row: &TableRow| row.evaluations)
            .group(ALSO_OURS)
            .about(EVALUATIONS),
        Column::new("gradients", "df", each, |row: &TableRow| row.gradients)
            .group(ALSO_OURS)
            .about(GRADIENTS),
        Column::new("seeds", "seeds", count, |row: &TableRow| row.seeds).group(ALSO_OURS),
    ];
    if rows.iter().any(|row| beside(row).is_some()) {
        const RECORDED: &str = "longest recorded run";
        let longer = Column::new("recorded", "test", Format::Decimals(2), |row: &TableRow| {
            beside(row).map(|one| one.test_nelbo)
        });
        let epochs = Column::new("recorded_epochs", "epochs", count, |row: &TableRow| {
            beside(row).map(|one| one.epochs)
        });
        columns.insert(3, longer.group(RECORDED));
        columns.insert(
            4,
            epochs
                .group(RECORDED)
                .about("of the run; under “longest recorded run”, of the longest run of the same estimator in the \
                     repository, if it is longer than this one"),
        );
    }
    columns
}

/// Whether a row is of the whole training, with which the paper's number is compared.
fn is_whole(row: &TableRow) -> bool {
    let arch = Architecture::ALL
        .into_iter()
        .find(|arch| arch.name() == row.arch);
    arch.is_none_or(|arch| row.epochs >= whole_training(arch))
}

/// The rows that the paper has a number for.
fn in_paper(rows: &[TableRow]) -> impl Iterator<Item = &TableRow> {
    rows.iter().filter(|row| row.paper.is_some())
}

fn unfinished(rows: &[TableRow]) -> Option<String> {
    let rows = rows.iter().filter(|row| row.unfinished > 0);
    let names: Vec<String> = rows
        .map(|row| format!("{}, {} ({})", short(&row.label), row.arch, row.unfinished))
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "Some runs of these rows failed, and their numbers are means over the others: {}.",
            names.join("; ")
        )
    })
}

fn unstated_protocol(rows: &[TableRow]) -> Option<String> {
    in_paper(rows).next().map(|_| {
        "The paper says only that it follows the settings of Yin and Zhou (ARM). It does not state the protocol: how the \
         images are made binary, the epochs, the learning rate, the number N of samples, the bandwidth. Agreement \
         with the table is agreement with one reading of it."
            .to_owned()
    })
}

fn reading_of_pwgf(rows: &[TableRow]) -> Option<String> {
    let shown = rows.iter().any(|row| row.estimator == "pwgf:preset=paper");
    shown.then(|| {
        "pWGF with the preset of the paper uses N = 1 sample per image, a step ε = 1, a bandwidth h of one \
         standard deviation but at least 1, and the gradient with its control variate, not rescaled. The paper does not \
         state N, ε or h."
            .to_owned()
    })
}

/// The epochs that the paper's numbers of an architecture are compared as: those of the protocol.
fn whole_training(arch: Architecture) -> u64 {
    Protocol::Threshold.epochs(arch, Latent::Bernoulli)
}

fn fewer_epochs(rows: &[TableRow]) -> Option<String> {
    let all = || Architecture::ALL.into_iter();
    let mut short: Vec<String> = in_paper(rows)
        .filter_map(|row| {
            let whole = whole_training(all().find(|arch| arch.name() == row.arch)?);
            let (arch, epochs) = (&row.arch, row.epochs);
            (epochs < whole).then(|| format!("{arch} ({epochs} of {whole})"))
        })
        .collect();
    // Rows of one architecture stand together.
    short.dedup();
    (!short.is_empty()).then(|| {
        let whole: Vec<String> = all()
            .map(|arch| format!("{} epochs for {}", whole_training(arch), arch.name()))
            .collect();
        let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
        format!(
            "We take the paper's numbers to be those after full training: {}. These rows were trained for fewer \
             epochs: {}.",
            enumeration(&whole),
            short.join(", ")
        )
    })
}

/// Columns of the paper that are probably of other data.
fn greyscale(rows: &[TableRow]) -> Option<String> {
    const METHODS: [(&str, &str); 3] = [
        ("rebar", "REBAR"),
        ("relax", "RELAX"),
        ("gumbel-softmax", "Gumbel-softmax"),
    ];
    let id = |row: &TableRow| row.estimator.split(':').next().map(str::to_owned);
    let compared: Vec<String> = in_paper(rows).filter_map(id).collect();
    let names: Vec<&str> = METHODS
        .iter()
        .filter(|(id, _)| compared.iter().any(|compared| compared == id))
        .map(|(_, name)| *name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "The paper's numbers for {} may have been obtained on greyscale images: the public scripts of \
             that time do not binarise the images for these methods, and the paper does not say. If so, they cannot be \
             compared with ours, which are for binary images.",
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
    use super::*;

    fn row(estimator: &str, arch: &str, epochs: u64, paper: Option<f64>) -> TableRow {
        TableRow {
            arch: arch.to_owned(),
            latent: "bernoulli".to_owned(),
            units: None,
            protocol: "threshold".to_owned(),
            data: "mnist-threshold".to_owned(),
            images: 0,
            estimator: estimator.to_owned(),
            label: estimator.to_uppercase(),
            seeds: 3,
            epochs,
            train_nelbo: 110.0,
            valid_nelbo: 112.0,
            test_nelbo: 112.28,
            test_nelbo_sd: Some(0.16),
            test_bound_100: 107.08,
            bound_samples: 100,
            gradient_variance: None,
            evaluations: 2.0,
            gradients: 1.0,
            paper,
            unfinished: 0,
            curve: Vec::new(),
        }
    }

    fn remarks(rows: Vec<TableRow>) -> Vec<String> {
        let failures = Vec::new();
        page(&TableSummary { rows, failures }).remarks
    }

    #[test]
    fn rows_that_the_paper_does_not_have_need_no_remark() {
        let rows = vec![
            row("arm", "linear", 3, None),
            row("rebar", "linear", 3, None),
        ];
        assert!(remarks(rows).is_empty());
    }

    #[test]
    fn a_whole_training_is_not_called_short() {
        let rows = vec![
            row("arm", "linear", 400, Some(110.3)),
            row("arm", "two-layer", 1500, Some(98.0)),
            row("arm", "other", 1, Some(98.0)),
        ];
        let remarks = remarks(rows);
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].contains("does not state the protocol"));
    }

    #[test]
    fn runs_on_a_part_of_the_images_are_not_compared_with_the_paper() {
        let mut row = row("pwgf:preset=paper,step=fixed(0.01)", "linear", 400, None);
        assert_eq!(paper(&row), Some(119.8));
        row.images = 100;
        assert_eq!(paper(&row), None);
    }

    #[test]
    fn architectures_with_fewer_epochs_are_named_once() {
        let rows = vec![
            row("arm", "linear", 100, Some(110.3)),
            row("straight-through", "linear", 100, Some(110.3)),
            row("arm", "nonlinear", 400, Some(99.0)),
            row("arm", "two-layer", 400, Some(98.0)),
        ];
        let remark = remarks(rows).remove(1);
        let whole = "400 epochs for linear, 1500 epochs for two-layer and 400 epochs for nonlinear";
        assert!(remark.contains(whole), "{remark}");
        assert!(
            remark.ends_with(": linear (100 of 400), two-layer (400 of 1500)."),
            "{remark}"
        );
    }

    #[test]
    fn numbers_of_greyscale_images_are_named_by_their_methods() {
        let rows = vec![
            row("rebar", "linear", 400, Some(111.6)),
            row("relax", "linear", 400, None),
            row("gumbel-softmax", "linear", 400, Some(112.5)),
        ];
        let remark = remarks(rows).remove(1);
        assert!(
            remark.contains("numbers for REBAR and Gumbel-softmax may"),
            "{remark}"
        );
        assert_eq!(enumeration(&["a", "b", "c"]), "a, b and c");
        assert_eq!(enumeration(&["a"]), "a");
    }

    #[test]
    fn only_the_default_pwgf_on_bits_is_straight_through() {
        let is_named = |estimator: &str, latent: &str| {
            let mut row = row(estimator, "linear", 400, None);
            row.latent = latent.to_owned();
            let remarks = remarks(vec![row]);
            remarks.iter().any(|r| r.contains("straight-through"))
        };
        assert!(is_named("pwgf", "bernoulli"));
        assert!(!is_named("pwgf", "poisson") && !is_named("pwgf:preset=paper", "bernoulli"));
    }

    #[test]
    fn our_reading_of_pwgf_is_stated_where_it_stands() {
        let of = |estimator: &str| remarks(vec![row(estimator, "linear", 400, None)]);
        assert!(of("pwgf:preset=paper")[0].contains("N = 1 sample"));
        assert!(of("arm").is_empty());
    }

    #[test]
    fn rows_with_runs_that_did_not_end_are_named() {
        let mut short = row("arm", "linear", 400, None);
        short.unfinished = 2;
        let remarks = remarks(vec![short, row("disarm", "linear", 400, None)]);
        assert!(remarks[0].ends_with(": ARM, linear (2)."), "{}", remarks[0]);
    }

    #[test]
    fn the_paper_s_number_stands_beside_ours() {
        let rows = [
            row("arm", "linear", 400, Some(110.3)),
            row("disarm", "linear", 400, None),
        ];
        let table = Table::new(&columns(&rows, 100), &rows, |row| row.label.as_str().into());
        let text = table.text();
        let cells = |name: &str| -> Vec<String> {
            let line = text
                .lines()
                .find(|line| line.starts_with(name))
                .expect(name);
            line.split_whitespace()
                .skip(1)
                .take(6)
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(
            cells("ARM"),
            ["112.28", "0.16", "400", "110.30", "+1.98", "107.08"]
        );
        assert_eq!(
            cells("DISARM"),
            ["112.28", "0.16", "400", "–", "–", "107.08"]
        );
    }
}
