//! Plots as SVG, from numbers and labels alone.
//!
//! Each kind of plot is a plain structure with a method `svg`, which returns a file that stands on
//! its own. Its colours follow the reader's preference for light or dark, it prints in the light
//! ones, and it can be put into a page as it is. Nothing depends on colours alone. A plot that gets
//! numbers which are not finite leaves them out; none fails.
//!
//! ```
//! use straightflow_report::plot::{Curves, Line, Reference};
//!
//! let line = |label: &str, pace: f64| Line {
//!     label: label.into(),
//!     points: (0..50).map(|step| (f64::from(step), 5.0 - 4.0 * (-pace * f64::from(step)).exp())).collect(),
//!     ..Line::default()
//! };
//! let plot = Curves {
//!     title: "The rate over the steps".into(),
//!     x_label: "step".into(),
//!     y_label: "rate".into(),
//!     lines: vec![line("fast", 0.2), line("slow", 0.1)],
//!     reference: Some(Reference { label: "the rate of the data".into(), value: 5.0 }),
//!     ..Curves::default()
//! };
//! assert!(plot.svg().starts_with("<svg"));
//! ```

mod curves;
mod dots;
mod flow;
mod frame;
mod labels;
mod pareto;
mod scale;
mod svg;
mod theme;
mod trace;

pub use curves::{Curves, Line, Reference, Weights};
pub use dots::{Dot, Dots};
pub use flow::Flow;
pub use pareto::{Candidate, Pareto};
pub use scale::Axis;

pub(crate) use frame::CLASS;
pub(crate) use scale::sign;
pub(crate) use theme::style;
