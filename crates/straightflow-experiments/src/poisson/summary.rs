//! From the games to the table and to what its control rows show.

use serde::{Deserialize, Serialize};

use super::cells::Cell;
use super::config::{Config, MATCHED, Parametrisation, paper_gain};
use super::discriminator::GameObjective;
use super::game::Game;

/// The paper's Table 1: the row that we put beside each of its lines, mean and standard deviation.
///
/// The paper does not say whether its REINFORCE has a baseline. Ours without one oscillates more
/// than twice as much as the table says, so its line stands beside the one with a baseline.
const PAPER: [(&str, f64, f64); 4] = [
    ("pwgf:preset=paper", 5.0076, 0.013),
    ("straight-through", 5.1049, 0.161),
    ("muprop", 5.0196, 0.159),
    ("reinforce:baseline=loo", 4.9452, 0.173),
];

/// Oscillations that differ by less are no gap.
const GAP: f64 = 6.0;

/// The results of a run: no times, no paths, nothing of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// `poisson`.
    pub experiment: String,
    /// The rate of the data.
    pub rate: f64,
    /// The generator's first rate.
    pub init: f64,
    /// The generator's parameter.
    pub parametrisation: Parametrisation,
    /// What the discriminator minimised.
    pub objective: GameObjective,
    /// The number of seeds.
    pub seeds: usize,
    /// The number of epochs.
    pub epochs: usize,
    /// The number of epochs at the end over which the statistics are taken.
    pub tail: usize,
    /// The size of the data set, 0 for fresh data.
    pub data: usize,
    /// How far from the rate of the data a game counts as settled.
    pub tolerance: f64,
    /// `2 eps M`, the gain of the paper's raw gradient at the rate of the data.
    pub paper_gain: f64,
    /// One line for each estimator.
    pub rows: Vec<SummaryRow>,
    /// What the rows show, in a sentence.
    pub finding: String,
}

/// One line of the table. Means and deviations are over the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryRow {
    /// The row as it was asked for.
    pub id: String,
    /// The name in tables and plots.
    pub label: String,
    /// The estimator.
    pub spec: String,
    /// The learning rate of the generator.
    pub learning_rate: f64,
    /// The mean rate, over iterations and seeds.
    pub mean: f64,
    /// The standard deviation over iterations, averaged over seeds.
    pub time_std: f64,
    /// The standard error of that average.
    pub time_std_error: f64,
    /// The standard deviation of the last rate over seeds.
    pub seed_std: f64,
    /// The root of the mean squared distance to the rate of the data.
    pub rmse: f64,
    /// The last iteration out of tolerance, averaged over seeds.
    pub settle: f64,
    /// How many seeds ended within tolerance.
    pub settled: usize,
    /// How often the floor of the rate acted, over all seeds.
    pub floored: usize,
    /// `4 E w (1 - w)` of the last discriminator: 1 undecided, 0 saturated.
    pub openness: f64,
    /// The paper's mean, at its setting.
    pub paper_mean: Option<f64>,
    /// The paper's standard deviation, at its setting.
    pub paper_std: Option<f64>,
}

impl SummaryRow {
    /// Whether the learning rate was multiplied by the gain of the paper's gradient.
    pub fn is_matched(&self) -> bool {
        self.id.starts_with(MATCHED)
    }
}

impl Summary {
    /// Summarises the cells of a complete run, in the order of the configuration.
    pub fn new(config: &Config, cells: &[Cell]) -> Self {
        let rows = config.rows.iter().map(|row| {
            let cells = cells.iter().filter(|cell| cell.row == row.id);
            let games: Vec<&Game> = cells.flat_map(|cell| &cell.games).collect();
            let of =
                |f: &dyn Fn(&Game) -> f64| games.iter().map(|game| f(game)).collect::<Vec<_>>();
            let time_stds = of(&|game| game.time_std);
            let paper = PAPER
                .iter()
                .find(|(id, ..)| *id == row.id && config.rate == 5.0);
            SummaryRow {
                id: row.id.clone(),
                label: row.label.clone(),
                spec: row.spec.to_string(),
                learning_rate: row.learning_rate,
                mean: mean(&of(&|game| game.mean)),
                time_std: mean(&time_stds),
                time_std_error: deviation(&time_stds) / (games.len() as f64).sqrt(),
                seed_std: deviation(&of(&|game| game.last)),
                rmse: mean(&of(&|game| game.square_error)).sqrt(),
                settle: mean(&of(&|game| game.settle as f64)),
                settled: games
                    .iter()
                    .filter(|game| game.settle < config.length())
                    .count(),
                floored: games.iter().map(|game| game.floored).sum(),
                openness: mean(&of(&|game| game.openness)),
                paper_mean: paper.map(|(_, mean, _)| *mean),
                paper_std: paper.map(|(_, _, std)| *std),
            }
        });
        let mut summary = Self {
            experiment: "poisson".to_owned(),
            rate: config.rate,
            init: config.init,
            parametrisation: config.parametrisation,
            objective: config.objective,
            seeds: config.seeds,
            epochs: config.epochs,
            tail: config.tail,
            data: config.data,
            tolerance: config.tolerance(),
            paper_gain: paper_gain(config.rate),
            rows: rows.collect(),
            finding: String::new(),
        };
        summary.finding = summary.find();
        summary
    }

    /// The row of an id.
    pub fn row(&self, id: &str) -> Option<&SummaryRow> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// How many times the oscillation of one row is that of another; `None` if a row is missing or
    /// the other one does not oscillate.
    pub fn ratio(&self, id: &str, other: &str) -> Option<f64> {
        let ratio = self.row(id)?.time_std / self.row(other)?.time_std;
        ratio.is_finite().then_some(ratio)
    }

    /// How many times the oscillation of straight-through is that of the paper's pWGF, at the same
    /// learning rate and with steps of the same length.
    pub(super) fn gaps(&self) -> Option<(f64, f64)> {
        let gap = self.ratio("straight-through", "pwgf:preset=paper")?;
        let matched = self.ratio("matched:straight-through", "pwgf:preset=paper")?;
        Some((gap, matched))
    }

    /// Whether there is a gap, and steps of the same length close it.
    pub(super) fn explained_by_step(&self, gap: f64, matched: f64) -> bool {
        gap >= GAP && (0.6..=1.6).contains(&matched)
    }

    /// What the rows show.
    pub(super) fn find(&self) -> String {
        match self.objective {
            GameObjective::Literal => self.saturation(),
            GameObjective::LogLoss => self.controls(),
        }
    }

    /// What the paper's formula does as it is printed.
    fn saturation(&self) -> String {
        let means = self.rows.iter().map(|row| row.mean);
        let (low, high) = means.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| {
            (low.min(mean), high.max(mean))
        });
        let openness = mean(&self.rows.iter().map(|row| row.openness).collect::<Vec<_>>());
        let games = self.seeds * self.rows.len();
        let settled: usize = self.rows.iter().map(|row| row.settled).sum();
        format!(
            "With the objective as printed the mean rates end between {low:.2} and {high:.2}, and only \
             {settled} of {games} games end within {:.2} of {}. The discriminator's output w saturates: \
             4 w (1 − w), which is 1 for an undecided discriminator and 0 for a saturated one, averages \
             {openness:.2}, and a saturated discriminator passes on no gradient.",
            self.tolerance, self.rate,
        )
    }

    /// Whether the gap of the table survives the control rows.
    fn controls(&self) -> String {
        let Some((gap, matched)) = self.gaps() else {
            return "The rows that tell the size of a step from the quality of an estimator were not \
                    all run, or do not oscillate."
                .into();
        };
        let mut text = format!(
            "At the common learning rate straight-through oscillates {gap:.1} times as much as the \
             paper's pWGF. pWGF's gradient is only {:.3} times as long (its gain); with the learning \
             rate multiplied by that, straight-through oscillates {matched:.2} times as much.",
            self.paper_gain
        );
        if let Some(exact) = self.ratio("enumerate", "straight-through") {
            text += &format!(
                " The exact gradient, at the common rate, oscillates {exact:.2} times as much as \
                 straight-through."
            );
        }
        if let Some(noise) = self.ratio("pwgf:preset=paper,cv=off", "pwgf:preset=paper") {
            text += &format!(
                " Without its control variate pWGF oscillates {noise:.1} times as much as with it, for all its \
                 short steps; that part is noise."
            );
        }
        text += match (gap >= GAP, self.explained_by_step(gap, matched)) {
            (_, true) => {
                " So the gap between straight-through and pWGF comes from the size of the step."
            }
            (true, false) => " Here the size of the step does not explain the gap.",
            (false, _) => " The gap is smaller than in the paper's table.",
        };
        text
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation of a sample; 0 for a single value.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}
