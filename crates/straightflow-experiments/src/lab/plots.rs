//! What an estimate costs against its error, for each family.

use straightflow::distribution::FamilyKind;
use straightflow_report::plot::{Axis, Candidate, Pareto};

use super::{Row, Standing, Summary, standings};
use crate::experiment::File;

/// One plot for each family that was measured, with the name of its file.
pub(super) fn draw(summary: &Summary) -> Vec<File> {
    let families = FamilyKind::ALL.iter();
    let drawn = families.filter_map(|family| {
        let of_family = summary.rows.iter().filter(|row| row.family == *family);
        let rows: Vec<&Row> = of_family.collect();
        let name = format!("pareto-{family}.svg");
        (!rows.is_empty()).then(|| (name, plot(*family, &rows).into_bytes()))
    });
    drawn.collect()
}

fn plot(family: FamilyKind, rows: &[&Row]) -> String {
    let standings = standings(rows, |row| row.single.as_ref());
    let point = |standing: &Standing| Candidate {
        label: standing.spec.to_string(),
        x: standing.price as f64,
        y: standing.error,
        group: usize::from(!standing.unbiased),
    };
    let pareto = Pareto {
        title: format!("Cost and error, {family}"),
        caption: "The smallest estimate of each method. The error is the geometric mean over all variables and costs of the root-mean-square error, \
                  relative to the largest gradient that a cost of the same variance can have. No \
                  estimator is both cheaper and better than one on the line."
            .to_owned(),
        x_label: "evaluations and backward passes of one estimate".to_owned(),
        y_label: "relative error".to_owned(),
        x_axis: Axis::Log,
        y_axis: Axis::Log,
        points: standings.iter().map(point).collect(),
        groups: vec!["unbiased".to_owned(), "biased".to_owned()],
    };
    pareto.svg()
}
