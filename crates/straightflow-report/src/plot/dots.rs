//! One number for each of several things, one line each.

use super::frame::{self, Frame, WIDTH};
use super::labels::width;
use super::scale::{Axis, Scale, short};
use super::svg::{Anchor, Svg};
use super::theme;

/// A line of a [`Dots`] plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dot {
    /// Stands on the left.
    pub label: String,
    /// Where the dot is; not finite means that there is nothing to draw.
    pub value: f64,
    /// The ends of an interval around it.
    pub interval: Option<(f64, f64)>,
    /// Dots of one group have one colour and one shape.
    pub group: usize,
}

/// Labelled values along one axis: easier to compare than bars, and zero need not be there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dots {
    /// The heading.
    pub title: String,
    /// What is to be seen, in a sentence or two: the caption of a report.
    pub caption: String,
    /// Below the axis.
    pub x_label: String,
    /// The scale of the axis.
    pub x_axis: Axis,
    /// From above to below.
    pub rows: Vec<Dot>,
}

const ROW: f64 = 21.0;
const LABEL: f64 = theme::TEXT;

impl Dots {
    /// The plot as a file of its own.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        let top = frame::heading(&mut svg, &self.title) + 2.0;
        let widest = self.rows.iter().map(|row| width(&row.label, LABEL));
        let values = self.rows.iter().flat_map(|row| {
            let interval = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
            interval.chain([row.value])
        });
        let frame = Frame {
            left: widest.fold(0.0, f64::max).min(WIDTH * 0.5) + 20.0,
            right: WIDTH - 18.0,
            top,
            bottom: top + ROW * self.rows.len() as f64,
            x: Scale::fit(self.x_axis, values, false),
            y: Scale::fit(Axis::Linear, [0.0, 1.0], true),
        };
        for tick in frame.x.ticks() {
            if let Some(x) = frame.at_x(tick.value) {
                svg.line("grid", (x, frame.top), (x, frame.bottom));
            }
        }
        frame.x_axis(&mut svg, &self.x_label, true);
        for (index, row) in self.rows.iter().enumerate() {
            let y = frame.top + ROW * (index as f64 + 0.5);
            let colour = row.group % theme::SERIES;
            svg.text(
                "small",
                (frame.left - 10.0, y + 4.0),
                Anchor::End,
                &row.label,
            );
            let ends = row
                .interval
                .map(|(low, high)| (frame.at_x(low), frame.at_x(high)));
            if let Some((Some(low), Some(high))) = ends {
                svg.line(&format!("outline s{colour}"), (low, y), (high, y));
            }
            let title = format!("{}: {}", row.label, short(row.value));
            match frame.at_x(row.value) {
                Some(x) => svg.mark(&format!("mark f{colour}"), row.group, (x, y), Some(&title)),
                None => svg.text(
                    "muted small",
                    (frame.left + 6.0, y + 4.0),
                    Anchor::Start,
                    "no value",
                ),
            }
        }
        frame::document(
            frame.bottom + frame.below(&self.x_label),
            &self.title,
            &self.caption,
            svg,
        )
    }
}
