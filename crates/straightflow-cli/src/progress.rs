//! How far a run is, and how long it takes still.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::ui::say;

/// Progress on stderr: a bar with the time that is left on a terminal, a line for each tenth
/// elsewhere.
pub struct Progress {
    label: &'static str,
    bar: ProgressBar,
    terminal: bool,
    start: Instant,
    pace: Pace,
    /// The tenth that was printed last.
    tenth: Option<u32>,
}

const STEPS: u64 = 1000;

impl Progress {
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
            start: Instant::now(),
            pace: Pace::default(),
            tenth: None,
        }
    }

    /// The share that is done, from 0 to 1. What the first call says was done before.
    pub fn set(&mut self, share: f64) {
        self.pace.before.get_or_insert(share);
        let left = match self.pace.left(share, self.start.elapsed()) {
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

    /// The share that earlier processes did, where the first call of [`set`](Self::set) does not know it.
    pub fn set_before(&mut self, share: f64) {
        self.pace.before = Some(share);
    }

    /// This process has finished a part. Before the first of them nothing is said about the time.
    pub fn finish_part(&mut self) {
        self.pace.parts += 1;
    }

    /// A line beside the progress.
    pub fn note(&self, text: &str) {
        let label = self.label;
        self.bar.suspend(|| say(format_args!("{label}: {text}")));
    }

    /// Removes the bar.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// What is known about the speed of this process.
#[derive(Default)]
struct Pace {
    /// The share that was done before it began.
    before: Option<f64>,
    /// The parts that it has finished.
    parts: usize,
}

impl Pace {
    /// The time that is left if the rest goes as what this process did.
    fn left(&self, share: f64, spent: Duration) -> Option<Duration> {
        let done = share - self.before?;
        if self.parts == 0 || done <= 0.0 {
            return None;
        }
        let seconds = spent.as_secs_f64() * (1.0 - share).max(0.0) / done;
        Duration::try_from_secs_f64(seconds).ok()
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

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn nothing_is_said_before_a_part_is_finished() {
        let mut pace = Pace::default();
        assert_eq!(pace.left(0.5, seconds(10)), None);
        pace.before = Some(0.0);
        assert_eq!(pace.left(0.5, seconds(10)), None);
        pace.parts = 1;
        assert_eq!(pace.left(0.5, seconds(10)), Some(seconds(10)));
        assert_eq!(pace.left(1.0, seconds(20)), Some(seconds(0)));
    }

    /// What was recorded before took this process no time, and says nothing about its speed.
    #[test]
    fn only_the_work_of_this_process_counts() {
        let pace = Pace {
            before: Some(0.75),
            parts: 1,
        };
        assert_eq!(pace.left(0.875, seconds(60)), Some(seconds(60)));
        assert_eq!(pace.left(0.75, seconds(60)), None);
    }

    #[test]
    fn times_are_short() {
        assert_eq!(words(seconds(42)), "42 s");
        assert_eq!(words(seconds(300)), "5 min");
        assert_eq!(words(seconds(9000)), "2.5 h");
    }
}
