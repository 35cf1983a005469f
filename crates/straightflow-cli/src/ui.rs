//! What all commands share: exit codes, and what a run notes about its machine.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Instant, SystemTime};

use serde::Serialize;
use straightflow_experiments::poisson::GameError;
use straightflow_experiments::vae::VaeError;
use straightflow_report::RecordError;
use straightflow_report::html::ReportError;

/// An error that is the user's to mend and has no type that says so.
#[derive(Debug)]
pub struct BadInput(anyhow::Error);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for BadInput {}

/// Marks an error as the user's to mend.
pub fn bad_input(error: impl Into<anyhow::Error>) -> anyhow::Error {
    BadInput(error.into()).into()
}

/// The exit code of an error: 2 if what was asked for is the mistake, 1 if it is what happened on
/// the way.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let record = error.downcast_ref::<RecordError>();
    let game = error.downcast_ref::<GameError>();
    let vae = error.downcast_ref::<VaeError>();
    let bad_input = error.is::<BadInput>()
        || error.is::<ReportError>()
        || record.is_some_and(RecordError::is_bad_input)
        || game.is_some_and(GameError::is_bad_input)
        || vae.is_some_and(VaeError::is_bad_input);
    if bad_input { 2 } else { 1 }
}

/// A line on stderr. That nobody reads it is no reason to end, and `eprintln` would panic.
pub fn say(line: fmt::Arguments) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What is printed on stdout, with errors that say so.
pub struct Printed<W>(pub W);

impl<W: Write> Write for Printed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(unprinted)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(unprinted)
    }
}

fn unprinted(error: io::Error) -> io::Error {
    match error.kind() {
        // The loop around `write` tries these again.
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("the output cannot be written: {error}")),
    }
}

/// Says where a run was recorded, or how it would be.
pub fn where_recorded(directory: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    match directory {
        Some(path) => writeln!(out, "\nRecorded in {}.", path.display()),
        None => writeln!(
            out,
            "\nNothing was recorded; --out DIR keeps the run and its plots."
        ),
    }
}

/// A command line as it is to be repeated: by the name of the program, and without the options that
/// say where results go and how many threads work on them.
pub fn command_line(words: &[String]) -> String {
    const ASIDE: [(&str, bool); 3] = [("--out", true), ("--jobs", true), ("--json", false)];
    let mut line = "straightflow".to_owned();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        if let Some((_, takes_value)) = ASIDE.iter().find(|(aside, _)| *aside == name) {
            if *takes_value && name == word {
                words.next();
            }
            continue;
        }
        line.push(' ');
        line += &quoted(word);
    }
    line
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=.,:/@+%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What a run notes about its time and machine, beside the results.
#[derive(Serialize)]
pub struct Timing {
    /// The command line, without the options that do not change results.
    command: String,
    /// When the run ended.
    date: String,
    /// The seconds that this process worked on it.
    seconds: f64,
    /// The share of the run that this process did; the rest was recorded before.
    share: f64,
    jobs: usize,
    cpu: String,
    cores: usize,
    version: &'static str,
    system: &'static str,
}

impl Timing {
    /// The notes of work that began at `start`.
    pub fn since(start: Instant, share: f64, jobs: usize, command: String) -> Self {
        Self {
            command,
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            seconds: (start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            share,
            jobs,
            cpu: cpu().unwrap_or_else(|| "unknown".to_owned()),
            cores: cores(),
            version: env!("CARGO_PKG_VERSION"),
            system: std::env::consts::OS,
        }
    }
}

/// The number of threads that run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The name of the processor, where the system tells it.
pub fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_what_repeats_the_results() {
        let words = "target/release/straightflow poisson --out runs/a --seeds 5 --jobs=2 --json";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(command_line(&words), "straightflow poisson --seeds 5");
        let words = ["straightflow", "vae", "--data", "the data", "1>0.1@1e-5"];
        let line = command_line(&words.map(str::to_owned));
        assert_eq!(line, "straightflow vae --data 'the data' '1>0.1@1e-5'");
    }

    #[test]
    fn bad_input_keeps_its_causes_in_one_sentence() {
        let cause = std::io::Error::other("the cause");
        let error = bad_input(anyhow::Error::from(cause).context("what was wrong"));
        assert_eq!(format!("{error:#}"), "what was wrong: the cause");
        assert_eq!(exit_code(&error), 2);
        assert_eq!(exit_code(&anyhow::anyhow!("a failed run")), 1);
    }
}
