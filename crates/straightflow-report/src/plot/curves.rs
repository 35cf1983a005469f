//! Lines over a common axis: learning curves with bands, and weights over the integers.

use super::frame::{self, Frame, LINE, WIDTH};
use super::labels::{spread, width, wrap};
use super::scale::{Axis, Scale, short};
use super::svg::{Anchor, Svg};
use super::{theme, trace};

/// A line with its label.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    /// Stands at the end of the line.
    pub label: String,
    /// In the order of the horizontal axis. A number that is not finite leaves a gap.
    pub points: Vec<(f64, f64)>,
    /// The lower and the upper end of the band at each point; empty for a line without one.
    pub band: Vec<(f64, f64)>,
    /// Colour and dashes: lines with the same number look alike in every plot. By default its place.
    /// Where two lines of a plot have the same, the second keeps the colour and gets other dashes.
    pub look: Option<usize>,
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
    /// Whether the plot shows the neighbourhood of the ends of its lines, where they are compared. What
    /// lies far above is cut off, and the plot says so.
    pub near_ends: bool,
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
            near_ends: false,
        };
        draw(&curves, true)
    }
}

fn draw(plot: &Curves, marks: bool) -> String {
    let mut svg = Svg::default();
    let top = frame::heading(&mut svg, &plot.title) + 18.0;
    let ceiling = plot.near_ends.then(|| ceiling(&plot.lines)).flatten();
    let frame = fit(plot, top, ceiling, marks);
    let looks = looks(&plot.lines);
    frame.axes(&mut svg, &plot.x_label, &plot.y_label);
    for (series, line) in plot.lines.iter().enumerate() {
        svg.open(&format!("k{series}"), None);
        let outline = trace::band(&frame, &line.points, &line.band);
        svg.polygon(&format!("band f{}", theme::colour(looks[series])), &outline);
        svg.close();
    }
    if let Some(reference) = &plot.reference {
        refer(&mut svg, &frame, reference);
    }
    for (series, line) in plot.lines.iter().enumerate() {
        let colour = theme::colour(looks[series]);
        svg.open(&format!("k{series}"), Some(&line.label));
        let pieces = trace::pieces(&frame, &line.points);
        svg.polyline(&stroke(looks[series]), &pieces);
        if marks {
            for at in pieces.iter().flatten() {
                svg.mark(&format!("mark f{colour}"), looks[series], *at, None);
            }
        }
        spots(&mut svg, &frame, line, &plot.x_label);
        svg.close();
    }
    let cut = ceiling.map(|_| frame.y.high());
    if let Some(cut) = cut {
        let note = format!("cut off above {}", short(cut));
        let at = (frame.right - 4.0, frame.top + 13.0);
        svg.text("muted small halo", at, Anchor::End, &note);
    }
    name(&mut svg, &frame, &plot.lines, &looks, cut, marks);
    let height = frame.bottom + frame.below(&plot.x_label);
    frame::document(height.max(HEIGHT), &plot.title, &plot.caption, svg)
}

/// The classes of a line.
fn stroke(look: usize) -> String {
    format!("line s{} d{}", theme::colour(look), theme::dash(look))
}

/// A look for each line, no two of them the same.
fn looks(lines: &[Line]) -> Vec<usize> {
    let mut taken: Vec<usize> = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let mut look = line.look.unwrap_or(place) % theme::LOOKS;
        for _ in 0..theme::SERIES {
            if taken.contains(&look) {
                look = (look + theme::SERIES) % theme::LOOKS;
            }
        }
        taken.push(look);
    }
    taken
}

/// Values to be read off a line with the pointer.
fn spots(svg: &mut Svg, frame: &Frame, line: &Line, x_label: &str) {
    /// Neighbours of more would cover each other.
    const SPOTS: usize = 20;
    let every = line.points.len().div_ceil(SPOTS).max(1);
    let last = line.points.len().saturating_sub(1);
    for (index, (x, y)) in line.points.iter().enumerate() {
        // Those that are shown are counted from the end, which is what one looks for.
        if (last - index).is_multiple_of(every)
            && let Some(at) = frame.at((*x, *y)).filter(|at| at.1 >= frame.top)
        {
            let title = format!("{}: {} ({x_label}: {})", line.label, short(*y), short(*x));
            svg.spot(at, &title);
        }
    }
}

/// The last value of a line.
fn end(line: &Line) -> Option<f64> {
    let mut values = line.points.iter().rev().map(|(_, y)| *y);
    values.find(|y| y.is_finite())
}

/// Where lines are cut off so that their ends can be told apart; none if they can be anyhow.
fn ceiling(lines: &[Line]) -> Option<f64> {
    /// A line that ends so many times further up than the others are apart is not made room for.
    const FAR: f64 = 3.0;
    /// The ends take at least this part of the height.
    const PART: f64 = 0.4;
    let mut ends: Vec<f64> = lines.iter().filter_map(end).collect();
    ends.sort_by(f64::total_cmp);
    if let [first, .., before, last] = ends[..]
        && before > first
        && last - before > FAR * (before - first)
    {
        ends.pop();
    }
    let (first, last) = (*ends.first()?, *ends.last()?);
    let ceiling = first + (last - first) / PART;
    let values = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let highest = values.filter(|y| y.is_finite()).fold(first, f64::max);
    // A little above is no reason to cut.
    (last > first && highest > first + 1.5 * (ceiling - first)).then_some(ceiling)
}

/// The size of the labels at the ends of lines, with room for that of narrow screens.
const LABEL: f64 = theme::TEXT;
/// Longer labels are broken into lines.
const LABEL_WIDTH: f64 = 140.0;
/// From the end of the lines to the labels, with leaders in between.
const LEADER: f64 = 16.0;
/// The part of a leader that is within the plot, where a line ends before its right edge.
const STUB: f64 = 10.0;
/// A piece of each line stands before its label: where lines end in one place, leaders alone do not
/// tell which is which.
const PIECE: f64 = 24.0;

fn fit(plot: &Curves, top: f64, ceiling: Option<f64>, marks: bool) -> Frame {
    let points = plot.lines.iter().flat_map(|line| &line.points);
    let bands = plot.lines.iter().flat_map(|line| &line.band);
    let heights = points.clone().map(|(_, y)| *y);
    let heights = heights
        .chain(bands.flat_map(|(low, high)| [*low, *high]))
        .chain(plot.reference.iter().map(|reference| reference.value))
        .filter(|height| ceiling.is_none_or(|ceiling| *height <= ceiling))
        .chain(ceiling);
    let x = Scale::fit(Axis::Linear, points.map(|(x, _)| *x), true);
    let y = Scale::fit(plot.y_axis, heights, false);
    let labels = plot
        .lines
        .iter()
        .flat_map(|line| wrap(&label(line, ceiling), LABEL, LABEL_WIDTH));
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

fn refer(svg: &mut Svg, frame: &Frame, reference: &Reference) {
    if let Some(y) = frame.at_y(reference.value) {
        svg.line("reference", (frame.left, y), (frame.right, y));
        let at = (frame.right - 4.0, y - 5.0);
        svg.text("small halo", at, Anchor::End, &reference.label);
    }
}

/// The label of a line; that of one whose end is cut off says where it is.
fn label(line: &Line, ceiling: Option<f64>) -> String {
    match (end(line), ceiling) {
        (Some(end), Some(ceiling)) if end > ceiling => format!("{} ↑ {}", line.label, short(end)),
        _ => line.label.clone(),
    }
}

/// The labels at the ends of the lines, moved apart, with leaders.
fn name(
    svg: &mut Svg,
    frame: &Frame,
    lines: &[Line],
    looks: &[usize],
    ceiling: Option<f64>,
    marks: bool,
) {
    let end = |line: &Line| line.points.iter().rev().find_map(|point| frame.at(*point));
    let named: Vec<_> = lines
        .iter()
        .enumerate()
        .filter_map(|(series, line)| {
            let (x, y) = end(line)?;
            let text = wrap(&label(line, ceiling), LABEL, LABEL_WIDTH);
            Some((series, (x, y.max(frame.top)), text))
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
        let colour = theme::colour(looks[series]);
        let first = middle - LINE * (text.len() as f64 - 1.0) / 2.0;
        // A leader across the plot would look like a line of its own.
        let leader = vec![
            (end.0.max(frame.right - STUB) + 3.0, end.1),
            (frame.right + 6.0, end.1),
            (start - 2.0, first),
        ];
        svg.open(&format!("k{series}"), None);
        svg.polyline(&format!("leader s{colour}"), &[leader]);
        let piece = vec![(start, first), (start + PIECE, first)];
        svg.polyline(&stroke(looks[series]), &[piece]);
        if marks {
            let at = (start + PIECE / 2.0, first);
            svg.mark(&format!("mark f{colour}"), looks[series], at, None);
        }
        for (index, line) in text.iter().enumerate() {
            let at = (start + PIECE + 5.0, first + 4.5 + LINE * index as f64);
            svg.text(&format!("f{colour}"), at, Anchor::Start, line);
        }
        svg.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(look: Option<usize>, heights: &[f64]) -> Line {
        let points = heights.iter().enumerate();
        Line {
            points: points.map(|(x, y)| (x as f64, *y)).collect(),
            look,
            ..Line::default()
        }
    }

    #[test]
    fn lines_that_look_alike_get_other_dashes() {
        let lines = [line(Some(3), &[]), line(Some(3), &[]), line(None, &[])];
        let looks = looks(&lines);
        assert_eq!(looks, [3, 11, 2]);
        assert_eq!(theme::colour(looks[0]), theme::colour(looks[1]));
        assert_ne!(theme::dash(looks[0]), theme::dash(looks[1]));
    }

    #[test]
    fn the_ends_of_lines_are_not_flattened() {
        let near = [line(None, &[190.0, 124.0]), line(None, &[180.0, 112.0])];
        assert_eq!(ceiling(&near), Some(142.0));
        let mut far = near.to_vec();
        far.push(line(None, &[450.0, 411.0]));
        assert_eq!(ceiling(&far), Some(142.0));
        assert_eq!(
            ceiling(&[line(None, &[130.0, 124.0]), line(None, &[112.0])]),
            None
        );
        assert_eq!(ceiling(&near[..1]), None);
        let plot = Curves {
            lines: far,
            near_ends: true,
            ..Curves::default()
        };
        let svg = plot.svg();
        assert!(
            svg.contains("cut off above 145") && svg.contains("↑ 411"),
            "{svg}"
        );
    }

    #[test]
    fn values_are_shown_where_the_pointer_rests() {
        let mut curve = line(None, &[3.0, 2.5]);
        curve.label = "ARM".to_owned();
        let plot = Curves {
            x_label: "epoch".to_owned(),
            lines: vec![curve],
            ..Curves::default()
        };
        assert!(plot.svg().contains("<title>ARM: 2.5 (epoch: 1)</title>"));
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
