//! The plots of a table: learning curves against steps and against evaluations of the cost, and the
//! variance of gradients, for every architecture. One that would show nothing new is left out.

use straightflow_report::plot::{Axis, Curves, Line};

use super::summary::{TableRow, TableSummary, short};
use crate::experiment::File;
use crate::looks::look;
use crate::vae::Epoch;

/// More lines cannot be told apart.
const LINES: usize = 8;

/// The names of the files and what is in them.
pub(super) fn draw(summary: &TableSummary) -> Vec<File> {
    let archs = summary.rows.chunk_by(|a, b| a.arch == b.arch);
    archs.flat_map(of_architecture).collect()
}

fn of_architecture(rows: &[TableRow]) -> Vec<File> {
    // A line needs two points.
    if rows.iter().any(|row| row.curve.len() < 2) {
        return Vec::new();
    }
    let arch = &rows[0].arch;
    // In parts of equal size, if there are too many for one plot.
    let parts = rows.len().div_ceil(LINES);
    let pieces = rows.chunks(rows.len().div_ceil(parts));
    let mut plots = Vec::new();
    for (part, rows) in pieces.enumerate() {
        let (suffix, title) = match parts {
            1 => (String::new(), String::new()),
            _ => (format!("-{}", part + 1), format!(", part {}", part + 1)),
        };
        let seeds = match rows.iter().all(|row| row.seeds == 1) {
            true => "One seed",
            false => "Means over seeds",
        };
        let test = |epoch: &Epoch| Some(epoch.test_nelbo);
        let plot = |what: &str, x_label: &str, lines: Vec<Line>, y_axis: Axis| {
            let scale = match y_axis {
                Axis::Linear => "",
                Axis::Log => " The scale is logarithmic.",
            };
            let curves = Curves {
                title: format!("{what}, {arch}{title}"),
                caption: format!("{seeds}, after each epoch.{scale}"),
                x_label: x_label.to_owned(),
                y_label: match y_axis {
                    Axis::Linear => "nats".to_owned(),
                    Axis::Log => "variance".to_owned(),
                },
                // Beginnings are far above what the methods differ in.
                near_ends: y_axis == Axis::Linear,
                y_axis,
                lines,
                ..Curves::default()
            };
            curves.svg().into_bytes()
        };
        let steps = lines(rows, |epoch| epoch.step, test);
        plots.push((
            format!("{arch}-steps{suffix}.svg"),
            plot(
                "Test negative ELBO against steps",
                "steps (thousands)",
                steps,
                Axis::default(),
            ),
        ));
        // Of equally expensive methods it would be the same picture.
        if rows
            .iter()
            .any(|row| row.evaluations != rows[0].evaluations)
        {
            let evaluations = lines(rows, |epoch| epoch.evaluations, test);
            plots.push((
                format!("{arch}-evaluations{suffix}.svg"),
                plot(
                    "Test negative ELBO against evaluations",
                    "evaluations of the cost (thousands of batches)",
                    evaluations,
                    Axis::default(),
                ),
            ));
        }
        // Variances are there to be compared.
        if rows.len() > 1 {
            let variances = lines(rows, |epoch| epoch.step, |epoch| epoch.gradient_variance);
            plots.push((
                format!("{arch}-variance{suffix}.svg"),
                plot(
                    "Variance of the encoder's gradient",
                    "steps (thousands)",
                    variances,
                    Axis::Log,
                ),
            ));
        }
    }
    plots
}

fn lines(
    rows: &[TableRow],
    x: impl Fn(&Epoch) -> u64,
    y: impl Fn(&Epoch) -> Option<f64>,
) -> Vec<Line> {
    let point = |epoch: &Epoch| Some((x(epoch) as f64 / 1000.0, y(epoch)?));
    let line = |row: &TableRow| Line {
        label: short(&row.label),
        points: row.curve.iter().filter_map(point).collect(),
        look: look(&row.estimator),
        ..Line::default()
    };
    rows.iter().map(line).collect()
}
