//! The longest runs that are recorded, for tables of shorter ones to stand beside.

use std::sync::LazyLock;

use serde::Deserialize;

use super::summary::TableRow;

/// A row of a record of this repository.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The networks.
    pub arch: String,
    /// The specification of the estimator.
    pub estimator: String,
    /// Its name.
    pub label: String,
    /// The epochs of each run.
    pub epochs: u64,
    /// The runs behind the mean.
    pub seeds: usize,
    /// The negative ELBO of the test images.
    pub test_nelbo: f64,
    /// The paper's.
    pub paper: Option<f64>,
    /// The name of the record below `results`.
    pub run: String,
}

/// The longest run of each architecture and estimator, of bits on thresholded images. A test compares
/// the file with the records.
pub fn recorded() -> &'static [Recorded] {
    static RECORDED: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("recorded.json")).expect("the file is a list of records")
    });
    &RECORDED
}

/// The record beside a row: one of the same model that was trained for longer.
pub(super) fn beside(row: &TableRow) -> Option<&'static Recorded> {
    let found = of_estimator(row).find(|one| one.arch == row.arch)?;
    (found.epochs > row.epochs).then_some(found)
}

/// The records of a row's estimator in all networks that are comparable with it.
pub(super) fn of_estimator(row: &TableRow) -> impl Iterator<Item = &'static Recorded> {
    let known = recorded().iter().filter(|_| is_comparable(row));
    known.filter(|one| one.estimator == row.estimator)
}

/// Whether a row is of the same latent variables and images as the records.
pub(super) fn is_comparable(row: &TableRow) -> bool {
    let all = row.units.is_none() && row.images == 0;
    row.latent == "bernoulli" && all && row.data == "mnist-threshold"
}
