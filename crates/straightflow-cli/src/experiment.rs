//! The command of an experiment: runs it and prints what is said about it.

use std::ffi::OsString;
use std::io::Write;

use clap::ArgMatches;
use straightflow_experiments::runner::RunError;
use straightflow_experiments::{Completed, Entry, Session};

use crate::grid;
use crate::interrupt::{self, Interrupted};
use crate::screen::Terminal;

pub fn run(
    entry: &Entry,
    matches: &ArgMatches,
    words: &[OsString],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let interrupt = interrupt::handler()?;
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let session = Session {
        words: &words,
        interrupt,
    };
    if let Some(submitted) = entry.submit(matches, &session)? {
        return grid::print_submitted(&submitted, out);
    }
    let mut screen = Terminal::new(entry.id);
    let completed = entry.run(matches, &session, &mut screen);
    screen.finish();
    let completed = match (completed, interrupt.signal()) {
        (Err(RunError::Stopped), Some(signal)) => {
            let recorded = matches.get_raw("out").is_some();
            return Err(Interrupted { signal, recorded }.into());
        }
        (completed, _) => completed?,
    };
    print(completed, out)
}

/// Prints a finished run, and has the error of cells that failed.
pub fn print(completed: Completed, out: &mut impl Write) -> anyhow::Result<()> {
    match completed.json {
        Some(json) => writeln!(out, "{json}")?,
        None => {
            write!(out, "{}", completed.page.text())?;
            match completed.directory {
                Some(path) => writeln!(out, "\nRecorded in {}.", path.display())?,
                None => writeln!(
                    out,
                    "\nNothing was recorded; --out DIR keeps the run and its plots."
                )?,
            }
        }
    }
    completed.failure.map_or(Ok(()), |error| Err(error.into()))
}
