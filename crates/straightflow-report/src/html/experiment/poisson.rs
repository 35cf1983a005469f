//! The game of the paper's first table.

use serde_json::Value;

use super::Experiment;
use crate::html::load::Object;
use crate::html::number;
use crate::html::table::{Column, Format, Source};

pub fn describe(rows: &[Object]) -> Experiment {
    const OURS: &str = "this run";
    const PAPER: &str = "paper, Table 1";
    const DIFFERENCE: &str = "difference";
    let decimals = Format::Decimals;
    Experiment {
        title: "The Poisson game".to_owned(),
        about: "A generator with one parameter, the rate of a Poisson variable, plays against a \
                discriminator that learns to tell its samples from those of the data. Every row is \
                the same game with another estimator of the generator's gradient.",
        columns: vec![
            Column::new("mean", "mean", decimals(4))
                .group(OURS)
                .about("the rate, averaged over the last part of the game and over seeds"),
            Column::new("time_std", "sd over time", decimals(4))
                .group(OURS)
                .about("standard deviation of the rate over the last part of a game, averaged over seeds"),
            Column::new("seed_std", "sd over seeds", decimals(4))
                .group(OURS)
                .about("standard deviation over seeds"),
            Column::new("settle", "settled", decimals(0))
                .group(OURS)
                .about("the step from which on the rate stays near that of the data"),
            Column::new("paper_mean", "mean", decimals(4)).group(PAPER),
            Column::new("paper_std", "sd", decimals(4)).group(PAPER),
            Column::of(Source::Difference("mean", "paper_mean"), "of means", decimals(4))
                .group(DIFFERENCE),
            Column::of(Source::Difference("time_std", "paper_std"), "of sds", decimals(4))
                .group(DIFFERENCE)
                .about("sd over time less the paper's; the paper does not say over what its own is"),
        ],
        split_by: &[],
        lists: Vec::new(),
        shown_elsewhere: &[],
        remarks: controls(rows),
    }
}

/// Rows without numbers in the paper are controls: they tell whether a small spread is the method's or
/// comes from elsewhere.
fn controls(rows: &[Object]) -> Vec<String> {
    /// Standard deviations that differ by less are called alike.
    const ALIKE: f64 = 1.5;
    let named = |row: &Object| {
        let label = row.get("label").and_then(Value::as_str)?;
        Some((
            label.to_owned(),
            row.get("time_std").and_then(Value::as_f64)?,
        ))
    };
    let in_paper = |row: &&Object| row.get("paper_std").is_some_and(Value::is_number);
    let (paper, controls): (Vec<&Object>, Vec<&Object>) = rows.iter().partition(in_paper);
    let paper: Vec<_> = paper.into_iter().filter_map(named).collect();
    let controls: Vec<_> = controls.into_iter().filter_map(named).collect();
    let least = paper.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (Some((label, spread)), false) = (least, controls.is_empty()) else {
        return Vec::new();
    };
    let show = |spread: f64| number::show(spread, Format::Decimals(4));
    let alike: Vec<String> = controls
        .iter()
        .filter(|(_, other)| *other <= ALIKE * spread)
        .map(|(label, other)| format!("{label} ({})", show(*other)))
        .collect();
    let found = if alike.is_empty() {
        format!("No control row comes within a factor of {ALIKE} of it.")
    } else {
        format!(
            "It is matched, within a factor of {ALIKE} or better, by the control {} {}: a spread this \
             small is not particular to that method.",
            if alike.len() == 1 { "row" } else { "rows" },
            alike.join(", "),
        )
    };
    vec![
        "Rows without numbers of the paper are controls. The exact gradient has no noise of an \
         estimator, so its spread is that of the game itself. A row with a matched gain takes steps as \
         short as those of pWGF, and one with unit gain takes pWGF's direction with the steps of the \
         others; together they tell the direction of a step from its length."
            .to_owned(),
        format!(
            "Of the paper's rows, {label} has the smallest standard deviation over time, {}. {found}",
            show(*spread)
        ),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remark(control: f64) -> String {
        let rows = json!([
            {"label": "pWGF", "time_std": 0.01, "paper_std": 0.013},
            {"label": "ST", "time_std": 0.16, "paper_std": 0.161},
            {"label": "ST, matched", "time_std": control, "paper_std": null},
        ]);
        let rows: Vec<Object> = serde_json::from_value(rows).expect("objects");
        controls(&rows).pop().expect("a remark")
    }

    #[test]
    fn the_remark_on_controls_follows_the_rows() {
        assert!(remark(0.012).contains("pWGF has the smallest"));
        assert!(remark(0.012).contains("ST, matched (0.0120)"));
        assert!(remark(0.1).contains("No control row"));
        assert!(controls(&[]).is_empty());
    }
}
