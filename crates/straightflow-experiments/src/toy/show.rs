//! What is said about the toy, and its plots.

use straightflow_report::page::{Column, Format, Label, Page, Table};
use straightflow_report::plot::{Axis, Dot, Dots};

use super::{Row, Summary};
use crate::experiment::{File, place};

pub(super) fn page(summary: &Summary) -> Page {
    let table = Table::new(&columns(summary), &summary.rows, |row| {
        Label::new(&row.estimator.label, row.estimator.spec.to_string())
    });
    Page::new(
        "The one-bit toy",
        "One bit, and a cost whose two values are almost equal: −(z − p0)², which is lower by |1 − 2p0| at \
         the better value. The optimum is to always take that value, and the gradient towards it is small compared with its \
         noise.",
    )
    .fact("seeds", summary.seeds)
    .fact("variance and bias measured at p0", summary.variance_p0)
    .at(place::TOY)
    .table(table.look(look(summary.seeds)))
    .figures(plots(summary))
}

/// With fewer runs than this, methods cannot be ranked.
const FEW: usize = 10;

fn look(seeds: usize) -> String {
    let hardest = match seeds < FEW {
        true => "That is too few runs to rank the methods.",
        false => "This is hardest for the p0 nearest to 1/2.",
    };
    format!(
        "Look at the columns “correct”: how many of the {seeds} runs end on the side of the optimum. {hardest}"
    )
}

fn columns(summary: &Summary) -> Vec<Column<Row>> {
    let mut columns = vec![Column::new(
        "steps",
        "steps",
        Format::Significant(4),
        |row: &Row| row.steps,
    )];
    let p0 = summary.rows.first().map_or(&[][..], |row| &row.runs);
    for (i, p0) in p0.iter().map(|runs| runs.p0).enumerate() {
        let group = format!("p0 = {p0}");
        let right = Column::new(
            format!("runs.{i}.right"),
            "correct",
            Format::Significant(4),
            move |row: &Row| row.runs[i].right,
        );
        let steps = Column::new(
            format!("runs.{i}.median_steps"),
            "to .95",
            Format::Significant(4),
            move |row: &Row| row.runs[i].median_steps,
        );
        let about_right = format!(
            "how many of the {} runs end on the side of the optimum",
            summary.seeds
        );
        columns.push(right.about(about_right).group(&group));
        columns.push(
            steps
                .about(
                    "median number of steps until the optimum has a probability of 0.95, over the runs that get there; a \
                     dash where fewer than half do",
                )
                .group(&group),
        );
    }
    columns.push(
        Column::new("variance.log_variance", "log variance", Format::Decimals(2), |row: &Row| {
            row.variance.log_variance
        })
        .about(
            "the natural logarithm of the variance of one estimate of the gradient with respect to the logit, at p = 1/2; a \
             dash where there is no variance",
        ),
    );
    columns.push(
        Column::new("relative_bias", "bias", Format::Decimals(1), relative_bias)
            .unit("%")
            .about("bias of the same estimate, relative to the exact gradient; 0 if it is within three standard errors of 0, a dash \
                 where the noise would hide a bias as large as the gradient itself"),
    );
    columns
}

/// The bias of the gradient in percent, if it is seen; none where the noise hides a bias as large as the gradient.
fn relative_bias(row: &Row) -> Option<f64> {
    let variance = &row.variance;
    let bias = variance.mean - variance.exact;
    if 3.0 * variance.standard_error > variance.exact.abs()
        && bias.abs() <= 3.0 * variance.standard_error
    {
        return None;
    }
    // Rounding errors of an estimate without variance are no bias.
    if bias.abs() <= 3.0 * variance.standard_error + 1e-9 * variance.exact.abs() {
        return Some(0.0);
    }
    Some(100.0 * bias / variance.exact)
}

/// The steps to the optimum, one plot for each `p0`: learning curves of methods that are equally fast
/// cover each other, and dots do not.
pub(super) fn plots(summary: &Summary) -> Vec<File> {
    let p0 = summary.rows.first().map_or(&[][..], |row| &row.runs);
    let plot = |(index, p0): (usize, f64)| {
        let arrived = summary.rows.iter().filter_map(|row| {
            let steps = row.runs[index].median_steps?;
            Some((steps, row))
        });
        let mut arrived: Vec<(usize, &Row)> = arrived.collect();
        arrived.sort_by_key(|(steps, _)| *steps);
        let dot = |(steps, row): &(usize, &Row)| Dot {
            label: row.estimator.spec.to_string(),
            value: *steps as f64,
            interval: None,
            group: usize::from(!row.estimator.unbiased),
        };
        let dots = Dots {
            title: format!("One bit, p0 = {p0}: steps to the optimum"),
            caption: format!(
                "The median number of steps until the optimum has a probability of 0.95, over the runs, out of {}, that get \
                 there. Shown are the {} of {} estimators for which at least half of the runs do. The axis is \
                 logarithmic. Circles are unbiased \
                 methods, squares biased ones.",
                summary.seeds,
                arrived.len(),
                summary.rows.len()
            ),
            x_label: "steps".to_owned(),
            x_axis: Axis::Log,
            rows: arrived.iter().map(dot).collect(),
        };
        (format!("steps-{p0}.svg"), dots.svg().into_bytes())
    };
    let p0 = p0.iter().map(|runs| runs.p0);
    p0.enumerate().map(plot).collect()
}
