//! Run directories to one page of HTML that needs nothing else: no network, no scripts, no fonts.
//!
//! The page follows the reader's preference for light or dark, prints in light colours, and holds
//! tables that scroll by themselves on narrow screens. The same runs give the same bytes.

mod error;
mod figure;
mod image;
mod layout;
mod load;
mod opening;
mod unknown;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use error::ReportError;
use load::Recorded;

use crate::page::Page;
use crate::record;

/// What the head of every report says, by which an older one is known.
const GENERATOR: &str = "straightflow-report";

/// What is said about the summary of an experiment: a page, or why it is not a summary of it; none for an
/// experiment that is not known, which gets a table of its fields.
pub type Show<'a> =
    dyn Fn(&str, &serde_json::Value) -> Option<Result<Page, serde_json::Error>> + 'a;

/// The page for these run directories, in the order of the argument.
///
/// # Errors
/// There is no directory, one of them is not a finished run or named twice, or a file in it is not
/// what a run has there.
pub fn render<P: AsRef<Path>>(directories: &[P], show: &Show) -> Result<String, ReportError> {
    Ok(layout::render(&read(directories, show)?))
}

/// What the terminal shows of these run directories, in the order of the argument.
///
/// # Errors
/// Those of [`render`].
pub fn text<P: AsRef<Path>>(directories: &[P], show: &Show) -> Result<String, ReportError> {
    let runs = read(directories, show)?;
    let texts: Vec<String> = runs.iter().map(|run| run.page.text()).collect();
    Ok(texts.join("\n"))
}

fn read<P: AsRef<Path>>(directories: &[P], show: &Show) -> Result<Vec<Recorded>, ReportError> {
    if directories.is_empty() {
        return Err(ReportError::Nothing);
    }
    let mut runs: Vec<Recorded> = Vec::new();
    for directory in directories {
        let run = Recorded::read(directory.as_ref(), show)?;
        // The configuration determines the results, so the same one twice is the same run twice.
        if let Some(same) = runs
            .iter()
            .find(|other| other.config_text == run.config_text)
        {
            return Err(ReportError::Duplicate {
                first: same.directory.clone(),
                second: run.directory,
            });
        }
        runs.push(run);
    }
    // The order of the argument; runs of one place stay as they were named.
    runs.sort_by_key(|run| run.page.place);
    Ok(runs)
}

/// Writes a page as a whole. An older report is replaced, anything else is not.
///
/// # Errors
/// There is another file in its place, or it cannot be written.
pub fn write(path: &Path, page: &str) -> Result<(), ReportError> {
    let failed = |reason| ReportError::Write {
        path: path.to_owned(),
        reason,
    };
    match fs::read(path) {
        Ok(old) if !is_report(&old) => {
            return Err(ReportError::NotAReport {
                path: path.to_owned(),
            });
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    record::write_file(path, page).map_err(failed)
}

fn is_report(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1000)]);
    head.contains(&format!("<meta name=\"generator\" content=\"{GENERATOR}"))
}

/// The directories as they are shown: without what they have in common with others.
fn short_name(directory: &Path) -> String {
    let name = directory.file_name().map(PathBuf::from);
    name.unwrap_or_else(|| directory.to_owned())
        .display()
        .to_string()
}
