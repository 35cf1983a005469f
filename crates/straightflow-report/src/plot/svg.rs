//! Elements of SVG as text.

use std::fmt::{self, Display, Write};

/// A coordinate with two decimals at most: a hundredth of a pixel is below what a printer shows.
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// Text as XML has it between tags and in attributes.
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                // XML has no way to write the other control characters.
                c if c.is_control() => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Where a text begins with respect to its position.
#[derive(Clone, Copy, PartialEq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The elements of a picture so far.
#[derive(Default)]
pub struct Svg {
    text: String,
}

impl Svg {
    pub fn into_text(self) -> String {
        self.text
    }

    fn push(&mut self, element: fmt::Arguments<'_>) {
        self.text
            .write_fmt(element)
            .expect("strings can be written to");
        self.text.push('\n');
    }

    /// Opens a group; what is drawn until [`close`](Self::close) belongs to it. A page reads the name
    /// to offer a switch that hides the group.
    pub fn open(&mut self, class: &str, name: Option<&str>) {
        match name.map(Escaped) {
            Some(name) => self.push(format_args!(r#"<g class="{class}" data-name="{name}">"#)),
            None => self.push(format_args!(r#"<g class="{class}">"#)),
        }
    }

    pub fn close(&mut self) {
        self.push(format_args!("</g>"));
    }

    /// A spot that nobody sees, with a title that browsers show when the pointer rests on it.
    pub fn spot(&mut self, at: (f64, f64), title: &str) {
        let (x, y, title) = (Px(at.0), Px(at.1), Escaped(title));
        self.push(format_args!(
            r#"<path class="spot" d="M{x} {y}h0"><title>{title}</title></path>"#
        ));
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (Px(from.0), Px(from.1), Px(to.0), Px(to.1));
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// A path through the points, one piece for each slice.
    pub fn polyline(&mut self, class: &str, pieces: &[Vec<(f64, f64)>]) {
        let path: String = pieces.iter().map(|piece| path(piece)).collect();
        if !path.is_empty() {
            self.push(format_args!(r#"<path class="{class}" d="{path}"/>"#));
        }
    }

    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 2 {
            let path = path(points);
            self.push(format_args!(r#"<path class="{class}" d="{path}Z"/>"#));
        }
    }

    pub fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        let (x, y, width, height) = (Px(corner.0), Px(corner.1), Px(size.0), Px(size.1));
        self.push(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y, text) = (Px(at.0), Px(at.1), Escaped(text));
        self.push(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#
        ));
    }

    /// The mark of a series: its shape tells it apart where colours cannot. A title is shown by
    /// browsers when the pointer rests on the mark.
    pub fn mark(&mut self, class: &str, series: usize, at: (f64, f64), title: Option<&str>) {
        const SHAPES: [&str; 6] = [
            "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z",
            "m-3 -3h6v6h-6Z",
            "m0 -4l4 7h-8Z",
            "m0 -4.5l4 4.5l-4 4.5l-4 -4.5Z",
            "m0 4l4 -7h-8Z",
            "m-1.3 -4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7Z",
        ];
        let (x, y, shape) = (Px(at.0), Px(at.1), SHAPES[series % SHAPES.len()]);
        match title.map(Escaped) {
            Some(title) => self.push(format_args!(
                r#"<path class="{class}" d="M{x} {y}{shape}"><title>{title}</title></path>"#
            )),
            None => self.push(format_args!(
                r#"<path class="{class}" d="M{x} {y}{shape}"/>"#
            )),
        }
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let command = if index == 0 { 'M' } else { 'L' };
        write!(text, "{command}{} {}", Px(*x), Px(*y)).expect("strings can be written to");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        let text: Vec<String> = [1.0, 0.126, -0.001, -12.5, 1e3]
            .map(|x| Px(x).to_string())
            .to_vec();
        assert_eq!(text, ["1", "0.13", "0", "-12.5", "1000"]);
    }

    #[test]
    fn text_cannot_leave_its_place() {
        let text = Escaped("a<b & \"c\" >\u{1}").to_string();
        assert_eq!(text, "a&lt;b &amp; &quot;c&quot; &gt; ");
    }
}
