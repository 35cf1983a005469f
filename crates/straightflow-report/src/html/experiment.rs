//! What the page says about each experiment: one description each, and a general one for the rest.
//!
//! A new field of a row needs one line here, a new experiment one function.

use serde_json::Value;

use super::load::Object;
use super::number;
use super::table::{Column, Format, Source, columns_of};

/// How the runs of an experiment are shown.
pub struct Experiment {
    pub title: String,
    /// What was done.
    pub about: &'static str,
    pub columns: Vec<Column>,
    /// One table for each combination of these fields; empty for one table.
    pub split_by: &'static [&'static str],
    /// Further lists of the summary, each with its columns, shown before the rows.
    pub lists: Vec<(&'static str, Vec<Column>)>,
    /// How to read the table, found from its rows.
    pub remarks: Vec<String>,
}

impl Experiment {
    pub fn of(id: &str, rows: &[Object]) -> Self {
        match id {
            "poisson" => poisson(rows),
            "toy" => toy(rows),
            "lab" => lab(rows),
            other => Self {
                title: other.to_owned(),
                about: "",
                columns: columns_of(rows),
                split_by: &[],
                lists: Vec::new(),
                remarks: Vec::new(),
            },
        }
    }
}

fn poisson(rows: &[Object]) -> Experiment {
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

/// The numbers of a list inside of the first row, such as the values of `p0` of its runs.
fn numbers_in(rows: &[Object], list: &str, key: &str) -> Vec<f64> {
    let first = rows.first().and_then(|row| row.get(list));
    let values = first.and_then(Value::as_array).into_iter().flatten();
    values
        .filter_map(|value| value.get(key)?.as_f64())
        .collect()
}

fn toy(rows: &[Object]) -> Experiment {
    let mut columns = vec![Column::new("steps", "steps", Format::Text)];
    for (i, p0) in numbers_in(rows, "runs", "p0").iter().enumerate() {
        let group = format!("p0 = {p0}");
        let right = Column::new(&format!("runs.{i}.right"), "right", Format::Significant(4));
        let steps = Column::new(
            &format!("runs.{i}.median_steps"),
            "to .95",
            Format::Significant(4),
        );
        let explain = |column: Column, about| if i == 0 { column.about(about) } else { column };
        columns.push(explain(right, "runs that end on the side of the optimum").group(&group));
        let about = "median of the steps until the optimum has a probability of 0.95; a dash where fewer \
                     than half of the runs get there";
        columns.push(explain(steps, about).group(&group));
    }
    let about = "natural logarithm of the variance of one estimate of the gradient at p = 1/2; a dash where \
                 there is no variance";
    columns.push(
        Column::new("variance.log_variance", "log-variance", Format::Decimals(2)).about(about),
    );
    Experiment {
        title: "The one-bit toy".to_owned(),
        about: "One Bernoulli variable, and a cost whose two values are almost equal: the optimum is at \
                the end of the interval, and the gradient that points there is small beside its noise.",
        columns,
        split_by: &[],
        lists: Vec::new(),
        remarks: Vec::new(),
    }
}

fn lab(rows: &[Object]) -> Experiment {
    let significant = Format::Significant(3);
    let mut columns = vec![
        Column::new("single.bias", "bias", significant)
            .group("the smallest estimate")
            .about("expectation of the estimate less the exact gradient, with the noise of the measurement; of several coordinates the norm"),
        Column::new("single.std", "sd", significant)
            .group("the smallest estimate")
            .about("standard deviation of one estimate"),
        Column::new("single.evaluations", "f", significant)
            .group("the smallest estimate")
            .about("evaluations of the objective for one estimate"),
        Column::new("single.gradients", "df", significant)
            .group("the smallest estimate")
            .about("backward passes through the objective for one estimate"),
    ];
    let widest = rows.iter().filter_map(|row| row.get("budgets")?.as_array());
    for i in 0..widest.map(Vec::len).max().unwrap_or(0) {
        let column = Column::new(
            &format!("budgets.{i}.rmse"),
            &format!("budget {}", i + 1),
            significant,
        );
        let column = match i {
            0 => column.about("root mean square error of the largest estimate that the first, second, .. of the budgets pays for; a dash where it is too small"),
            _ => column,
        };
        columns.push(column.group("error"));
    }
    columns.push(Column::new("failure", "failure", Format::Text));
    let best =
        |key: &str, heading: &str, format| Column::new(&format!("best.{key}"), heading, format);
    let next = |key: &str, heading: &str, format| {
        Column::new(&format!("next.{key}"), heading, format).group("the next")
    };
    let recommendations = vec![
        Column::new("budget", "budget", Format::Significant(4)),
        Column::new("unbiased", "unbiased only", Format::Text),
        best("spec", "use", Format::Text).group("the best"),
        best("error", "error", significant).group("the best"),
        best("failures", "fails", significant).group("the best"),
        best("worst", "worst", significant).group("the best"),
        next("spec", "estimator", Format::Text),
        next("error", "error", significant),
    ];
    Experiment {
        title: "The laboratory".to_owned(),
        about: "Every estimator against the exact gradient, which is found by enumeration, for each \
                problem and each test objective. The recommendations come from the same numbers: the error \
                is the geometric mean over the objectives of the root mean square error, relative to the \
                largest gradient that a cost of the same variance can have.",
        columns,
        split_by: &["problem", "objective"],
        lists: vec![("recommendations", recommendations)],
        remarks: Vec::new(),
    }
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
