//! What is paid against what it buys: one line for each method, the cheapest first.

use super::frame::{self, Frame, WIDTH};
use super::labels::width;
use super::scale::{Axis, Scale, short};
use super::svg::{Anchor, Svg};
use super::theme;

/// A labelled point of a [`Pareto`] plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidate {
    /// Stands beside the point.
    pub label: String,
    /// What is paid; less is better.
    pub price: f64,
    /// What it buys; less is better.
    pub error: f64,
    /// Points of one group have one colour and one shape.
    pub group: usize,
}

/// Points with a price and an error, both better when smaller. Each has a line of its own, so that its
/// label always stands beside it; lines of one price stand together. A dashed line follows the least
/// error for the price, and the points on it have bold labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pareto {
    /// The heading.
    pub title: String,
    /// What is to be seen, in a sentence or two: the caption of a report.
    pub caption: String,
    /// Above the prices, which stand on the left.
    pub price_label: String,
    /// Below the axis of the error.
    pub error_label: String,
    /// The scale of the error.
    pub error_axis: Axis,
    /// The points. One without a finite price and a place on the axis is not drawn.
    pub points: Vec<Candidate>,
    /// The names of the groups, for the legend; empty for none.
    pub groups: Vec<String>,
}

const ROW: f64 = 18.0;
/// Between lines of different prices.
const GAP: f64 = 9.0;
const LABEL: f64 = theme::TEXT;

impl Pareto {
    /// The plot as a file of its own.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let top = frame::heading(&mut svg, &self.title);
        let top = self.legend(&mut svg, top) + 22.0;
        let errors = self.points.iter().map(|point| point.error);
        let x = Scale::fit(self.error_axis, errors, false);
        let is_drawn = |point: &&Candidate| point.price.is_finite() && x.at(point.error).is_some();
        let mut points: Vec<&Candidate> = self.points.iter().filter(is_drawn).collect();
        points.sort_by(|a, b| {
            let by_price = a.price.total_cmp(&b.price);
            by_price.then(a.error.total_cmp(&b.error))
        });
        let prices = points
            .iter()
            .map(|point| width(&short(point.price), theme::TEXT));
        let rows = rows(&points, top);
        let bottom = rows.last().map_or(top + ROW, |row| row + ROW / 2.0);
        let frame = Frame {
            left: 26.0 + prices.fold(0.0, f64::max),
            right: WIDTH - 16.0,
            top: top - GAP / 2.0,
            bottom: bottom + GAP / 2.0,
            x,
            y: Scale::fit(Axis::Linear, [0.0, 1.0], true),
        };
        self.axes(&mut svg, &frame);
        let front = front(&points);
        let line = staircase(&frame, &points, &rows, &front);
        svg.polyline("axis d1", &[line]);
        for (index, (point, row)) in points.iter().zip(&rows).enumerate() {
            let before = index.checked_sub(1).map(|before| points[before].price);
            if before != Some(point.price) {
                let price = short(point.price);
                let at = (frame.left - 12.0, row + 4.0);
                svg.text("muted small", at, Anchor::End, &price);
                if before.is_some() {
                    let y = row - (ROW + GAP) / 2.0;
                    svg.line("grid", (frame.left, y), (frame.right, y));
                }
            }
            draw(&mut svg, &frame, point, *row, front.contains(&index));
        }
        let height = frame.bottom + frame.below(&self.error_label);
        frame::document(height, &self.title, &self.caption, svg)
    }

    fn legend(&self, svg: &mut Svg, top: f64) -> f64 {
        let (mut x, mut y) = (14.0, top);
        for (group, name) in self.groups.iter().enumerate() {
            let room = width(name, LABEL) + 28.0;
            if x + room > WIDTH {
                (x, y) = (14.0, y + 18.0);
            }
            svg.mark(
                &format!("mark f{}", group % theme::SERIES),
                group,
                (x, y - 4.0),
                None,
            );
            svg.text("muted", (x + 9.0, y), Anchor::Start, name);
            x += room;
        }
        if self.groups.is_empty() {
            top
        } else {
            y + 14.0
        }
    }

    fn axes(&self, svg: &mut Svg, frame: &Frame) {
        let above = (8.0, frame.top - 10.0);
        svg.text("muted", above, Anchor::Start, &self.price_label);
        for tick in frame.x.ticks() {
            if let Some(x) = frame.at_x(tick.value) {
                svg.line("grid", (x, frame.top), (x, frame.bottom));
            }
        }
        frame.x_axis(svg, &self.error_label, true);
    }
}

/// A point and its label, on the side where there is room for it.
fn draw(svg: &mut Svg, frame: &Frame, point: &Candidate, row: f64, best: bool) {
    /// From the middle of a point to its label.
    const BESIDE: f64 = 8.0;
    /// Labels of this length take nearly all of the plot.
    const LONG: f64 = 180.0;
    let Some(x) = frame.at_x(point.error) else {
        return;
    };
    let class = format!("mark f{}", point.group % theme::SERIES);
    let (price, error) = (short(point.price), short(point.error));
    let title = format!("{}: {error} for {price}", point.label);
    svg.mark(&class, point.group, (x, row), Some(&title));
    // Bold text is wider.
    let (class, wider) = match best {
        true => ("small halo best", 1.1),
        false => ("small halo", 1.0),
    };
    let length = width(&point.label, LABEL) * wider;
    let (x, anchor) = match x + BESIDE + length < WIDTH - 4.0 {
        true => (x + BESIDE, Anchor::Start),
        false => (x - BESIDE, Anchor::End),
    };
    // There is no room to enlarge these on a narrow screen.
    let long = if length > LONG { " long" } else { "" };
    svg.text(
        &format!("{class}{long}"),
        (x, row + 4.0),
        anchor,
        &point.label,
    );
}

/// The heights of the lines of points in the order of their prices.
fn rows(points: &[&Candidate], top: f64) -> Vec<f64> {
    let mut y = top + ROW / 2.0;
    let mut rows = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if index > 0 {
            let same = points[index - 1].price == point.price;
            y += if same { ROW } else { ROW + GAP };
        }
        rows.push(y);
    }
    rows
}

/// The places of the points that no other point beats, among points in the order of price and error.
fn front(points: &[&Candidate]) -> Vec<usize> {
    /// What is cheaper and as good to the third digit is not beaten.
    const TIE: f64 = 0.995;
    let mut least = f64::INFINITY;
    let better = |(index, point): (usize, &&Candidate)| {
        let better = point.error < least * TIE;
        least = least.min(point.error);
        better.then_some(index)
    };
    points.iter().enumerate().filter_map(better).collect()
}

/// Down from each point of the front to the line of the next one, and down to the axis from the last.
fn staircase(
    frame: &Frame,
    points: &[&Candidate],
    rows: &[f64],
    front: &[usize],
) -> Vec<(f64, f64)> {
    let mut line: Vec<(f64, f64)> = Vec::new();
    for index in front {
        let Some(x) = frame.at_x(points[*index].error) else {
            continue;
        };
        if let Some((before, _)) = line.last() {
            line.push((*before, rows[*index]));
        }
        line.push((x, rows[*index]));
    }
    if let Some((x, _)) = line.last() {
        line.push((*x, frame.bottom));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(price: f64, error: f64) -> Candidate {
        Candidate {
            label: format!("{error} for {price}"),
            price,
            error,
            group: 0,
        }
    }

    #[test]
    fn the_front_is_what_nothing_beats() {
        let points = [
            candidate(1.0, 5.0),
            candidate(1.0, 6.0),
            candidate(2.0, 2.0),
            candidate(3.0, 2.0),
            candidate(4.0, 1.0),
            candidate(5.0, 5.0),
        ];
        let points: Vec<&Candidate> = points.iter().collect();
        assert_eq!(front(&points), [0, 2, 4]);
    }

    #[test]
    fn every_point_has_a_line_and_its_label_beside_it() {
        let plot = Pareto {
            points: vec![
                candidate(2.0, 2.0),
                candidate(1.0, 2.0),
                candidate(1.0, 1.0),
                candidate(f64::NAN, 1.0),
            ],
            ..Pareto::default()
        };
        let svg = plot.svg();
        let texts: Vec<&str> = svg.split("<text class=\"small halo").skip(1).collect();
        assert_eq!(texts.len(), 3, "{svg}");
        let lines = ["1 for 1", "2 for 1", "2 for 2"];
        for (text, label) in texts.iter().zip(lines) {
            assert!(text.contains(label), "{text}");
        }
        let heights: Vec<&str> = texts
            .iter()
            .filter_map(|text| text.split(" y=\"").nth(1)?.split('"').next())
            .collect();
        let heights: Vec<f64> = heights.iter().filter_map(|y| y.parse().ok()).collect();
        assert!(
            heights.is_sorted() && heights[0] < heights[2],
            "{heights:?}"
        );
    }
}
