//! A comparison in words.

use std::fmt;

use super::{Comparison, Measured, ROUNDING, Row, Source};

/// A squared bias of this many standard errors is one.
const SEEN: f64 = 3.0;

/// Why these two rows: the best, and the best of those that say that they have no bias.
pub(super) fn reason(
    rows: &[Row],
    [best, best_unbiased]: [Option<usize>; 2],
    norm: f64,
    horizon: usize,
) -> String {
    let measured = |i: usize| rows[i].result.as_ref().ok().map(|one| (&rows[i], one));
    let Some((row, one)) = best.and_then(measured) else {
        return "None of the estimators works on this model within the budget.".to_owned();
    };
    let share = |x: f64| match norm > 0.0 {
        true => format!("{} of the gradient", number(x / norm)),
        false => number(x),
    };
    if norm > 0.0 && one.lasting <= ROUNDING * norm {
        return exact(rows, row, norm);
    }
    let mut text = format!(
        "Averaged over {horizon} steps `{}` has the smallest error, {}",
        row.spec,
        share(one.lasting)
    );
    if row.unbiased {
        return text + ", and no bias.";
    }
    text += &match has_bias(one, norm) {
        true => format!(", with a bias of {}", share(one.bias)),
        false => ", and no bias that was seen".to_owned(),
    };
    match best_unbiased.and_then(measured) {
        Some((row, other)) => {
            let times = number(other.lasting / one.lasting);
            text += &format!(
                "; of those without a bias `{}` is the best, with {times} times that error.",
                row.spec
            );
        }
        None => text += "; no unbiased one was measured.",
    }
    text
}

/// The exact methods, all that have the price of the given one.
fn exact(rows: &[Row], cheapest: &Row, norm: f64) -> String {
    let price = |row: &Row| row.evaluations + row.gradients;
    let is_exact = |row: &&Row| {
        let one = row.result.as_ref();
        one.is_ok_and(|one| one.lasting <= ROUNDING * norm) && price(row) == price(cheapest)
    };
    let names = rows.iter().filter(is_exact);
    let names: Vec<String> = names.map(|row| format!("`{}`", row.spec)).collect();
    match names.as_slice() {
        [several @ .., last] if !several.is_empty() => {
            let several = several.join(", ");
            format!("{several} and {last} are exact here, at the lowest price.")
        }
        _ => format!("`{}` is exact here, at the lowest price.", cheapest.spec),
    }
}

fn has_bias(one: &Measured, norm: f64) -> bool {
    let square = one.bias * one.bias;
    let error = (one.bias + one.bias_error).powi(2) - square;
    square > SEEN * error && one.bias > ROUNDING * norm
}

/// Three significant digits.
fn number(x: f64) -> String {
    let magnitude = match x == 0.0 {
        true => 0,
        false => x.abs().log10().floor() as i32,
    };
    match magnitude {
        -4..=4 => format!("{x:.*}", (2 - magnitude).max(0) as usize),
        _ => format!("{x:.2e}"),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let norm = number(self.norm);
        match &self.truth {
            Source::Enumeration { states } => {
                writeln!(
                    f,
                    "norm of the exact gradient: {norm} (by enumeration of {states} states)"
                )?;
            }
            Source::Reference {
                spec,
                replicates,
                error,
            } => writeln!(
                f,
                "norm of the gradient: {norm} +- {} (the mean of {replicates} estimates by {spec})",
                number(*error)
            )?,
        }
        let head = [
            "estimator",
            "bias",
            "+-",
            "sd",
            "error",
            "error of mean",
            "f",
            "df",
            "time",
        ];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        lines.extend(self.rows.iter().map(|row| cells(row, self.norm)));
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(String::len).max().unwrap_or(0)
        };
        let failed = |line: &Vec<String>| line.len() < head.len();
        for line in &lines {
            write!(f, "{:1$}", line[0], width(0))?;
            for (column, cell) in line.iter().enumerate().skip(1) {
                match failed(line) {
                    true => write!(f, "  {cell}")?,
                    false => write!(f, "  {cell:>0$}", numbers(&lines, column))?,
                }
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "bias: 0 where it cannot be told from noise; +-: its standard error; sd, error, time: of one estimate; error of mean: error of the mean of {} estimates, as in a long training run; \
             f, df: evaluations and backward passes of one estimate, at most {} together; {} estimates of each method.",
            self.budget.horizon, self.budget.evaluations, self.budget.replicates
        )?;
        f.write_str(&self.reason)
    }
}

/// The width of a column without the lines of failures.
fn numbers(lines: &[Vec<String>], column: usize) -> usize {
    let complete = lines.iter().filter(|line| line.len() == lines[0].len());
    let widths = complete.map(|line| line[column].len());
    widths.max().unwrap_or(0)
}

fn cells(row: &Row, norm: f64) -> Vec<String> {
    let spec = row.spec.to_string();
    match &row.result {
        Err(error) => vec![spec, error.clone()],
        Ok(one) => vec![
            spec,
            match has_bias(one, norm) {
                true => number(one.bias),
                false => "0".to_owned(),
            },
            number(one.bias_error),
            number(one.std),
            number(one.error),
            number(one.lasting),
            row.evaluations.to_string(),
            row.gradients.to_string(),
            time(one.seconds),
        ],
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{} us", number(s * 1e6)),
        s if s < 1.0 => format!("{:.2} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
