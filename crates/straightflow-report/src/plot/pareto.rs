//! What is paid against what is got: points, with those that nothing beats joined.

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
    /// Along the horizontal axis; less is better.
    pub x: f64,
    /// Along the vertical axis; less is better.
    pub y: f64,
    /// Points of one group have one colour and one shape.
    pub group: usize,
}

/// Points of which less is better in both directions. Those that no other point beats in both are
/// joined.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pareto {
    /// The heading.
    pub title: String,
    /// What is to be seen, in a sentence or two: the caption of a report.
    pub caption: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Above the vertical axis.
    pub y_label: String,
    /// The scale of the horizontal axis.
    pub x_axis: Axis,
    /// The scale of the vertical axis.
    pub y_axis: Axis,
    /// The points. One without a place on its axes is not drawn.
    pub points: Vec<Candidate>,
    /// The names of the groups, for the legend; empty for none.
    pub groups: Vec<String>,
}

const HEIGHT: f64 = 400.0;
const LABEL: f64 = theme::TEXT;

impl Pareto {
    /// The plot as a file of its own.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let top = frame::heading(&mut svg, &self.title);
        let top = self.legend(&mut svg, top) + 18.0;
        let y = Scale::fit(self.y_axis, self.points.iter().map(|point| point.y), false);
        let frame = Frame {
            left: Frame::left_for(&y),
            right: WIDTH - 16.0,
            top,
            bottom: HEIGHT - 46.0,
            x: Scale::fit(self.x_axis, self.points.iter().map(|point| point.x), false),
            y,
        };
        frame.axes(&mut svg, &self.x_label, &self.y_label);

        let values: Vec<(f64, f64)> = self.points.iter().map(|point| (point.x, point.y)).collect();
        let front = front(&values);
        svg.polyline(
            "axis d1",
            &[staircase(
                &frame,
                &front.iter().map(|i| values[*i]).collect::<Vec<_>>(),
            )],
        );
        let places: Vec<_> = values.iter().map(|value| frame.at(*value)).collect();
        for (point, place) in self.points.iter().zip(&places) {
            if let Some(at) = place {
                let class = format!("mark f{}", point.group % theme::SERIES);
                let title = format!("{}: {} at {}", point.label, short(point.y), short(point.x));
                svg.mark(&class, point.group, *at, Some(&title));
            }
        }
        // The front is named first: where room is short, it is what one looks for.
        let rest = (0..self.points.len()).filter(|index| !front.contains(index));
        let order: Vec<usize> = front.iter().copied().chain(rest).collect();
        self.name(&mut svg, &frame, &places, &order);
        frame::document(HEIGHT, &self.title, &self.caption, svg)
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

    /// Labels beside their points, each at the first of several places where it covers nothing.
    fn name(&self, svg: &mut Svg, frame: &Frame, places: &[Option<(f64, f64)>], order: &[usize]) {
        let mut taken: Vec<Rectangle> = places
            .iter()
            .flatten()
            .map(|at| Rectangle::around(*at, 4.0))
            .collect();
        for index in order {
            let (point, Some(at)) = (&self.points[*index], places[*index]) else {
                continue;
            };
            let length = width(&point.label, LABEL);
            let place = candidates(at, length).find(|label| {
                label.inside(frame) && !taken.iter().any(|other| other.overlaps(label))
            });
            // A point without room for its name still has it as its title.
            let Some(label) = place else { continue };
            let nearest = (
                at.0.clamp(label.left, label.right),
                at.1.clamp(label.top, label.bottom),
            );
            if (nearest.0 - at.0).hypot(nearest.1 - at.1) > 9.0 {
                svg.line("leader axis", at, nearest);
            }
            // The width is an estimate, so the side at the point is the one that is held.
            let (x, anchor) = if label.right < at.0 {
                (label.right, Anchor::End)
            } else if label.left > at.0 {
                (label.left, Anchor::Start)
            } else {
                ((label.left + label.right) / 2.0, Anchor::Middle)
            };
            svg.text("small halo", (x, label.bottom - 4.0), anchor, &point.label);
            taken.push(label);
        }
    }
}

/// The indices of the points that no other point beats, in the order of the first coordinate.
fn front(points: &[(f64, f64)]) -> Vec<usize> {
    let finite = |index: &usize| points[*index].0.is_finite() && points[*index].1.is_finite();
    let mut order: Vec<usize> = (0..points.len()).filter(finite).collect();
    order.sort_by(|a, b| {
        let (a, b) = (points[*a], points[*b]);
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    let mut least = f64::INFINITY;
    order.retain(|index| {
        let better = points[*index].1 < least;
        least = least.min(points[*index].1);
        better
    });
    order
}

/// From point to point by a step to the right and one down: what is between is not attainable.
fn staircase(frame: &Frame, front: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let places: Vec<_> = front.iter().filter_map(|point| frame.at(*point)).collect();
    let mut steps: Vec<(f64, f64)> = places.first().copied().into_iter().collect();
    for pair in places.windows(2) {
        steps.push((pair[1].0, pair[0].1));
        steps.push(pair[1]);
    }
    steps
}

#[derive(Clone, Copy)]
struct Rectangle {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Rectangle {
    fn around(at: (f64, f64), radius: f64) -> Self {
        Self {
            left: at.0 - radius,
            right: at.0 + radius,
            top: at.1 - radius,
            bottom: at.1 + radius,
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn inside(&self, frame: &Frame) -> bool {
        self.left > frame.left - 4.0
            && self.right < WIDTH - 2.0
            && self.top > frame.top - 8.0
            && self.bottom < frame.bottom + 2.0
    }
}

/// Places of a label of this length: right, left, above, below, then the same further away.
fn candidates(at: (f64, f64), length: f64) -> impl Iterator<Item = Rectangle> {
    const HEIGHT: f64 = 15.0;
    let distances = (0..6).map(|ring| 6.0 + 13.0 * f64::from(ring));
    distances.flat_map(move |distance| {
        let level = at.1 - HEIGHT / 2.0;
        let corners = [
            (at.0 + distance, level),
            (at.0 - distance - length, level),
            (at.0 - length / 2.0, at.1 - distance - HEIGHT),
            (at.0 - length / 2.0, at.1 + distance),
            (at.0 + distance, level - distance),
            (at.0 + distance, level + distance),
            (at.0 - distance - length, level - distance),
            (at.0 - distance - length, level + distance),
        ];
        corners.map(|(left, top)| Rectangle {
            left,
            right: left + length,
            top,
            bottom: top + HEIGHT,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_nothing_beats() {
        let points = [
            (2.0, 2.0),
            (1.0, 5.0),
            (3.0, 2.0),
            (4.0, 1.0),
            (5.0, 5.0),
            (1.0, 6.0),
            (f64::NAN, 0.0),
        ];
        assert_eq!(front(&points), [1, 0, 3]);
    }
}
