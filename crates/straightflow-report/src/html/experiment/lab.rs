//! Every estimator against the exact gradient.

use super::Experiment;
use crate::html::load::Object;
use crate::html::table::{Column, Format};

pub fn describe(rows: &[Object]) -> Experiment {
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
        shown_elsewhere: &[],
        remarks: Vec::new(),
    }
}
