//! What a run notes about its time and machine, beside the results.

use std::time::{Instant, SystemTime};

use serde::Serialize;

/// The notes of a process about a run.
#[derive(Serialize)]
pub(super) struct Timing {
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
    pub(super) fn since(start: Instant, share: f64, jobs: usize, command: &str) -> Self {
        Self {
            command: command.to_owned(),
            date: now(),
            seconds: (start.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            share,
            jobs,
            cpu: cpu(),
            cores: cores(),
            version: env!("CARGO_PKG_VERSION"),
            system: std::env::consts::OS,
        }
    }
}

/// The date and the time of the day.
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The number of threads that run at once.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The name of the processor, where the system tells it.
pub fn cpu() -> String {
    let name = || {
        let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    name().unwrap_or_else(|| "unknown".to_owned())
}
