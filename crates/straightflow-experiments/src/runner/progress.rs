//! How far a run is, and how long it takes still.

use std::time::{Duration, Instant};

/// Where progress is shown.
pub trait Screen {
    /// The share of the run that is done, from 0 to 1, and the time that is left, once it can be judged.
    fn progress(&mut self, share: f64, left: Option<Duration>);

    /// A line beside the progress.
    fn note(&mut self, text: &str);
}

/// A screen that shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Screen for Nowhere {
    fn progress(&mut self, _share: f64, _left: Option<Duration>) {}

    fn note(&mut self, _text: &str) {}
}

/// The shares of the cells, and what of them this process did.
pub(super) struct Progress {
    start: Instant,
    shares: Vec<f64>,
    /// What was done of each cell before; unknown until it is looked at.
    before: Vec<Option<f64>>,
    pace: Pace,
}

impl Progress {
    pub(super) fn new(start: Instant, complete: &[bool]) -> Self {
        let share = |complete: &bool| if *complete { 1.0 } else { 0.0 };
        Self {
            start,
            shares: complete.iter().map(share).collect(),
            before: complete
                .iter()
                .map(|complete| complete.then_some(1.0))
                .collect(),
            pace: Pace::default(),
        }
    }

    /// A part of a cell is done.
    pub(super) fn set(&mut self, cell: usize, share: f64) {
        self.before[cell].get_or_insert(share);
        self.shares[cell] = share;
    }

    /// A cell has ended. One of which no share was told was complete before, or is one without parts.
    pub(super) fn end(&mut self, cell: usize, worked: bool) {
        let before = if worked { 0.0 } else { 1.0 };
        if *self.before[cell].get_or_insert(before) < 1.0 {
            self.finish_part();
        }
        self.shares[cell] = 1.0;
    }

    /// This process has finished a part. Before the first of them nothing is said about the time.
    pub(super) fn finish_part(&mut self) {
        self.pace.parts += 1;
    }

    /// The share of the run that this process did.
    pub(super) fn own_share(&self) -> f64 {
        mean(&self.shares) - self.before()
    }

    fn before(&self) -> f64 {
        let before = self.before.iter().map(|share| share.unwrap_or(0.0));
        mean(&before.collect::<Vec<f64>>())
    }

    pub(super) fn show(&self, screen: &mut dyn Screen) {
        let share = mean(&self.shares);
        let left = self.pace.left(self.before(), share, self.start.elapsed());
        screen.progress(share, left);
    }
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// What is known about the speed of this process.
#[derive(Default)]
struct Pace {
    /// The parts that it has finished.
    parts: usize,
}

impl Pace {
    /// The time that is left if the rest goes as what this process did.
    fn left(&self, before: f64, share: f64, spent: Duration) -> Option<Duration> {
        let done = share - before;
        if self.parts == 0 || done <= 0.0 {
            return None;
        }
        let seconds = spent.as_secs_f64() * (1.0 - share).max(0.0) / done;
        Duration::try_from_secs_f64(seconds).ok()
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
        assert_eq!(pace.left(0.0, 0.5, seconds(10)), None);
        pace.parts = 1;
        assert_eq!(pace.left(0.0, 0.5, seconds(10)), Some(seconds(10)));
        assert_eq!(pace.left(0.0, 1.0, seconds(20)), Some(seconds(0)));
    }

    /// What was recorded before took this process no time, and says nothing about its speed.
    #[test]
    fn only_the_work_of_this_process_counts() {
        let pace = Pace { parts: 1 };
        assert_eq!(pace.left(0.75, 0.875, seconds(60)), Some(seconds(60)));
        assert_eq!(pace.left(0.75, 0.75, seconds(60)), None);

        let mut progress = Progress::new(Instant::now(), &[true, false, false, false]);
        // One resumes from its middle, one was complete in a directory of its own, one is new.
        progress.set(1, 0.5);
        progress.end(1, true);
        progress.end(2, false);
        progress.end(3, true);
        assert_eq!(progress.own_share(), (0.5 + 1.0) / 4.0);
    }
}
