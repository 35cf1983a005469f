//! What to use, computed from the measured rows and from nothing else.

use serde::{Deserialize, Serialize};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::Spec;

use super::{Measurement, PROBLEMS, Problem, Row};

/// Relative errors below this count as this: nobody chooses by the third digit, and estimates without
/// any error would decide a geometric mean alone.
const FLOOR: f64 = 0.01;

/// How an estimator did on several cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The estimator.
    pub spec: Spec,
    /// Whether it says that its bias is none.
    pub unbiased: bool,
    /// Whether its state was trained on each cell before, which the price does not count.
    pub trained: bool,
    /// The evaluations of the cost and backward passes through it of one estimate; the most on any
    /// cell.
    pub price: usize,
    /// The geometric mean over the cells of the root-mean-square error, each relative to the largest
    /// gradient that a cost of the same variance can have, and at least 0.01.
    pub error: f64,
    /// The largest relative error of a cell.
    pub worst: f64,
    /// The variable and the cost of that cell.
    pub worst_at: (String, String),
    /// The cells in which the estimator fails.
    pub failures: usize,
    /// All cells.
    pub cells: usize,
}

/// The best estimator for a need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    /// The family.
    pub family: FamilyKind,
    /// How many variables a problem has; 0 in records that do not tell them apart.
    #[serde(default)]
    pub variables: usize,
    /// The ids of the problems that this rests on.
    #[serde(default)]
    pub problems: Vec<String>,
    /// The budget, in evaluations of the cost and backward passes through it.
    pub budget: usize,
    /// Whether only unbiased estimators were asked for.
    pub unbiased: bool,
    /// The best one.
    pub best: Standing,
    /// The next one, if there is one.
    pub next: Option<Standing>,
}

/// All estimators that have a measurement on every cell of some rows, the best first, and of equally
/// good ones the cheapest. `choose` says
/// which of a row's measurements counts.
///
/// An estimator that a budget does not buy on one of the variables is left out: an enumeration that
/// is affordable for one bit is no advice for ten.
pub fn standings<'a>(
    rows: &[&'a Row],
    choose: impl Fn(&'a Row) -> Option<&'a Measurement>,
) -> Vec<Standing> {
    let mut specs: Vec<&Spec> = Vec::new();
    for row in rows {
        if !specs.contains(&&row.estimator.spec) {
            specs.push(&row.estimator.spec);
        }
    }
    let of_spec = |spec: &Spec| -> Vec<&'a Row> {
        let rows = rows.iter().copied();
        rows.filter(|row| row.estimator.spec == *spec).collect()
    };
    let cells = specs.iter().map(|spec| of_spec(spec).len()).max();
    let all = specs.iter().map(|spec| of_spec(spec));
    let complete = all.filter(|rows| Some(rows.len()) == cells);
    let mut standings: Vec<Standing> = complete
        .filter_map(|rows| standing(&rows, &choose))
        .collect();
    standings.sort_by(|a, b| a.error.total_cmp(&b.error).then(a.price.cmp(&b.price)));
    standings
}

/// The standing of the rows of one estimator; `None` if one of them has no measurement.
fn standing<'a>(
    rows: &[&'a Row],
    choose: &impl Fn(&'a Row) -> Option<&'a Measurement>,
) -> Option<Standing> {
    let relative = |row: &'a Row| {
        let measurement = choose(row)?;
        let price = measurement.evaluations + measurement.gradients;
        Some(((measurement.rmse / row.scale).max(FLOOR), price, row))
    };
    let errors: Option<Vec<(f64, usize, &Row)>> = rows.iter().copied().map(relative).collect();
    let errors = errors?;
    let (worst, _, at) = *errors.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let logs: f64 = errors.iter().map(|(error, ..)| error.ln()).sum();
    Some(Standing {
        spec: at.estimator.spec.clone(),
        unbiased: at.estimator.unbiased,
        trained: at.trained,
        price: errors.iter().map(|(_, price, _)| *price).max()?,
        error: (logs / errors.len() as f64).exp(),
        worst,
        worst_at: (at.problem.clone(), at.objective.clone()),
        failures: rows.iter().filter(|row| row.failure.is_some()).count(),
        cells: rows.len(),
    })
}

/// How many variables the problem of a row has.
fn variables(row: &Row) -> usize {
    let problem = PROBLEMS.iter().find(|problem| problem.id == row.problem);
    problem.map_or(0, Problem::variables)
}

/// The rows of a family by the number of variables, the fewest first.
pub(super) fn by_size(rows: &[Row], family: FamilyKind) -> Vec<(usize, Vec<&Row>)> {
    let of_family = || rows.iter().filter(|row| row.family == family);
    let mut sizes: Vec<usize> = of_family().map(variables).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of_size = |size| of_family().filter(|row| variables(row) == size).collect();
    sizes
        .into_iter()
        .map(|size| (size, of_size(size)))
        .collect()
}

/// What to use for each family, number of variables, budget and need. One-bit problems say nothing
/// about ten bits, so those are not mixed.
pub fn recommendations(rows: &[Row], budgets: &[usize]) -> Vec<Recommendation> {
    let mut found = Vec::new();
    for family in FamilyKind::ALL {
        for (size, rows) in by_size(rows, *family) {
            for (index, budget) in budgets.iter().enumerate() {
                let best = |unbiased| recommend(&rows, size, index, *budget, unbiased);
                found.extend([false, true].into_iter().filter_map(best));
            }
        }
    }
    found
}

/// The estimator with the least error on some rows of one family, for a budget (with its number among
/// the rows' budgets) and a need; `None` if no estimator qualifies.
fn recommend(
    rows: &[&Row],
    variables: usize,
    index: usize,
    budget: usize,
    unbiased: bool,
) -> Option<Recommendation> {
    let mut problems: Vec<String> = rows.iter().map(|row| row.problem.clone()).collect();
    problems.dedup();
    let standings = standings(rows, |row| row.budgets[index].as_ref());
    // What says that it has no bias must also show none.
    let qualifies = |one: &Standing| one.unbiased && one.failures == 0;
    let mut qualified = standings
        .into_iter()
        .filter(|one| !unbiased || qualifies(one));
    Some(Recommendation {
        family: rows.first()?.family,
        variables,
        problems,
        budget,
        unbiased,
        best: qualified.next()?,
        next: qualified.next(),
    })
}
