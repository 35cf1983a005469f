//! The rectangle in which data are drawn, with its axes, and the document around it.

use super::labels::{width, wrap};
use super::scale::Scale;
use super::svg::{Anchor, Escaped, Px, Svg};
use super::theme;

/// The width of all plots. Two of them stand side by side on a screen of 1280 pixels, and one that is
/// scaled to a telephone is still readable.
pub const WIDTH: f64 = 520.0;

/// The class of every plot, by which a page knows them.
pub const CLASS: &str = "sf-plot";

/// The height of a line of text.
pub const LINE: f64 = 16.0;

/// A rectangle of pixels with a scale on each side.
pub struct Frame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub x: Scale,
    pub y: Scale,
}

impl Frame {
    /// The room that the labels of a vertical axis take.
    pub fn left_for(y: &Scale) -> f64 {
        let ticks = y.ticks();
        let widths = ticks.iter().map(|tick| width(&tick.label, theme::TEXT));
        14.0 + widths.fold(0.0, f64::max)
    }

    pub fn at_x(&self, value: f64) -> Option<f64> {
        let place = self.x.at(value)?;
        Some(self.left + place * (self.right - self.left))
    }

    pub fn at_y(&self, value: f64) -> Option<f64> {
        let place = self.y.at(value)?;
        Some(self.bottom - place * (self.bottom - self.top))
    }

    pub fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.at_x(x)?, self.at_y(y)?))
    }

    /// Both axes with grid lines, and their labels: that of the vertical axis stands above it, where
    /// it is read without turning the head.
    pub fn axes(&self, svg: &mut Svg, x_label: &str, y_label: &str) {
        self.y_axis(svg, y_label);
        self.x_axis(svg, x_label, true);
    }

    pub fn y_axis(&self, svg: &mut Svg, label: &str) {
        for tick in self.y.ticks() {
            let Some(y) = self.at_y(tick.value) else {
                continue;
            };
            svg.line("grid", (self.left, y), (self.right, y));
            svg.text(
                "muted small",
                (self.left - 6.0, y + 4.0),
                Anchor::End,
                &tick.label,
            );
        }
        svg.text("muted", (8.0, self.top - 10.0), Anchor::Start, label);
    }

    pub fn x_axis(&self, svg: &mut Svg, label: &str, labelled: bool) {
        svg.line("axis", (self.left, self.bottom), (self.right, self.bottom));
        // Labels that would touch the one before are left out.
        let mut free = f64::NEG_INFINITY;
        for tick in self.x.ticks() {
            let Some(x) = self.at_x(tick.value) else {
                continue;
            };
            svg.line("axis", (x, self.bottom), (x, self.bottom + 4.0));
            let half = width(&tick.label, theme::TEXT) / 2.0;
            if labelled && x - half > free {
                svg.text(
                    "muted small",
                    (x, self.bottom + 17.0),
                    Anchor::Middle,
                    &tick.label,
                );
                free = x + half + 4.0;
            }
        }
        // Below the axis and nowhere else: names of lines may stand to its right.
        let room = self.right - self.left;
        let middle = (self.left + self.right) / 2.0;
        for (index, line) in wrap(label, theme::TEXT, room).iter().enumerate() {
            let y = self.bottom + 36.0 + LINE * index as f64;
            svg.text("muted", (middle, y), Anchor::Middle, line);
        }
    }

    /// The room below the axis for its numbers and its label.
    pub fn below(&self, label: &str) -> f64 {
        let lines = wrap(label, theme::TEXT, self.right - self.left).len();
        30.0 + LINE * lines.max(1) as f64
    }
}

/// The heading of a plot, broken into lines; returns where the plot can begin.
pub fn heading(svg: &mut Svg, title: &str) -> f64 {
    let mut y = 20.0;
    for line in wrap(title, 16.0, WIDTH - 16.0) {
        svg.text("title", (8.0, y), Anchor::Start, &line);
        y += 19.0;
    }
    y
}

/// The whole file: what is read aloud, the style and the picture.
pub fn document(height: f64, title: &str, caption: &str, body: Svg) -> String {
    let (width, height) = (Px(WIDTH), Px(height));
    let (title, caption) = (Escaped(title), Escaped(caption));
    let style = theme::style();
    let body = body.into_text();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{CLASS}\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>{title}</title>\n<desc>{caption}</desc>\n<style>{style}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}
