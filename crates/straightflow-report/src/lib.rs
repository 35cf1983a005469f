//! Run records to tables, SVG plots, pictures and one self-contained HTML page. No tensors in here.
//!
//! * [`record`]: the directory of a run, which is written during the run and read when it is
//!   resumed.
//! * [`plot`]: numbers and labels to SVG.
//! * [`picture`]: greyscale images to PNG.
//! * [`page`]: what is said about a run, for the terminal, the report and JSON.
//! * [`html`]: run directories to one page.

pub mod html;
pub mod page;
pub mod picture;
pub mod plot;
pub mod record;

pub use record::{RecordError, Run};
