//! The list of experiments, each as something that can be called by its name.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use straightflow_report::page::Page;
use straightflow_report::record::{CONFIG, SUMMARY};

use crate::experiment::{Experiment, Plan};
use crate::runner::{
    Assignment, ConfigError, Interrupt, Results, RunError, Screen, command_line, read_config, work,
};

/// The options that all experiments have.
#[derive(Args, Debug)]
struct Common {
    /// Read the settings from a config.toml; other options override them.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    config: Option<PathBuf>,
    /// Record the run in this directory. An interrupted run that is there resumes.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the run in --out with its recorded settings. Options that are given must agree with them;
    /// only autoencoders may be given more epochs.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Threads; the results do not depend on them [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// An experiment of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in commands and records.
    pub id: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Examples of command lines.
    pub examples: &'static str,
    /// The space-separated settings of a run of a second or two that shows everything, for tests.
    pub small: &'static str,
    /// Its part of a quick reproduction.
    pub quick: &'static [Plan],
    /// Its part of a whole reproduction.
    pub full: &'static [Plan],
    arguments: fn(Command) -> Command,
    run: fn(&ArgMatches, &Session, &mut dyn Screen) -> Result<Completed, RunError>,
    show: fn(&Value) -> Result<Page, serde_json::Error>,
}

/// Who asks for a run.
#[derive(Clone, Copy, Debug)]
pub struct Session<'a> {
    /// The command line, with the name of the program.
    pub words: &'a [String],
    /// Whether it is to stop.
    pub interrupt: &'a Interrupt,
}

/// A finished run, as it is shown.
#[derive(Debug)]
pub struct Completed {
    /// What is said about it.
    pub page: Page,
    /// The summary as JSON, if it was asked for.
    pub json: Option<String>,
    /// Where it was recorded.
    pub directory: Option<PathBuf>,
    /// Cells that failed, while the others have their results.
    pub failure: Option<RunError>,
}

impl Entry {
    /// The entry of an experiment.
    pub const fn of<E: Experiment>() -> Self {
        Self {
            id: E::ID,
            about: E::ABOUT,
            examples: E::EXAMPLES,
            small: E::SMALL,
            quick: E::QUICK,
            full: E::FULL,
            arguments: arguments::<E>,
            run: run::<E>,
            show: |summary| Ok(E::show(&serde::Deserialize::deserialize(summary)?)),
        }
    }

    /// The command of the experiment, with all of its options.
    pub fn command(&self) -> Command {
        // After the arguments, which bring descriptions of their own.
        (self.arguments)(Command::new(self.id))
            .about(self.about.trim_end_matches('.'))
            .long_about(None)
            .after_help(self.examples)
    }

    /// Runs the experiment as its command asks for.
    ///
    /// # Errors
    ///
    /// Invalid settings, or a failure on the way.
    pub fn run(
        &self,
        matches: &ArgMatches,
        session: &Session,
        screen: &mut dyn Screen,
    ) -> Result<Completed, RunError> {
        (self.run)(matches, session, screen)
    }

    /// What is said about a summary.
    ///
    /// # Errors
    ///
    /// If it is not a summary of this experiment.
    pub fn show(&self, summary: &Value) -> Result<Page, serde_json::Error> {
        (self.show)(summary)
    }
}

fn arguments<E: Experiment>(command: Command) -> Command {
    let command = Common::augment_args(E::Arguments::augment_args(command));
    command.mut_arg("out", |out| out.required(E::NEEDS_DIRECTORY))
}

fn run<E: Experiment>(
    matches: &ArgMatches,
    session: &Session,
    screen: &mut dyn Screen,
) -> Result<Completed, RunError> {
    let common = Common::from_arg_matches(matches).map_err(RunError::refused)?;
    let arguments = E::Arguments::from_arg_matches(matches).map_err(RunError::refused)?;
    let recorded = recorded::<E>(&common)?;
    let from_a_file = recorded.is_some();
    let experiment = E::prepare(&arguments, recorded)?;
    let repeating = experiment.repeating(&arguments);
    let words = repeating.filter(|_| from_a_file);
    let command = command_line(words.as_deref().unwrap_or(session.words));
    let stop = || session.interrupt.signal().is_some();
    let assignment = Assignment {
        directory: common.out.as_deref(),
        jobs: common.jobs.map_or(0, usize::from),
        command: &command,
        may_grow: common.resume,
        stop: &stop,
    };
    let mut done = work(&experiment, &assignment, screen)?;
    E::select(&arguments, &mut done.summary);
    let json = common.json.then(|| {
        let results = Results::of::<E>(&done.summary);
        serde_json::to_string_pretty(&results).map_err(RunError::failed)
    });
    Ok(Completed {
        page: E::show(&done.summary),
        json: json.transpose()?,
        directory: common.out,
        failure: unfinished(done.failures),
    })
}

/// The configuration to start from.
fn recorded<E: Experiment>(common: &Common) -> Result<Option<E::Config>, ConfigError> {
    match (&common.config, &common.out) {
        (Some(path), _) => read_config(path, E::ID).map(Some),
        (None, Some(out)) if common.resume => {
            let config = read_config(&out.join(CONFIG), E::ID);
            config.map(Some).map_err(|error| ConfigError::NothingThere {
                path: out.clone(),
                source: Box::new(error),
            })
        }
        _ => Ok(None),
    }
}

fn unfinished(failures: Vec<(String, String)>) -> Option<RunError> {
    let others = match failures.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more, see {SUMMARY})", count - 1),
    };
    let (cell, reason) = failures.into_iter().next()?;
    Some(RunError::Unfinished {
        cell,
        others,
        reason,
    })
}
