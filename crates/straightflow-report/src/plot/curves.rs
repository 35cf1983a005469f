//! Lines over a common axis: learning curves with bands, and weights over the integers.

use super::frame::{self, Frame, LINE, WIDTH};
use super::labels::{spread, width, wrap};
use super::scale::{Axis, Scale};
use super::svg::{Anchor, Svg};
use super::theme;

/// A line with its label.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Stands at the end of the line.
    pub label: String,
    /// In the order of the horizontal axis. A number that is not finite leaves a gap.
    pub points: Vec<(f64, f64)>,
    /// The lower and the upper end of the band at each point; empty for a line without one.
    pub band: Vec<(f64, f64)>,
}

/// A value that the lines are compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// What it is.
    pub label: String,
    /// Its height.
    pub value: f64,
}

/// Lines with bands. Each line differs from the others in colour and in dashes and is named at its
/// end, so that the plot can be read in black and white.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curves {
    /// The heading.
    pub title: String,
    /// What is to be seen, in a sentence or two: the caption of a report.
    pub caption: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Above the vertical axis.
    pub y_label: String,
    /// The scale of the vertical axis.
    pub y_axis: Axis,
    /// The lines; eight can be told apart.
    pub lines: Vec<Line>,
    /// A horizontal line to compare with.
    pub reference: Option<Reference>,
}

/// The weight that each value of a variable gets, for several bandwidths: points at integers, joined
/// by lines.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// The heading.
    pub title: String,
    /// What is to be seen, in a sentence or two: the caption of a report.
    pub caption: String,
    /// Below the horizontal axis.
    pub x_label: String,
    /// Above the vertical axis.
    pub y_label: String,
    /// One line for each bandwidth; bands are not drawn.
    pub lines: Vec<Line>,
    /// A horizontal line to compare with.
    pub reference: Option<Reference>,
}

const HEIGHT: f64 = 340.0;

impl Curves {
    /// The plot as a file of its own.
    pub fn svg(&self) -> String {
        draw(self, false)
    }
}

impl Weights {
    /// The plot as a file of its own.
    pub fn svg(&self) -> String {
        let without_band = |line: &Line| Line {
            band: Vec::new(),
            ..line.clone()
        };
        let curves = Curves {
            title: self.title.clone(),
            caption: self.caption.clone(),
            x_label: self.x_label.clone(),
            y_label: self.y_label.clone(),
            y_axis: Axis::Linear,
            lines: self.lines.iter().map(without_band).collect(),
            reference: self.reference.clone(),
        };
        draw(&curves, true)
    }
}

fn draw(plot: &Curves, marks: bool) -> String {
    let mut svg = Svg::default();
    let top = frame::heading(&mut svg, &plot.title) + 18.0;
    let frame = fit(plot, top, marks);
    frame.axes(&mut svg, &plot.x_label, &plot.y_label);
    for (series, line) in plot.lines.iter().enumerate() {
        band(&mut svg, &frame, series % theme::SERIES, line);
    }
    if let Some(reference) = &plot.reference {
        refer(&mut svg, &frame, reference);
    }
    for (series, line) in plot.lines.iter().enumerate() {
        let colour = series % theme::SERIES;
        let pieces = pieces(&frame, &line.points);
        svg.polyline(&format!("line s{colour} d{colour}"), &pieces);
        if marks {
            for at in pieces.iter().flatten() {
                svg.mark(&format!("mark f{colour}"), series, *at, None);
            }
        }
    }
    name(&mut svg, &frame, &plot.lines, marks);
    frame::document(HEIGHT, &plot.title, &plot.caption, svg)
}

/// The size of the labels at the ends of lines, with room for that of narrow screens.
const LABEL: f64 = 13.5;
/// Longer labels are broken into lines.
const LABEL_WIDTH: f64 = 140.0;
/// From the end of the lines to the labels, with leaders in between.
const LEADER: f64 = 16.0;
/// A piece of each line stands before its label: where lines end in one place, leaders alone do not
/// tell which is which.
const PIECE: f64 = 24.0;

fn fit(plot: &Curves, top: f64, marks: bool) -> Frame {
    let points = plot.lines.iter().flat_map(|line| &line.points);
    let bands = plot.lines.iter().flat_map(|line| &line.band);
    let heights = points.clone().map(|(_, y)| *y);
    let heights = heights
        .chain(bands.flat_map(|(low, high)| [*low, *high]))
        .chain(plot.reference.iter().map(|reference| reference.value));
    let x = Scale::fit(Axis::Linear, points.map(|(x, _)| *x), true);
    let y = Scale::fit(plot.y_axis, heights, false);
    let labels = plot
        .lines
        .iter()
        .flat_map(|line| wrap(&line.label, LABEL, LABEL_WIDTH));
    let widest = labels.map(|label| width(&label, LABEL)).fold(0.0, f64::max);
    let room = if marks { 6.0 } else { 0.0 };
    Frame {
        left: Frame::left_for(&y) + room,
        right: WIDTH - widest - LEADER - PIECE - 11.0,
        top,
        bottom: HEIGHT - 46.0,
        x,
        y,
    }
}

fn band(svg: &mut Svg, frame: &Frame, colour: usize, line: &Line) {
    let ends = line.points.iter().zip(&line.band);
    let side = |high: bool| {
        let end = |((x, _), band): (&(f64, f64), &(f64, f64))| {
            frame.at((*x, if high { band.1 } else { band.0 }))
        };
        thin(ends.clone().filter_map(end).collect())
    };
    let mut outline = side(true);
    outline.extend(side(false).into_iter().rev());
    svg.polygon(&format!("band f{colour}"), &outline);
}

/// The line in pixels, broken where a point has no place.
fn pieces(frame: &Frame, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let places: Vec<_> = points.iter().map(|point| frame.at(*point)).collect();
    let pieces = places.split(Option::is_none);
    pieces
        .map(|piece| thin(piece.iter().copied().flatten().collect()))
        .filter(|piece| !piece.is_empty())
        .collect()
}

/// Leaves out what nobody can see: of many points in one column of pixels the first, the lowest, the
/// highest and the last are kept.
fn thin(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= 4 {
            kept.extend_from_slice(column);
            continue;
        }
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let lowest = (0..column.len()).min_by(by_height);
        let highest = (0..column.len()).max_by(by_height);
        let mut indices = vec![0, column.len() - 1];
        indices.extend(lowest);
        indices.extend(highest);
        indices.sort_unstable();
        indices.dedup();
        kept.extend(indices.into_iter().map(|index| column[index]));
    }
    kept
}

fn refer(svg: &mut Svg, frame: &Frame, reference: &Reference) {
    if let Some(y) = frame.at_y(reference.value) {
        svg.line("reference", (frame.left, y), (frame.right, y));
        let at = (frame.right - 4.0, y - 5.0);
        svg.text("small halo", at, Anchor::End, &reference.label);
    }
}

/// The labels at the ends of the lines, moved apart, with leaders.
fn name(svg: &mut Svg, frame: &Frame, lines: &[Line], marks: bool) {
    let end = |line: &Line| line.points.iter().rev().find_map(|point| frame.at(*point));
    let named: Vec<_> = lines
        .iter()
        .enumerate()
        .filter_map(|(series, line)| {
            Some((series, end(line)?, wrap(&line.label, LABEL, LABEL_WIDTH)))
        })
        .collect();
    let height = |text: &[String]| LINE * text.len() as f64 + 2.0;
    let wishes: Vec<_> = named
        .iter()
        .map(|(_, end, text)| (end.1, height(text)))
        .collect();
    let middles = spread(&wishes, frame.top - 12.0, HEIGHT - 8.0);
    let start = frame.right + LEADER;
    for ((series, end, text), middle) in named.into_iter().zip(middles) {
        let colour = series % theme::SERIES;
        let first = middle - LINE * (text.len() as f64 - 1.0) / 2.0;
        let leader = vec![
            (end.0 + 3.0, end.1),
            (frame.right + 6.0, end.1),
            (start - 2.0, first),
        ];
        svg.polyline(&format!("leader s{colour}"), &[leader]);
        let piece = vec![(start, first), (start + PIECE, first)];
        svg.polyline(&format!("line s{colour} d{colour}"), &[piece]);
        if marks {
            let at = (start + PIECE / 2.0, first);
            svg.mark(&format!("mark f{colour}"), series, at, None);
        }
        for (index, line) in text.iter().enumerate() {
            let at = (start + PIECE + 5.0, first + 4.5 + LINE * index as f64);
            svg.text(&format!("f{colour}"), at, Anchor::Start, line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes_of_a_column() {
        let points: Vec<(f64, f64)> = (0..1000)
            .map(|i| {
                (
                    f64::from(i) / 100.0,
                    if i == 345 { 9.0 } else { f64::from(i % 7) },
                )
            })
            .collect();
        let kept = thin(points.clone());
        assert!(kept.len() <= 40);
        assert!(kept.contains(&(3.45, 9.0)));
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn a_number_that_is_not_finite_leaves_a_gap() {
        let points = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 1.5), (3.0, 2.0)];
        let line = Line {
            points,
            ..Line::default()
        };
        let plot = Curves {
            lines: vec![line],
            ..Curves::default()
        };
        let svg = plot.svg();
        let path = svg.split("class=\"line").nth(1).expect("a line");
        let path = path.split("/>").next().expect("its end");
        assert_eq!(path.matches('M').count(), 2);
        assert!(!svg.contains("NaN"));
    }
}
