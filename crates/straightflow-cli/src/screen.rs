//! Progress on stderr.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use straightflow_experiments::runner::Screen;

use crate::ui::say;

/// A bar with the time that is left on a terminal, a line for each tenth elsewhere.
pub struct Terminal {
    label: &'static str,
    bar: ProgressBar,
    terminal: bool,
    /// The tenth that was printed last.
    tenth: Option<u32>,
}

const STEPS: u64 = 1000;

impl Terminal {
    /// Progress of what `label` says.
    pub fn new(label: &'static str) -> Self {
        let terminal = io::stderr().is_terminal();
        let bar = if terminal {
            // No colours, so there are none to switch off.
            let style = ProgressStyle::with_template("{prefix} [{bar:40}] {percent:>3} %{msg}");
            let bar = ProgressBar::new(STEPS);
            bar.set_style(style.expect("a valid template").progress_chars("=> "));
            bar.set_prefix(label);
            bar
        } else {
            ProgressBar::hidden()
        };
        Self {
            label,
            bar,
            terminal,
            tenth: None,
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Screen for Terminal {
    fn progress(&mut self, share: f64, left: Option<Duration>) {
        let left = match left {
            Some(left) => format!(", {} left", words(left)),
            None => String::new(),
        };
        let tenth = (share * 10.0) as u32;
        let last = *self.tenth.get_or_insert(tenth);
        if self.terminal {
            self.bar.set_message(left);
            self.bar.set_position((share * STEPS as f64) as u64);
        } else if tenth > last {
            self.tenth = Some(tenth);
            say(format_args!("{}: {} %{left}", self.label, 10 * tenth));
        }
    }

    fn note(&mut self, text: &str) {
        let label = self.label;
        self.bar.suspend(|| say(format_args!("{label}: {text}")));
    }
}

/// A time in two digits or so.
fn words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let words = |seconds| words(Duration::from_secs(seconds));
        assert_eq!(words(42), "42 s");
        assert_eq!(words(300), "5 min");
        assert_eq!(words(9000), "2.5 h");
    }
}
