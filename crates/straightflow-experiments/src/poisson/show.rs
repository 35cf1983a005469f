//! What is said about the game: the table beside the paper's, and how to read it.

use straightflow_report::page::{Column, Finding, Format, Label, Page, Table, Value};

use super::config::{DEFAULT_ROWS, Settings};
use super::discriminator::GameObjective;
use super::game::FLOOR;
use super::summary::{Summary, SummaryRow};
use crate::experiment::place;

pub(super) fn page(summary: &Summary) -> Page {
    let table = Table::new(&columns(summary.seeds), &summary.rows, |row| {
        Label::new(label(row), &row.spec)
    });
    // Records of before say it in other words.
    let found = summary.find();
    let (look, remarks) = match summary.objective {
        // Where the discriminator is saturated, small spreads say nothing about estimators.
        GameObjective::Literal => (
            "Look at the column “mean”: with the objective as printed the rates end away from that of the data.",
            vec![found],
        ),
        GameObjective::LogLoss if summary.gaps().is_some() => (
            "Look at the column “sd”: the rate oscillates little with pWGF, and just as little with \
             straight-through when its steps have the same length near the true rate (matched).",
            [vec![found], controls(&summary.rows)].concat(),
        ),
        GameObjective::LogLoss => (
            "Look at the column “settled”: how many games find the rate of the data.",
            Vec::new(),
        ),
    };
    Page::new(
        title(summary),
        "A generator with one parameter, the rate of a Poisson variable, plays against a discriminator \
         that learns to tell its samples from those of the data. Every row is the same game with a \
         different estimator of the generator's gradient.",
    )
    .lead(lead(summary))
    .at(place::POISSON)
    .findings(finding(summary))
    .table(table.look(look))
    .remarks(floored(summary))
    .remarks(remarks)
}

/// The name of a row; records of before have other ones.
fn label(row: &SummaryRow) -> &str {
    let known = DEFAULT_ROWS.iter().find(|(id, _)| *id == row.id);
    known.map_or(&row.label, |(_, label)| label)
}

/// The experiment, and what sets this run apart from that of the paper's table.
fn title(summary: &Summary) -> String {
    let paper = Settings::default();
    let mut apart = Vec::new();
    if summary.rate != paper.rate {
        apart.push(format!("a rate of {}", summary.rate));
    }
    if summary.init != paper.init {
        apart.push(format!("started at {}", summary.init));
    }
    if summary.data != paper.data {
        apart.push(format!("a fixed data set of {}", summary.data));
    }
    if summary.objective != paper.objective {
        apart.push("the objective as printed".to_owned());
    }
    let plain = |row: &&SummaryRow| !row.is_matched();
    if let Some(row) = summary.rows.iter().find(plain)
        && row.learning_rate != paper.learning_rate
    {
        apart.push(format!("learning rate {}", row.learning_rate));
    }
    match apart.as_slice() {
        [] => "The Poisson game: Table 1".to_owned(),
        apart => format!("The Poisson game: {}", apart.join(", ")),
    }
}

/// What the paper's Table 1 measures.
fn finding(summary: &Summary) -> Option<Finding> {
    let (gap, matched) = summary.gaps()?;
    let paper = summary.row("pwgf:preset=paper")?;
    let reproduces = paper.paper_std.is_some() && summary.explained_by_step(gap, matched);
    reproduces.then(|| Finding {
        about: "Table 1",
        place: 1,
        weight: summary.seeds as f64,
        text: format!(
            "The pattern of Table 1 can be reproduced, but what it measures is the size of the steps. The paper states no \
             learning rate; with the one we picked to bring straight-through close to its row, straight-through oscillates \
             {gap:.1} times as much as the paper's pWGF. When straight-through takes steps as short as pWGF's, it \
             oscillates {matched:.2} times as much as pWGF."
        ),
    })
}

fn columns(seeds: usize) -> Vec<Column<SummaryRow>> {
    const OURS: &str = "this run";
    const PAPER: &str = "Table 1";
    let number = |key: &str, heading: &str, value: fn(&SummaryRow) -> f64| {
        Column::new(key, heading, Format::Decimals(4), value).group(OURS)
    };
    let over_seeds = |key: &str, heading: &str, value: fn(&SummaryRow) -> f64| {
        let value = move |row: &SummaryRow| (seeds > 1).then(|| value(row));
        Column::new(key, heading, Format::Decimals(4), value).group(OURS)
    };
    let settle = move |row: &SummaryRow| match row.settled == seeds {
        true => Value::from(row.settle),
        false => Value::from(format!("{} of {seeds}", row.settled)),
    };
    vec![
        number("learning_rate", "lr", |row| row.learning_rate)
            .group("")
            .about("the learning rate of the generator"),
        number("mean", "mean", |row| row.mean)
            .about("the rate, averaged over the last part of the game and over seeds")
            .paper(PAPER, |row| row.paper_mean),
        number("time_std", "sd", |row| row.time_std)
            .about(
                "standard deviation of the rate over the last part of a game, averaged over seeds; the paper \
                 does not say over what it takes its own",
            )
            .paper(PAPER, |row| row.paper_std),
        over_seeds("time_std_error", "s.e. of sd", |row| row.time_std_error)
            .about("the standard error of that average; a dash for one seed"),
        over_seeds("seed_std", "sd over seeds", |row| row.seed_std)
            .about("standard deviation of the last rate over seeds; a dash for one seed"),
        number("rmse", "rms error", |row| row.rmse)
            .about("root of the mean squared distance to the rate of the data"),
        Column::new("settle", "settled", Format::Decimals(0), settle)
            .group(OURS)
            .about(
                "the iteration, not the epoch, after which the rate stays near that of the data, averaged over games; if \
                 some never get there, how many do",
            ),
    ]
}

fn lead(summary: &Summary) -> String {
    let data = match summary.data {
        0 => "fresh samples at every step".to_owned(),
        size => format!("a fixed data set of {size} for each seed"),
    };
    let objective = match summary.objective {
        GameObjective::LogLoss => "",
        GameObjective::Literal => ", with the objective as printed",
    };
    let seeds = match summary.seeds {
        1 => "One game".to_owned(),
        seeds => format!("{seeds} games"),
    };
    format!(
        "Data from Pois({}); the generator starts at rate {}. {seeds} of {} epochs, {data}{objective}. Mean and \
         deviations are over the last {} epochs; a game has settled when it stays within {:.2} of the true rate, a \
         quarter of the standard deviation of the data.",
        summary.rate, summary.init, summary.epochs, summary.tail, summary.tolerance,
    )
}

fn floored(summary: &Summary) -> Option<String> {
    let held = summary.rows.iter().filter(|row| row.floored > 0);
    let held: Vec<String> = held
        .map(|row| format!("“{}”, in {} steps over all games", label(row), row.floored))
        .collect();
    let floor = FLOOR * summary.rate;
    (!held.is_empty()).then(|| {
        format!(
            "A rate cannot be negative, so it is kept at or above {floor}. That limit was reached only by {}.",
            held.join(", and by ")
        )
    })
}

/// Rows without numbers in the paper are controls: they tell whether a small spread is the method's or
/// comes from elsewhere.
fn controls(rows: &[SummaryRow]) -> Vec<String> {
    /// Standard deviations that differ by less are called alike.
    const ALIKE: f64 = 1.5;
    let (paper, controls): (Vec<&SummaryRow>, Vec<&SummaryRow>) =
        rows.iter().partition(|row| row.paper_std.is_some());
    let least = paper
        .iter()
        .min_by(|a, b| a.time_std.total_cmp(&b.time_std));
    let (Some(least), false) = (least, controls.is_empty()) else {
        return Vec::new();
    };
    let alike: Vec<String> = controls
        .iter()
        .filter(|row| row.time_std <= ALIKE * least.time_std)
        .map(|row| match row.time_std <= least.time_std {
            true => format!("“{}”, at {:.4}, is no larger", row.label, row.time_std),
            false => {
                let (label, std) = (&row.label, row.time_std);
                format!("“{label}”, at {std:.4}, is within a factor of {ALIKE} of it")
            }
        })
        .collect();
    let found = match alike.as_slice() {
        [] => format!("No control row comes within a factor of {ALIKE} of it."),
        alike => format!(
            "Among the controls, {}: a spread this small is not special to that method.",
            alike.join(", and ")
        ),
    };
    vec![
        "Rows without a number from the paper are controls. The exact gradient has no sampling noise, so its \
         spread is that of the game itself. The row marked “matched” takes steps as \
         short as those of pWGF near the true rate, and the one with unit gain weights samples as pWGF does but takes steps \
         as long as those of the others; together they separate how samples are weighted from how long the steps are."
            .to_owned(),
        format!(
            "Of the paper's rows, {} has the smallest standard deviation over time, {:.4}. {found}",
            label(least),
            least.time_std
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, time_std: f64, paper_std: Option<f64>) -> SummaryRow {
        SummaryRow {
            id: label.to_owned(),
            label: label.to_owned(),
            spec: label.to_owned(),
            learning_rate: 2.5,
            mean: 5.0,
            time_std,
            time_std_error: 0.0,
            seed_std: 0.1,
            rmse: 0.1,
            settle: 90.0,
            settled: 2,
            floored: 0,
            openness: 1.0,
            paper_mean: paper_std.map(|_| 5.1),
            paper_std,
        }
    }

    fn rows(control: f64) -> [SummaryRow; 3] {
        [
            row("pWGF", 0.01, Some(0.013)),
            row("ST", 0.16, Some(0.161)),
            row("ST, matched", control, None),
        ]
    }

    #[test]
    fn titles_say_what_sets_a_run_apart() {
        let paper = Settings::default();
        let mut summary = Summary {
            experiment: "poisson".to_owned(),
            rate: paper.rate,
            init: paper.init,
            parametrisation: paper.parametrisation,
            objective: paper.objective,
            seeds: 2,
            epochs: 1,
            tail: 1,
            data: paper.data,
            tolerance: 0.5,
            paper_gain: 0.1,
            rows: rows(0.1).to_vec(),
            finding: String::new(),
        };
        assert_eq!(title(&summary), "The Poisson game: Table 1");
        summary.init = 8.0;
        summary.objective = GameObjective::Literal;
        summary.rows[0].learning_rate = 3.0;
        let apart = "The Poisson game: started at 8, the objective as printed, learning rate 3";
        assert_eq!(title(&summary), apart);
    }

    #[test]
    fn the_remark_on_controls_follows_the_rows() {
        let remark = |control: f64| controls(&rows(control)).pop().expect("a remark");
        assert!(remark(0.012).contains("pWGF has the smallest"));
        assert!(
            remark(0.012).contains("“ST, matched”, at 0.0120, is within a factor of 1.5 of it")
        );
        assert!(remark(0.009).contains("“ST, matched”, at 0.0090, is no larger"));
        assert!(remark(0.1).contains("No control row"));
        assert!(controls(&[]).is_empty());
    }

    #[test]
    fn the_paper_s_numbers_stand_beside_ours() {
        let table = Table::new(&columns(2), &rows(0.1), |row| row.label.as_str().into());
        let text = table.text();
        let line = text
            .lines()
            .find(|line| line.starts_with("ST "))
            .expect("a row");
        let numbers: Vec<&str> = line.split_whitespace().skip(1).collect();
        let expected = [
            "2.5000",
            "5.0000",
            "0.1600",
            "0.0000",
            "0.1000",
            "0.1000",
            "90",
            "5.1000",
            "0.1610",
            "−0.1000",
            "−0.0010",
        ];
        assert_eq!(numbers, expected, "{text}");
    }
}
