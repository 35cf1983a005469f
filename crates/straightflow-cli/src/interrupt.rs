//! SIGINT and SIGTERM: the first one asks a run to stop where it is, the second one ends the process.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use straightflow_experiments::runner::Interrupt;

/// A run that was stopped by a signal.
#[derive(Debug)]
pub struct Interrupted {
    /// The number of the signal.
    pub signal: usize,
    /// Whether the run has a directory.
    pub recorded: bool,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match i32::try_from(self.signal) {
            Ok(SIGINT) => "SIGINT",
            Ok(SIGTERM) => "SIGTERM",
            _ => "a signal",
        };
        let then = match self.recorded {
            true => "repeat the command to resume",
            false => "nothing was recorded",
        };
        write!(f, "interrupted by {name}; {then}")
    }
}

impl std::error::Error for Interrupted {}

impl Interrupted {
    /// The exit code that shells give to a process that a signal ended.
    pub fn exit_code(&self) -> u8 {
        u8::try_from(128 + self.signal).unwrap_or(1)
    }
}

/// Begins to listen to the signals, once for the whole process. Commands that do not call this are ended by
/// them at once, as usual.
pub fn handler() -> io::Result<&'static Interrupt> {
    listen(&[SIGINT, SIGTERM])
}

/// Like [`handler`], but a second SIGTERM changes nothing: a scheduler may send several, to the process and
/// to the script around it, and says with SIGKILL that it has no more patience.
pub fn patient_handler() -> io::Result<&'static Interrupt> {
    listen(&[SIGINT])
}

/// Listens, and ends with the second of some signals.
fn listen(impatient: &[i32]) -> io::Result<&'static Interrupt> {
    static HANDLER: OnceLock<Interrupt> = OnceLock::new();
    if let Some(interrupt) = HANDLER.get() {
        return Ok(interrupt);
    }
    let interrupt = Interrupt::default();
    for signal in [SIGINT, SIGTERM] {
        // In this order: a flag that is set already ends the process, and only then is it set.
        if impatient.contains(&signal) {
            flag::register_conditional_shutdown(signal, 128 + signal, interrupt.again())?;
        }
        flag::register(signal, interrupt.again())?;
        flag::register_usize(signal, interrupt.flag(), signal as usize)?;
    }
    Ok(HANDLER.get_or_init(|| interrupt))
}
