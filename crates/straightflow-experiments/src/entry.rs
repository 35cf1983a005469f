//! The list of experiments, each as something that can be called by its name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde_json::Value;
use straightflow_report::page::Page;
use straightflow_report::record::{CONFIG, SUMMARY};

use crate::arguments::word;
use crate::experiment::{Experiment, Plan};
use crate::grid::{
    self, Grid, SCHEDULERS, Scheduler, Selection, Submission, Submitted, Task, submit, work_on,
};
use crate::runner::{
    Assignment, ConfigError, Interrupt, Results, RunError, Screen, command_line, read_config, work,
};

/// The options that all experiments have.
#[derive(Args, Debug)]
struct Common {
    /// Read the settings from a config.toml; other options override them.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    config: Option<PathBuf>,
    /// Record the run in this directory, or resume an interrupted run found there.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume the run in --out with its recorded settings. Other options must agree with them, except
    /// that a run may grow: more --epochs, and in `table2` more --seeds, --arch and --estimators.
    #[arg(long, requires = "out")]
    resume: bool,
    /// The number of threads; results do not depend on it [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    cluster: Cluster,
}

/// Options for many machines.
#[derive(Args, Debug)]
#[command(next_help_heading = "On a cluster")]
struct Cluster {
    /// Run each cell (an independent part of the run) as its own task, on machines that share --out; then
    /// use `status` and `gather`.
    #[arg(long, value_name = "TO", requires = "out", value_parser = word::<Scheduler>(SCHEDULERS))]
    submit: Option<Scheduler>,
    /// Submit only these cells: `failed`, or numbers such as 3,7-9 [default: all unfinished cells].
    #[arg(long, value_name = "CELLS", requires = "submit")]
    cells: Option<Selection>,
    /// The Slurm partition.
    #[arg(long, value_name = "NAME", requires = "submit")]
    partition: Option<String>,
    /// The time limit of a task in Slurm's format, such as 04:00:00; a cell that needs longer resumes in
    /// the next one.
    #[arg(long, value_name = "TIME", requires = "submit")]
    time: Option<String>,
    /// Cores per task [default: 1].
    #[arg(long, value_name = "N", requires = "submit", value_parser = clap::value_parser!(u16).range(1..))]
    cpus_per_task: Option<u16>,
    /// Run at most this many tasks at once.
    #[arg(long, value_name = "N", requires = "submit", value_parser = clap::value_parser!(u32).range(1..))]
    array_limit: Option<u32>,
    /// Seconds without a heartbeat after which another task takes over a cell [default: 120].
    #[arg(long, value_name = "SECONDS", requires = "submit", value_parser = clap::value_parser!(u64).range(1..))]
    lease: Option<u64>,
}

/// The seconds of a lease: longer than network file systems keep what they read of a directory.
const LEASE: u64 = 120;

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
    submit: fn(&ArgMatches, &Session) -> Result<Option<Submitted>, RunError>,
    cell: fn(&ArgMatches, &Task, &mut dyn Screen) -> Result<bool, RunError>,
    gather: fn(&ArgMatches, &Grid, &Session, &mut dyn Screen) -> Result<Completed, RunError>,
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
            submit: submission::<E>,
            cell: cell::<E>,
            gather: gather::<E>,
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

    /// Submits the cells of the experiment as tasks; none if its command asks for a run of its own.
    ///
    /// # Errors
    ///
    /// Invalid settings, or a scheduler that does not take them.
    pub fn submit(
        &self,
        matches: &ArgMatches,
        session: &Session,
    ) -> Result<Option<Submitted>, RunError> {
        (self.submit)(matches, session)
    }

    /// Works on a cell of the grid in a directory; false if it was done before.
    ///
    /// # Errors
    ///
    /// [`RunError::Stopped`] after a signal, another process that works on the cell, and whatever can go
    /// wrong.
    pub fn cell(
        &self,
        directory: &Path,
        cell: usize,
        jobs: usize,
        session: &Session,
        screen: &mut dyn Screen,
    ) -> Result<bool, RunError> {
        let grid = Grid::read(directory)?;
        let stop = || session.interrupt.signal().is_some();
        let task = Task {
            grid: &grid,
            directory,
            cell,
            jobs,
            stop: &stop,
        };
        (self.cell)(&self.matches(&grid, directory)?, &task, screen)
    }

    /// The results of the grid in a directory, whose cells have all ended.
    ///
    /// # Errors
    ///
    /// If cells are missing, and as [`run`](Self::run).
    pub fn gather(
        &self,
        directory: &Path,
        session: &Session,
        screen: &mut dyn Screen,
    ) -> Result<Completed, RunError> {
        let grid = Grid::read(directory)?;
        (self.gather)(&self.matches(&grid, directory)?, &grid, session, screen)
    }

    /// The command line that a grid was submitted with.
    fn matches(&self, grid: &Grid, directory: &Path) -> Result<ArgMatches, RunError> {
        let words = grid.command.iter().skip(1).map(OsString::from);
        let out = [OsString::from("--out"), directory.into()];
        let matches = self.command().try_get_matches_from(words.chain(out));
        matches.map_err(RunError::refused)
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
    let command = command.mut_arg("out", |out| out.required(E::NEEDS_DIRECTORY));
    match E::GROWS {
        true => command,
        false => command.mut_arg("resume", |resume| {
            resume.help("Resume the run in --out with its recorded settings. Other options must agree with them")
        }),
    }
}

/// The options of all experiments, and those of this one.
fn parsed<E: Experiment>(matches: &ArgMatches) -> Result<(Common, E::Arguments), RunError> {
    let common = Common::from_arg_matches(matches).map_err(RunError::refused)?;
    let arguments = E::Arguments::from_arg_matches(matches).map_err(RunError::refused)?;
    Ok((common, arguments))
}

fn submission<E: Experiment>(
    matches: &ArgMatches,
    session: &Session,
) -> Result<Option<Submitted>, RunError> {
    let (common, arguments) = parsed::<E>(matches)?;
    let (Some(scheduler), Some(out)) = (common.cluster.submit, &common.out) else {
        return Ok(None);
    };
    let experiment = E::prepare(&arguments, recorded::<E>(&common)?)?;
    let cluster = &common.cluster;
    let submission = Submission {
        scheduler,
        directory: out,
        words: session.words,
        may_grow: common.resume,
        selection: cluster.cells.as_ref(),
        lease_seconds: cluster.lease.unwrap_or(LEASE),
        cpus: cluster.cpus_per_task.unwrap_or(1),
        limit: cluster.array_limit,
        partition: cluster.partition.as_deref(),
        time: cluster.time.as_deref(),
    };
    submit(&experiment, &submission).map(Some)
}

fn cell<E: Experiment>(
    matches: &ArgMatches,
    task: &Task,
    screen: &mut dyn Screen,
) -> Result<bool, RunError> {
    let (_, arguments) = parsed::<E>(matches)?;
    let prepare = |config| E::prepare(&arguments, Some(config));
    work_on(task, prepare, screen)
}

fn gather<E: Experiment>(
    matches: &ArgMatches,
    grid: &Grid,
    session: &Session,
    screen: &mut dyn Screen,
) -> Result<Completed, RunError> {
    let (mut common, arguments) = parsed::<E>(matches)?;
    let directory = common.out.clone().unwrap_or_default();
    let failures = grid::failures_of::<E>(&directory)?;
    let config = read_config(&directory.join(CONFIG), E::ID)?;
    let experiment = E::prepare(&arguments, Some(config))?;
    // Nothing is left but to read.
    common.jobs = Some(1);
    let command = command_line(&grid.command);
    finish(
        &experiment,
        &arguments,
        common,
        &command,
        &failures,
        session,
        screen,
    )
}

fn run<E: Experiment>(
    matches: &ArgMatches,
    session: &Session,
    screen: &mut dyn Screen,
) -> Result<Completed, RunError> {
    let (common, arguments) = parsed::<E>(matches)?;
    let recorded = recorded::<E>(&common)?;
    let from_a_file = recorded.is_some();
    let experiment = E::prepare(&arguments, recorded)?;
    let repeating = experiment.repeating(&arguments);
    let words = repeating.filter(|_| from_a_file);
    let command = command_line(words.as_deref().unwrap_or(session.words));
    finish(
        &experiment,
        &arguments,
        common,
        &command,
        &[],
        session,
        screen,
    )
}

/// Brings a run to its end.
fn finish<E: Experiment>(
    experiment: &E,
    arguments: &E::Arguments,
    common: Common,
    command: &str,
    failures: &[(usize, String)],
    session: &Session,
    screen: &mut dyn Screen,
) -> Result<Completed, RunError> {
    let stop = || session.interrupt.signal().is_some();
    let assignment = Assignment {
        directory: common.out.as_deref(),
        jobs: common.jobs.map_or(0, usize::from),
        command,
        may_grow: common.resume,
        failures,
        stop: &stop,
    };
    let mut done = work(experiment, &assignment, screen)?;
    E::select(arguments, &mut done.summary);
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
