//! The measurements as a person reads them.

use std::fmt::Write as _;

use straightflow_experiments::lab::{
    Failure, Measurement, PROBLEMS, Problem, Recommendation, Row, Summary, objectives, standings,
};

/// Tables, legend and recommendations.
pub fn render(summary: &Summary) -> String {
    let mut text = String::new();
    for problem in PROBLEMS {
        let of_problem = summary.rows.iter().filter(|row| row.problem == problem.id);
        let rows: Vec<&Row> = of_problem.collect();
        if !rows.is_empty() {
            text += &block(problem, &rows, &summary.budgets);
            text.push('\n');
        }
    }
    text += LEGEND;
    text.push('\n');
    for recommendation in &summary.recommendations {
        let _ = writeln!(text, "{}", sentence(recommendation));
    }
    text
}

const LEGEND: &str = "\
bias/std: of the smallest estimate; the std of one that takes several draws is multiplied with the root of
their number. !: bias above half of the gradient; !!: the expectation points uphill; error: it cannot be
computed. Last columns: the geometric mean over the costs of the root-mean-square error within a budget of
evaluations and backward passes, relative to the largest gradient that a cost of the same variance can
have; -: the budget is too small. Learned state is trained before, which no budget counts.
";

/// All estimators on one variable.
fn block(problem: &Problem, rows: &[&Row], budgets: &[usize]) -> String {
    let mut specs: Vec<String> = Vec::new();
    for row in rows {
        let spec = row.spec.to_string();
        if !specs.contains(&spec) {
            specs.push(spec);
        }
    }
    let mut columns = vec![specs.clone()];
    let mut heads = vec![String::new()];
    let mut exact = vec!["exact".to_owned()];
    for objective in objectives(problem) {
        let find = |spec: &String| {
            let mut of_cell = rows.iter();
            of_cell.find(|row| row.objective == objective.id && row.spec.to_string() == *spec)
        };
        heads.push(objective.id.to_owned());
        let first = rows.iter().find(|row| row.objective == objective.id);
        exact.push(first.map_or_else(String::new, |row| exact_gradient(row)));
        columns.push(
            specs
                .iter()
                .map(|spec| find(spec).map_or_else(String::new, |row| cell(row)))
                .collect(),
        );
    }
    for (index, budget) in budgets.iter().enumerate() {
        heads.push(format!("<= {budget}"));
        exact.push(String::new());
        let standings = standings(rows, |row| row.budgets[index].as_ref());
        let error = |spec: &String| {
            let found = standings.iter().find(|one| one.spec.to_string() == *spec);
            found.map_or_else(|| "-".to_owned(), |one| format!("{:.3}", one.error))
        };
        columns.push(specs.iter().map(error).collect());
    }
    let by = match problem.means.len() {
        1 => "the mean",
        _ if problem.kind() == straightflow::distribution::FamilyKind::Categorical => "the logits",
        _ => "the means",
    };
    let mut text = format!("{}, gradients by {by}\n", problem.label);
    let widths: Vec<usize> = columns
        .iter()
        .zip(heads.iter().zip(&exact))
        .map(|(column, (head, exact))| {
            let cells = column.iter().chain([head, exact]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut line = |cells: Vec<&String>| {
        let mut line = String::new();
        for (index, (cell, width)) in cells.into_iter().zip(&widths).enumerate() {
            let width = *width;
            let _ = match index {
                0 => write!(line, "{cell:width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    };
    line(heads.iter().collect());
    line(exact.iter().collect());
    for index in 0..specs.len() {
        line(columns.iter().map(|column| &column[index]).collect());
    }
    text
}

/// The exact gradient, or its norm.
fn exact_gradient(row: &Row) -> String {
    match row.exact.as_slice() {
        [one] => number(*one),
        several => number(several.iter().map(|g| g * g).sum::<f64>().sqrt()),
    }
}

/// Bias, standard deviation of one draw, and the mark of a failure.
fn cell(row: &Row) -> String {
    let Some(single) = &row.single else {
        return "error".to_owned();
    };
    let mark = match row.failure {
        Some(Failure::WrongSign) => "!!",
        Some(Failure::Bias) => "!",
        _ => "",
    };
    let std = single.std * (single.draws as f64).sqrt();
    format!("{}/{}{mark}", bias(single, row), number(std))
}

/// The bias, or 0 if it is within three standard errors. That of several coordinates is a norm.
fn bias(single: &Measurement, row: &Row) -> String {
    if single.bias.abs() <= 3.0 * single.bias_error + 1e-9 * row.scale {
        return "0".to_owned();
    }
    let signed = row.exact.len() == 1 && single.bias > 0.0;
    let sign = if signed { "+" } else { "" };
    format!("{sign}{}", number(single.bias))
}

/// Three significant digits, without needless zeros.
fn number(x: f64) -> String {
    if x.abs() < 5e-7 {
        return "0".to_owned();
    }
    let digits = (2 - x.abs().log10().floor() as i32).clamp(0, 7) as usize;
    let text = format!("{x:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A recommendation in one line.
fn sentence(recommendation: &Recommendation) -> String {
    let Recommendation { best, next, .. } = recommendation;
    let need = if recommendation.unbiased {
        "unbiased"
    } else {
        "any"
    };
    let (problem, objective) = &best.worst_at;
    let next = next.as_ref().map_or_else(String::new, |next| {
        format!(", the next is {} with {:.3}", next.spec, next.error)
    });
    let trained = if best.trained {
        " (trained before)"
    } else {
        ""
    };
    let failures = match best.failures {
        0 => "it fails on none".to_owned(),
        count => format!("it fails on {count}"),
    };
    format!(
        "{}, budget {}, {need}: {}{trained}: error {:.3} over {} costs{next}; {failures}, its worst is {:.2} on \
         {objective} of {problem}",
        recommendation.family, recommendation.budget, best.spec, best.error, best.cells, best.worst,
    )
}
