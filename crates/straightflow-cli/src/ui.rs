//! What all commands share: exit codes, and lines on the two outputs.

use std::fmt;
use std::io::{self, Write};

use straightflow_experiments::runner::RunError;
use straightflow_experiments::vae::VaeError;
use straightflow_report::html::ReportError;

use crate::grid::TryAgain;
use crate::interrupt::Interrupted;

/// The exit code of an error: 2 if what was asked for is the mistake, 1 if it is what happened on
/// the way, 75 if a cell of a grid is to be tried again, and 128 and the number of a signal that interrupted a run.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        return interrupted.exit_code();
    }
    let run = error.downcast_ref::<RunError>();
    let busy = matches!(run, Some(RunError::Grid(error)) if error.is_temporary());
    if busy || error.is::<TryAgain>() {
        return TryAgain::CODE;
    }
    let vae = error.downcast_ref::<VaeError>();
    let bad_input = error.is::<ReportError>()
        || error.is::<clap::Error>()
        || run.is_some_and(RunError::is_bad_input)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_tell_whose_mistake_it_is() {
        let cause = || io::Error::other("the cause");
        assert_eq!(exit_code(&RunError::refused(cause()).into()), 2);
        assert_eq!(exit_code(&RunError::failed(cause()).into()), 1);
        assert_eq!(exit_code(&anyhow::anyhow!("a failed run")), 1);
        let interrupted = Interrupted {
            signal: 15,
            recorded: true,
        };
        assert_eq!(exit_code(&interrupted.into()), 143);
    }
}
