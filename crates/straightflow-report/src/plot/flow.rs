//! One step of the projected flow: samples, moved samples, the projected law.

use super::frame::{self, Frame, LINE, WIDTH};
use super::scale::{Axis, Scale};
use super::svg::{Anchor, Svg};

/// Three panels over a common axis: the samples of a law, the same samples after the move, which are
/// no integers any more, and the law of the family that is nearest to them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flow {
    /// The heading.
    pub title: String,
    /// What is to be seen, in a sentence or two: the caption of a report.
    pub caption: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// The hard samples.
    pub samples: Vec<f64>,
    /// Where each of the samples was moved to.
    pub moved: Vec<f64>,
    /// The values of the law that the samples are from, with their probabilities.
    pub law: Vec<(f64, f64)>,
    /// The values of the projected law with their probabilities.
    pub projected: Vec<(f64, f64)>,
}

const PANEL: f64 = 92.0;
/// Between the panels; lines from the samples to where they are moved cross the first gap.
const GAP: f64 = 34.0;
/// Probabilities below this are not worth a place on the axis.
const NEGLIGIBLE: f64 = 1e-3;

impl Flow {
    /// The plot as a file of its own.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let top = frame::heading(&mut svg, &self.title) + 18.0;
        let samples = shares(&self.samples, |x| x.round());
        let moved = shares(&self.moved, |x| (x * BINS).floor() / BINS + 0.5 / BINS);
        let x = self.axis();
        let panel = |index: usize, masses: &[&[(f64, f64)]]| {
            let top = top + index as f64 * (PANEL + GAP);
            let heights = masses
                .iter()
                .flat_map(|masses| masses.iter().map(|(_, p)| *p));
            Frame {
                left: 48.0,
                right: WIDTH - 12.0,
                top,
                bottom: top + PANEL,
                x: x.clone(),
                y: Scale::fit(Axis::Linear, heights.chain([0.0]), false),
            }
        };

        let first = panel(0, &[&samples]);
        first.y_axis(&mut svg, "share of the samples, probability");
        bars(&mut svg, &first, &samples, 0.36, "bar s0 f0");
        first.x_axis(&mut svg, "", false);
        mean(&mut svg, &first, average(&self.samples));
        name(&mut svg, &first, &["samples"]);

        let second = panel(1, &[&moved]);
        self.moves(&mut svg, &first, &second);
        second.y_axis(&mut svg, "");
        bars(&mut svg, &second, &moved, 0.5 / BINS, "bar s1 f1");
        self.rug(&mut svg, &second);
        second.x_axis(&mut svg, "", false);
        mean(&mut svg, &second, average(&self.moved));
        name(&mut svg, &second, &["moved samples", "in bins of ¼"]);

        let third = panel(2, &[&self.law, &self.projected]);
        third.y_axis(&mut svg, "");
        bars(&mut svg, &third, &self.projected, 0.36, "bar s2 f2");
        bars(&mut svg, &third, &self.law, 0.36, "outline axis");
        third.x_axis(&mut svg, &self.x_label, true);
        mean(&mut svg, &third, expectation(&self.projected));
        name(&mut svg, &third, &["projected law", "outlines: before"]);

        frame::document(third.bottom + 46.0, &self.title, &self.caption, svg)
    }

    fn axis(&self) -> Scale {
        let likely = |masses: &[(f64, f64)]| -> Vec<f64> {
            let likely = masses.iter().filter(|(_, p)| *p > NEGLIGIBLE);
            likely.map(|(x, _)| *x).collect()
        };
        let values = self.samples.iter().chain(&self.moved).copied();
        let values: Vec<f64> = values
            .chain(likely(&self.law))
            .chain(likely(&self.projected))
            .filter(|value| value.is_finite())
            .collect();
        Scale::fit(
            Axis::Linear,
            values.iter().flat_map(|value| [value - 0.6, value + 0.6]),
            true,
        )
    }

    /// One line for each different move, from the bar of a value to where its samples went.
    fn moves(&self, svg: &mut Svg, from: &Frame, to: &Frame) {
        let mut moves: Vec<(f64, f64)> = self
            .samples
            .iter()
            .copied()
            .zip(self.moved.iter().copied())
            .collect();
        moves.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        moves.dedup();
        for (before, after) in moves {
            if let (Some(before), Some(after)) = (from.at_x(before), to.at_x(after)) {
                svg.line(
                    "leader s1",
                    (before, from.bottom + 5.0),
                    (after, to.top + 2.0),
                );
            }
        }
    }

    fn rug(&self, svg: &mut Svg, frame: &Frame) {
        let mut places: Vec<f64> = self.moved.iter().filter_map(|x| frame.at_x(*x)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup_by_key(|x| (*x * 2.0).round());
        for x in places {
            svg.line("rug s1", (x, frame.bottom), (x, frame.bottom + 8.0));
        }
    }
}

/// Moved samples are counted in quarters of a unit.
const BINS: f64 = 4.0;

/// The share of the values that fall on the same place.
fn shares(values: &[f64], place: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let mut places: Vec<f64> = finite.map(place).collect();
    places.sort_by(f64::total_cmp);
    let share = 1.0 / places.len() as f64;
    let groups = places.chunk_by(|a, b| a == b);
    groups
        .map(|group| (group[0], share * group.len() as f64))
        .collect()
}

fn bars(svg: &mut Svg, frame: &Frame, masses: &[(f64, f64)], half: f64, class: &str) {
    for (x, p) in masses {
        if *p <= NEGLIGIBLE {
            continue;
        }
        let corners = (frame.at((x - half, *p)), frame.at_x(x + half));
        if let (Some((left, top)), Some(right)) = corners {
            svg.rect(class, (left, top), (right - left, frame.bottom - top));
        }
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn expectation(masses: &[(f64, f64)]) -> f64 {
    let total: f64 = masses.iter().map(|(_, p)| p).sum();
    masses.iter().map(|(x, p)| x * p).sum::<f64>() / total
}

/// What a panel shows, in its upper right corner: there the laws of counts have thin tails.
fn name(svg: &mut Svg, frame: &Frame, lines: &[&str]) {
    for (index, line) in lines.iter().enumerate() {
        let class = if index == 0 {
            "halo"
        } else {
            "muted small halo"
        };
        let y = frame.top + 9.0 + LINE * index as f64;
        svg.text(class, (frame.right, y), Anchor::End, line);
    }
}

fn mean(svg: &mut Svg, frame: &Frame, value: f64) {
    let Some(x) = frame.at_x(value) else { return };
    svg.line("reference", (x, frame.top - 2.0), (x, frame.bottom));
    let label = format!("mean {value:.2}");
    svg.text(
        "small halo",
        (x + 5.0, frame.top + 9.0),
        Anchor::Start,
        &label,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_count_equal_places() {
        let shares = shares(&[3.0, 1.0, 3.0, 3.0, f64::NAN], |x| x);
        assert_eq!(shares, [(1.0, 0.25), (3.0, 0.75)]);
    }

    #[test]
    fn the_mean_of_a_cut_law_is_normalised() {
        assert_eq!(expectation(&[(0.0, 0.2), (2.0, 0.2)]), 1.0);
    }
}
