//! One bit.

use serde_json::Value;

use super::Experiment;
use crate::html::load::Object;
use crate::html::table::{Column, Format};

/// The numbers of a list inside of the first row, such as the values of `p0` of its runs.
fn numbers_in(rows: &[Object], list: &str, key: &str) -> Vec<f64> {
    let first = rows.first().and_then(|row| row.get(list));
    let values = first.and_then(Value::as_array).into_iter().flatten();
    values
        .filter_map(|value| value.get(key)?.as_f64())
        .collect()
}

pub fn describe(rows: &[Object]) -> Experiment {
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
        shown_elsewhere: &[],
        remarks: Vec::new(),
    }
}
