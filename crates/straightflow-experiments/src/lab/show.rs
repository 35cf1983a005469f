//! What is said about the measurements: a table for each variable, what to use, and every number.

use std::collections::HashMap;

use straightflow_report::page::{Column, Format, Label, Page, Table};

use super::{
    Failure, Measurement, Objective, PROBLEMS, Problem, Recommendation, Row, Summary, objectives,
    plots, recommendations, standings,
};
use crate::experiment::place;

pub(super) fn page(summary: &Summary) -> Page {
    let overviews = PROBLEMS
        .iter()
        .filter_map(|problem| overview(problem, summary));
    let details = Table::split(
        &measured(summary),
        &summary.rows,
        |row| format!("{}, {}", row.problem, row.objective),
        |row| Label::new(&row.estimator.label, row.estimator.spec.to_string()),
    );
    Page::new(
        "The laboratory",
        "Every estimator against the exact gradient, computed by enumeration, for each variable and each \
         test cost. The recommendations come from the same numbers. The error is the root-mean-square error of one \
         estimate, divided by a scale that depends only on the problem (the largest gradient any cost with the same \
         variance could have); the tables show its geometric mean over the test costs, and errors below 0.01, exact or \
         nearly so, count as 0.01. A budget is the number of evaluations of the cost plus backward passes through it. In one estimate noise counts as much as bias. Over a long training run noise \
         averages out and bias does not, so what is best here need not be best in Table 2.",
    )
    .at(place::LAB)
    .tables(advice(summary))
    .tables(costs(summary))
    .tables(overviews)
    .tables(details.into_iter().map(folded))
    .figures(plots::draw(summary))
    .remarks([
        "The column of a cost has bias and standard deviation of the estimate with the fewest draws, the latter times \
         the square root of the number of draws. !: beyond three standard errors, the bias exceeds half of the gradient; \
         !!: likewise, the expected estimate points uphill; error: it cannot be computed. Learned state is trained beforehand, which the budget does \
         not include. REBAR is unbiased only on costs that are continuous between the values, so not on a step.",
    ])
}

/// A long table, together with the others of its variable.
fn folded(table: Table) -> Table {
    let caption = table.caption.as_deref().unwrap_or_default();
    let problem = caption.split(", ").next().unwrap_or_default();
    let known = PROBLEMS.iter().find(|known| known.id == problem);
    let chapter = known.map_or(problem, |known| known.label);
    let chapter = format!("Every number: {chapter}");
    table.detail().chapter(chapter)
}

/// An estimator on all costs of a variable.
struct Line {
    spec: String,
    label: String,
    /// By cost.
    cells: Vec<String>,
    /// By budget.
    errors: Vec<Option<f64>>,
}

fn overview(problem: &Problem, summary: &Summary) -> Option<Table> {
    let rows = summary.rows.iter().filter(|row| row.problem == problem.id);
    let rows: Vec<&Row> = rows.collect();
    let first = rows.first()?;
    let mut specs: Vec<(String, String)> = Vec::new();
    for row in &rows {
        let spec = row.estimator.spec.to_string();
        if specs.iter().all(|(known, _)| *known != spec) {
            specs.push((spec, row.estimator.label.clone()));
        }
    }
    let by_place: HashMap<(String, &str), &Row> = rows
        .iter()
        .map(|row| {
            (
                (row.estimator.spec.to_string(), row.objective.as_str()),
                *row,
            )
        })
        .collect();
    let costs: Vec<&str> = objectives(problem).iter().map(|one| one.id).collect();
    let exact = costs.iter().map(|cost| {
        let mut of_cost = rows.iter().filter(|row| row.objective == *cost);
        of_cost
            .next()
            .map_or_else(String::new, |row| exact_gradient(row))
    });
    let mut lines = vec![Line {
        spec: "exact".to_owned(),
        label: "exact".to_owned(),
        cells: exact.collect(),
        errors: vec![None; summary.budgets.len()],
    }];
    let standings: Vec<_> = (0..first.budgets.len())
        .map(|index| standings(&rows, |row| row.budgets[index].as_ref()))
        .collect();
    lines.extend(specs.into_iter().map(|(spec, label)| {
        Line {
            cells: costs
                .iter()
                .map(|cost| {
                    by_place
                        .get(&(spec.clone(), *cost))
                        .map_or_else(String::new, |row| cell(row))
                })
                .collect(),
            errors: standings
                .iter()
                .map(|one| {
                    one.iter()
                        .find(|one| one.spec.to_string() == spec)
                        .map(|one| one.error)
                })
                .collect(),
            spec,
            label,
        }
    }));

    let mut columns: Vec<Column<Line>> = costs
        .iter()
        .enumerate()
        .map(|(i, cost)| {
            Column::new(*cost, *cost, Format::Plain, move |one: &Line| {
                one.cells[i].clone()
            })
        })
        .collect();
    for (i, budget) in summary.budgets.iter().enumerate() {
        let error = Column::new(
            format!("error_within_{budget}"),
            format!("<= {budget}"),
            Format::Decimals(3),
            move |one: &Line| one.errors[i],
        );
        // The columns of the other budgets need no words of their own.
        let about = match i {
            0 => {
                "in the overviews, the error with at most this many evaluations and backward passes, as a geometric \
                  mean over the costs; a dash where that is too few"
            }
            _ => "",
        };
        columns.push(error.group("error").about(about));
    }
    let by = match problem.means.len() {
        1 => "the mean",
        _ if problem.family.is_vector() => "the logits",
        _ => "the means",
    };
    let table = Table::new(&columns, &lines, |one| Label::new(&one.label, &one.spec));
    let table = table.look(
        "Each cell has the bias and the standard deviation of one draw, with a slash between them; a bias within three \
         standard errors is shown as 0. Where estimates have heavy tails, a few hundred replicates are too few: an unbiased \
         method can look biased, and an error can grow with the budget. !: beyond three standard errors, the bias exceeds half of the gradient \
         (or of a hundredth of the largest possible one, if that is more); !!: likewise, the expected estimate points uphill. The last columns are the error within each budget, from fewer replicates.",
    );
    Some(table.with_caption(format!("{}, gradients with respect to {by}", problem.label)))
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

/// What to use, if there is something to choose from.
fn advice(summary: &Summary) -> Option<Table> {
    const BEST: &str = "best";
    const NEXT: &str = "second best";
    let error = Format::Significant(3);
    let columns = [
        Column::new(
            "budget",
            "budget",
            Format::Significant(4),
            |one: &Recommendation| one.budget,
        )
        .about("evaluations plus backward passes allowed for one estimate"),
        Column::new(
            "unbiased",
            "bias allowed",
            Format::Plain,
            |one: &Recommendation| {
                if one.unbiased { "none" } else { "any" }
            },
        )
        .about("“none” admits only methods that are unbiased in theory and fail on none of the costs"),
        Column::new("best.spec", "use", Format::Plain, |one: &Recommendation| {
            one.best.spec.to_string()
        })
        .group(BEST),
        Column::new("best.error", "error", error, |one: &Recommendation| {
            one.best.error
        })
        .group(BEST),
        Column::new(
            "best.trained",
            "trained",
            Format::Plain,
            |one: &Recommendation| one.best.trained,
        )
        .group(BEST)
        .about("whether it has learned state, which was trained beforehand"),
        Column::new(
            "best.failures",
            "fails",
            Format::Plain,
            |one: &Recommendation| match one.best.failures {
                0 => "0".to_owned(),
                some => format!("{some} of {}", one.best.cells),
            },
        )
        .group(BEST)
        .about("on how many costs its bias, beyond three standard errors, exceeds half of the gradient or it points uphill"),
        Column::new("best.worst", "worst", error, |one: &Recommendation| {
            one.best.worst
        })
        .group(BEST)
        .about("its largest error on a single cost"),
        Column::new(
            "next.spec",
            "estimator",
            Format::Plain,
            |one: &Recommendation| one.next.as_ref().map(|next| next.spec.to_string()),
        )
        .group(NEXT),
        Column::new("next.error", "error", error, |one: &Recommendation| {
            one.next.as_ref().map(|next| next.error)
        })
        .group(NEXT),
        Column::new("problems", "based on", Format::Plain, rests_on)
            .about("the variables that were measured, and how many costs on each"),
    ];
    let label = |one: &Recommendation| {
        let variables = match one.variables {
            1 => "one variable".to_owned(),
            count => format!("{count} variables"),
        };
        Label::from(format!("{}, {variables}", one.family).as_str())
    };
    // Records of before do not tell problems of one variable from those of several; their rows do.
    let asked_for = |new: &Recommendation| {
        let mut asked = summary.recommendations.iter();
        asked.any(|one| {
            (one.family, one.budget, one.unbiased) == (new.family, new.budget, new.unbiased)
        })
    };
    let mut rows = recommendations(&summary.rows, &summary.budgets);
    rows.retain(asked_for);
    let table = Table::new(&columns, &rows, label).look(
        "Look at the number of variables first: what is best for one variable can be too expensive for ten. Then look at \
         “fails”: the smallest mean error does not help if yours is a cost on which the method fails.",
    );
    (!table.rows.is_empty()).then(|| table.with_caption("Recommendations"))
}

/// What the costs are.
fn costs(summary: &Summary) -> Option<Table> {
    let mut found: Vec<&Objective> = Vec::new();
    for row in &summary.rows {
        let problem = PROBLEMS.iter().find(|problem| problem.id == row.problem)?;
        let mut own = objectives(problem).iter();
        let objective = own.find(|one| one.id == row.objective)?;
        if found.iter().all(|known| known.id != objective.id) {
            found.push(objective);
        }
    }
    let formula = Column::new("formula", "f(s)", Format::Plain, |one: &&Objective| {
        one.formula
    });
    let table = Table::new(&[formula], &found, |one| one.id.into());
    let table = table.look(
        "What the names of the costs stand for: s is the variable, or a weighted sum of several, with mean m and \
         standard deviation sd.",
    );
    (!table.rows.is_empty()).then(|| table.with_caption("Test costs"))
}

/// What a recommendation rests on.
fn rests_on(one: &Recommendation) -> String {
    let labels: Vec<&str> = PROBLEMS
        .iter()
        .filter(|problem| one.problems.iter().any(|id| id == problem.id))
        .map(|problem| problem.label)
        .collect();
    let costs = one.best.cells / one.problems.len().max(1);
    format!("{}; {costs} costs", labels.join(", "))
}

/// Every number of a cost of a variable.
fn measured(summary: &Summary) -> Vec<Column<Row>> {
    const SINGLE: &str = "the estimate with the fewest draws";
    let significant = Format::Significant(3);
    fn of<T>(row: &Row, value: impl Fn(&Measurement) -> T) -> Option<T> {
        row.single.as_ref().map(value)
    }
    let mut columns = vec![
        Column::new("single.bias", "bias", significant, |row: &Row| of(row, |one| one.bias))
            .group(SINGLE)
            .about(
                "in the detail tables, the mean estimate minus the exact gradient, with the noise of the measurement; \
                 for several coordinates, the norm",
            ),
        Column::new("single.std", "sd", significant, |row: &Row| of(row, |one| one.std))
            .group(SINGLE)
            .about("standard deviation of one estimate; in the overviews, of one draw"),
        Column::new("single.evaluations", "f", significant, |row: &Row| {
            of(row, |one| one.evaluations)
        })
        .group(SINGLE)
        .about("evaluations of the cost for one estimate"),
        Column::new("single.gradients", "df", significant, |row: &Row| {
            of(row, |one| one.gradients)
        })
        .group(SINGLE)
        .about("backward passes through the cost for one estimate"),
    ];
    for (i, budget) in summary.budgets.iter().enumerate() {
        let rmse = Column::new(
            format!("budgets.{i}.rmse"),
            format!("rmse <= {budget}"),
            significant,
            move |row: &Row| row.budgets[i].as_ref().map(|one| one.rmse),
        );
        let about = match i {
            0 => {
                "in the detail tables, the root-mean-square error of the estimate with as many draws as the \
                  budget allows"
            }
            _ => "",
        };
        columns.push(rmse.about(about));
    }
    let failure = Column::new("failure", "failure", Format::Plain, |row: &Row| {
        row.failure.as_ref().map(|failure| match failure {
            Failure::WrongSign => "wrong sign",
            Failure::Bias => "bias",
            Failure::Error(_) => "error",
        })
    });
    columns.push(failure.about(
        "why the estimate fails on this cost: beyond three standard errors, a bias of more than half of the gradient or the \
         wrong sign; or an error",
    ));
    columns
}
