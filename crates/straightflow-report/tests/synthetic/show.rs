//! What is said about the made-up runs: typed columns for two of them, nothing about the others.

use serde::Deserialize;
use serde_json::Value;
use straightflow_report::page::{Column, Format, Label, Page, Table};

#[derive(Deserialize)]
struct Game {
    label: String,
    spec: String,
    mean: f64,
    time_std: f64,
    settle: Option<f64>,
    paper_mean: Option<f64>,
    paper_std: Option<f64>,
}

#[derive(Clone, Deserialize)]
struct Grid {
    label: String,
    estimator: String,
    arch: String,
    latent: String,
    test_nelbo: f64,
    test_nelbo_sd: Option<f64>,
    paper: Option<f64>,
    epochs: u64,
}

#[derive(Deserialize)]
struct Rows<R> {
    rows: Vec<R>,
}

/// The page of an experiment that is known.
pub fn show(experiment: &str, summary: &Value) -> Option<Result<Page, serde_json::Error>> {
    match experiment {
        "poisson" => Some(Rows::deserialize(summary).map(|summary| game(&summary.rows))),
        "table2" => Some(Rows::deserialize(summary).map(|summary| grid(&summary.rows))),
        _ => None,
    }
}

fn game(rows: &[Game]) -> Page {
    let columns = [
        Column::new("mean", "mean", Format::Decimals(4), |row: &Game| row.mean)
            .group("this run")
            .about("over seeds")
            .paper("Table 1", |row| row.paper_mean),
        Column::new("time_std", "sd", Format::Decimals(4), |row: &Game| {
            row.time_std
        })
        .group("this run")
        .paper("Table 1", |row| row.paper_std),
        Column::new("settle", "settled", Format::Decimals(0), |row: &Game| {
            row.settle
        }),
    ];
    let label = |row: &Game| Label::new(&row.label, &row.spec);
    Page::new("The Poisson game", "Two players.")
        .lead("Twenty seeds.")
        .fact("seeds", 20_usize)
        .table(Table::new(&columns, rows, label))
        .remarks(["These numbers are made up."])
}

fn grid(rows: &[Grid]) -> Page {
    let columns = [
        Column::new("test_nelbo", "test", Format::Decimals(2), |row: &Grid| {
            row.test_nelbo
        })
        .unit("nats")
        .group("this run")
        .about("negative ELBO of the test images")
        .paper("Table 2", |row| row.paper),
        Column::new("test_nelbo_sd", "sd", Format::Decimals(2), |row: &Grid| {
            row.test_nelbo_sd
        })
        .group("this run"),
        Column::new("epochs", "epochs", Format::Significant(4), |row: &Grid| {
            row.epochs
        }),
    ];
    let tables = Table::split(
        &columns,
        rows,
        |row| format!("{}, {}", row.arch, row.latent),
        |row| Label::new(&row.label, &row.estimator),
    );
    Page::new("The autoencoders of Table 2", "A grid.").tables(tables)
}
