//! Colours, dashes and fonts. The SVG has classes only, so that one picture is right on a light page,
//! on a dark one and in print.
//!
//! Colours are written out, not as CSS variables: programs that convert SVG read the first rules and
//! know neither variables nor media queries.

use std::fmt::Write;

/// How many colours and how many dashes there are.
pub const SERIES: usize = 8;

/// Colour and dashes together tell this many looks apart; the first [`SERIES`] differ in both.
pub const LOOKS: usize = SERIES * SERIES;

/// The place of a look among the colours.
pub fn colour(look: usize) -> usize {
    look % SERIES
}

/// The place of a look among the dashes.
pub fn dash(look: usize) -> usize {
    (look + look / SERIES) % SERIES
}

/// The size of the text for which room is left: that of narrow screens, the larger one.
pub const TEXT: f64 = 14.5;

/// Dashes of the lines, in the order of the series.
const DASHES: [&str; SERIES] = [
    "none",
    "7 3",
    "2 2.5",
    "9 3 2 3",
    "13 4",
    "5 2 1 2 1 2",
    "4 4",
    "16 3 2 3 2 3",
];

struct Palette {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    axis: &'static str,
    grid: &'static str,
    series: [&'static str; SERIES],
}

/// At least 3:1 against the paper, after the palette of Okabe and Ito.
const LIGHT: Palette = Palette {
    paper: "#ffffff",
    ink: "#1c2128",
    muted: "#57606a",
    axis: "#8c959f",
    grid: "#e4e8ec",
    series: [
        "#0b5fa5", "#c24e00", "#00805c", "#a8448a", "#80660a", "#2b8cbe", "#8b3a3a", "#444c56",
    ],
};

const DARK: Palette = Palette {
    paper: "#14181d",
    ink: "#e6eaef",
    muted: "#a3adb8",
    axis: "#6e7883",
    grid: "#2a3038",
    series: [
        "#6cb6ff", "#ff9a52", "#45d19f", "#f08fd0", "#e0bd4f", "#8fd3f4", "#f2938c", "#bdc6d0",
    ],
};

fn colours(palette: &Palette) -> String {
    let mut css = format!(
        ".sf-plot .paper{{fill:{}}}.sf-plot text{{fill:{}}}.sf-plot .muted{{fill:{}}}\
         .sf-plot .axis{{stroke:{}}}.sf-plot .grid{{stroke:{}}}\
         .sf-plot .reference{{stroke:{}}}.sf-plot .halo{{stroke:{}}}",
        palette.paper,
        palette.ink,
        palette.muted,
        palette.axis,
        palette.grid,
        palette.ink,
        palette.paper,
    );
    for (index, colour) in palette.series.iter().enumerate() {
        write!(
            css,
            ".sf-plot .s{index}{{stroke:{colour}}}.sf-plot .f{index}{{fill:{colour}}}"
        )
        .expect("strings can be written to");
    }
    css
}

/// The style sheet of every plot.
pub fn style() -> String {
    let mut css = String::from(
        ".sf-plot{max-width:100%;height:auto;font:12.5px system-ui,-apple-system,'Segoe UI',Roboto,\
         'Helvetica Neue',Arial,sans-serif;font-variant-numeric:tabular-nums}\
         .sf-plot .title{font-size:14px;font-weight:600}\
         .sf-plot .small{font-size:11.5px}\
         .sf-plot .best{font-weight:600}\
         .sf-plot .axis,.sf-plot .grid{fill:none;stroke-width:1}\
         .sf-plot .reference{fill:none;stroke-width:1;stroke-dasharray:1.5 3}\
         .sf-plot .line{fill:none;stroke-width:2;stroke-linejoin:round}\
         .sf-plot .leader{fill:none;stroke-width:.75;stroke-dasharray:1 3;opacity:.75}\
         .sf-plot .band{fill-opacity:.14;stroke:none}\
         .sf-plot .bar{fill-opacity:.6;stroke-width:1}\
         .sf-plot .outline{fill:none;stroke-width:1.5}\
         .sf-plot .rug{stroke-width:1;opacity:.45}\
         .sf-plot .mark{stroke:none}\
         .sf-plot .spot{fill:none;stroke:transparent;stroke-width:14;stroke-linecap:round}\
         .sf-plot .halo{stroke-width:3.5;stroke-linejoin:round;paint-order:stroke}",
    );
    css += &colours(&LIGHT);
    for (index, dash) in DASHES.iter().enumerate() {
        write!(css, ".sf-plot .d{index}{{stroke-dasharray:{dash}}}")
            .expect("strings can be written to");
    }
    // Print stays light whatever the screen is.
    write!(
        css,
        "@media screen and (prefers-color-scheme:dark){{{}}}",
        colours(&DARK)
    )
    .expect("strings can be written to");
    // A plot that is scaled down to a telephone keeps its text readable.
    css += "@media screen and (max-width:480px){.sf-plot{font-size:14.5px}\
            .sf-plot .title{font-size:16px}.sf-plot .small{font-size:13.5px}\
            .sf-plot .long{font-size:11.5px}}";
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("hexadecimal");
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (a, b) = (luminance(one), luminance(other));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_lines_have_contrast() {
        for palette in [LIGHT, DARK] {
            assert!(contrast(palette.ink, palette.paper) > 12.0);
            assert!(contrast(palette.muted, palette.paper) > 4.5);
            for colour in palette.series {
                // Labels of series are text in the colour of the series.
                let ratio = contrast(colour, palette.paper);
                assert!(ratio > 3.5, "{colour}: {ratio}");
            }
        }
    }
}
