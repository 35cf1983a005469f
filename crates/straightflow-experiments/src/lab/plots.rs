//! What an estimate costs against its error, for each family and number of variables.

use straightflow::distribution::FamilyKind;
use straightflow_report::plot::{Axis, Candidate, Pareto};

use super::recommend::by_size;
use super::{Row, Standing, Summary, standings};
use crate::experiment::File;

/// One plot for each family and number of variables that was measured, with the name of its file.
pub(super) fn draw(summary: &Summary) -> Vec<File> {
    let mut files = Vec::new();
    for family in FamilyKind::ALL {
        for (variables, rows) in by_size(&summary.rows, *family) {
            let name = match variables {
                1 => format!("pareto-{family}.svg"),
                several => format!("pareto-{family}-{several}.svg"),
            };
            files.push((name, plot(*family, variables, &rows).into_bytes()));
        }
    }
    files
}

fn plot(family: FamilyKind, variables: usize, rows: &[&Row]) -> String {
    let standings = standings(rows, |row| row.single.as_ref());
    let point = |standing: &Standing| Candidate {
        label: standing.spec.to_string(),
        price: standing.price as f64,
        error: standing.error,
        group: usize::from(!standing.unbiased),
    };
    let variables = match variables {
        1 => "one variable".to_owned(),
        several => format!("{several} variables"),
    };
    let several_problems = rows.iter().any(|row| row.problem != rows[0].problem);
    let over = match several_problems {
        true => "all parameters and costs",
        false => "all costs",
    };
    let pareto = Pareto {
        title: format!("Price and error: {family}, {variables}"),
        caption: format!(
            "The estimate with the fewest draws of each method, and its error over {over}. The dashed line is the least \
             error for the price; the method that first reaches each of its levels is in bold."
        ),
        price_label: "evaluations and backward passes".to_owned(),
        error_label: "relative error".to_owned(),
        error_axis: Axis::Log,
        points: standings.iter().map(point).collect(),
        groups: vec!["unbiased".to_owned(), "biased".to_owned()],
    };
    pareto.svg()
}
