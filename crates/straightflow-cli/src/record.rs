//! The record of a run that consists of units, for the commands that have no loop of their own.

use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use straightflow_report::record::{SUMMARY, TIMING};
use straightflow_report::{RecordError, Run};

use crate::progress::Progress;
use crate::ui::{Timing, bad_input, cores};

/// A configuration as it is recorded: with the experiment and the version before it.
#[derive(Serialize)]
struct Recorded<'a, C> {
    experiment: &'static str,
    version: &'static str,
    #[serde(flatten)]
    config: &'a C,
}

/// A run in a directory, or one that is not recorded.
pub struct Record {
    experiment: &'static str,
    command: String,
    run: Option<Run>,
    start: Instant,
    /// The units that this process did.
    worked: usize,
}

impl Record {
    /// Opens or continues the run of a directory, if there is one.
    pub fn open<C: Serialize>(
        out: Option<&Path>,
        experiment: &'static str,
        command: String,
        config: &C,
    ) -> anyhow::Result<Self> {
        let recorded = Recorded {
            experiment,
            version: env!("CARGO_PKG_VERSION"),
            config,
        };
        let run = out.map(|path| Run::open(path, &recorded).map_err(sort));
        Ok(Self {
            experiment,
            command,
            run: run.transpose()?,
            start: Instant::now(),
            worked: 0,
        })
    }

    /// The results of all units: those that are recorded, and then those that `work` computes.
    pub fn units<T: Serialize + DeserializeOwned>(
        &mut self,
        count: usize,
        work: impl Fn(usize) -> anyhow::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let mut results: Vec<T> = match &self.run {
            Some(run) => run.metrics().map_err(sort)?,
            None => Vec::new(),
        };
        let mut progress = Progress::new(self.experiment);
        for unit in results.len()..count {
            progress.set(unit as f64 / count as f64);
            let result = work(unit)?;
            if let Some(run) = &mut self.run {
                run.append(&result).map_err(sort)?;
            }
            self.worked += 1;
            progress.finish_part();
            results.push(result);
        }
        progress.set(1.0);
        progress.finish();
        Ok(results)
    }

    /// Writes the plots, each with the name of its file, and the summary.
    pub fn finish<S: Serialize>(
        &self,
        summary: &S,
        plots: &[(String, String)],
        units: usize,
    ) -> anyhow::Result<()> {
        let Some(run) = &self.run else {
            return Ok(());
        };
        for (name, svg) in plots {
            run.write_text(name, svg)?;
        }
        // A process that was killed after its last unit leaves a complete run without its notes.
        if self.worked > 0 || !run.path().join(TIMING).exists() {
            let share = self.worked as f64 / units as f64;
            run.write_json(
                TIMING,
                &Timing::since(self.start, share, cores(), self.command.clone()),
            )?;
        }
        // The summary is last: a directory that has one is complete.
        run.write_json(SUMMARY, summary)?;
        Ok(())
    }
}

fn sort(error: RecordError) -> anyhow::Error {
    match error.is_bad_input() {
        true => bad_input(error),
        false => error.into(),
    }
}
