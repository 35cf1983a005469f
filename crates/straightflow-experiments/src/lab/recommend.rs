//! What to use, computed from the measured rows and from nothing else.

use serde::{Deserialize, Serialize};
use straightflow::distribution::FamilyKind;
use straightflow::estimator::Spec;

use super::{Measurement, Row};

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

/// The estimator with the least error for a family, a budget (with its number among the rows'
/// budgets) and a need; `None` if no estimator qualifies.
pub fn recommend(
    rows: &[Row],
    family: FamilyKind,
    index: usize,
    budget: usize,
    unbiased: bool,
) -> Option<Recommendation> {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.family == family).collect();
    let standings = standings(&rows, |row| row.budgets[index].as_ref());
    // What says that it has no bias must also show none.
    let qualifies = |one: &Standing| one.unbiased && one.failures == 0;
    let mut qualified = standings
        .into_iter()
        .filter(|one| !unbiased || qualifies(one));
    Some(Recommendation {
        family,
        budget,
        unbiased,
        best: qualified.next()?,
        next: qualified.next(),
    })
}
