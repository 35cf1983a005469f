//! The command line of straightflow, for a list of experiments: it parses, dispatches and prints.

mod bench;
mod compare;
mod experiment;
mod grid;
mod interrupt;
mod list;
mod report;
mod reproduce;
mod screen;
mod ui;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use straightflow_experiments::Entry;

use crate::ui::Printed;

/// Gradients through discrete random variables: the estimators and what they promise.
#[derive(Parser)]
#[command(name = "straightflow", version, about, arg_required_else_help = true, after_help = PAPER)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What "the paper" is in all help texts.
const PAPER: &str = "The paper is Cheng et al. 2019, Straight-Through Estimator as Projected Wasserstein Gradient Flow, \
     arXiv 1910.02176.";

/// The commands beside those of the experiments.
#[derive(Subcommand)]
enum Command {
    /// List every estimator with its families, bias, needs, price and reference.
    #[command(
        display_order = 101,
        after_help = "Examples:
  straightflow list
  straightflow list --experiments
  straightflow list --json | jq '.[].id'
  straightflow list --markdown > docs/estimators.md"
    )]
    List(list::Arguments),
    /// Turn run directories into one self-contained HTML page.
    #[command(
        display_order = 102,
        after_help = "Examples:
  straightflow report out/poisson
  straightflow report out/poisson out/toy out/lab --out report.html
  straightflow report results/2026-11-18-toy --text"
    )]
    Report(report::Arguments),
    /// Run every experiment and write one HTML page: plots, and our tables beside the paper's numbers.
    #[command(display_order = 0, after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::Arguments),
    /// Compare methods on a built-in cost: bias, standard deviation, price, time, and a recommendation.
    #[command(display_order = 100, after_help = compare::EXAMPLES)]
    Compare(compare::Arguments),
    /// Time a training step for any estimators and architectures.
    #[command(display_order = 103, after_help = bench::EXAMPLES)]
    Bench(bench::Arguments),
    /// Run one cell of a run that was started with --submit; each of its tasks does this.
    #[command(display_order = 104, after_help = grid::CELL_EXAMPLES)]
    Cell(grid::CellArguments),
    /// Show the progress of a run that was started with --submit: cells done, running, waiting, or failed and why.
    #[command(
        display_order = 105,
        after_help = "Examples:
  straightflow status runs/cluster
  straightflow status runs/cluster --json | jq '.cells[] | select(.state == \"failed\")'"
    )]
    Status(grid::StatusArguments),
    /// Write the summary, plots and tables of a finished grid.
    #[command(
        display_order = 106,
        after_help = "Examples:
  straightflow gather runs/cluster
The command that submitted the grid does the same without --submit, and first runs any remaining cells
locally."
    )]
    Gather(grid::GatherArguments),
    /// Print a completion script for a shell.
    #[command(
        display_order = 107,
        after_help = "Examples:
  straightflow completions bash > ~/.local/share/bash-completion/completions/straightflow
  straightflow completions zsh > ~/.zfunc/_straightflow"
    )]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Runs a command line, the name of the program first, and says on stderr what went wrong.
pub fn main(experiments: &[Entry], words: &[OsString]) -> ExitCode {
    let result = run(experiments, words, &mut Printed(io::stdout().lock()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => match error.downcast::<clap::Error>() {
            // clap itself exits with 2 for bad arguments and with 0 for help.
            Ok(error) => error.exit(),
            Err(error) => {
                ui::say(format_args!("straightflow: {error:#}"));
                ExitCode::from(ui::exit_code(&error))
            }
        },
    }
}

/// Runs a command line, the name of the program first, and prints what it has to say.
///
/// # Errors
///
/// Those of the parser, and those of the command.
pub fn run(
    experiments: &[Entry],
    words: &[OsString],
    mut out: &mut dyn Write,
) -> anyhow::Result<()> {
    let out = &mut out;
    let matches = parse(experiments, words)?;
    if let Some((name, matches)) = matches.subcommand()
        && let Some(entry) = experiments.iter().find(|entry| entry.id == name)
    {
        return experiment::run(entry, matches, words, out);
    }
    match Cli::from_arg_matches(&matches)?.command {
        Command::List(arguments) => list::run(&arguments, experiments, out),
        Command::Bench(arguments) => bench::run(&arguments, out),
        Command::Compare(arguments) => compare::run(&arguments, out),
        Command::Report(arguments) => report::run(&arguments, experiments, out),
        Command::Reproduce(arguments) => reproduce::run(&arguments, experiments, *out),
        Command::Cell(arguments) => grid::cell(&arguments, experiments, out),
        Command::Status(arguments) => grid::print_status(&arguments, out),
        Command::Gather(arguments) => grid::gather(&arguments, experiments, out),
        Command::Completions { shell } => completions(experiments, shell, out),
    }
}

/// All commands: `reproduce`, the experiments, and what works on them.
fn commands(experiments: &[Entry]) -> clap::Command {
    let own = experiments.iter().enumerate();
    let own = own.map(|(order, entry)| entry.command().display_order(1 + order));
    // Otherwise `--epochs -1` were two options, and the message one about the second.
    let with_negative_numbers = |option: Arg| match option.get_action().takes_values() {
        true => option.allow_negative_numbers(true),
        false => option,
    };
    Cli::command()
        .subcommands(own)
        .mut_subcommands(|command| command.mut_args(with_negative_numbers))
}

fn parse(experiments: &[Entry], words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let command = commands(experiments);
    let matches = command.clone().try_get_matches_from(words);
    matches.map_err(|error| with_hint(error, &command))
}

/// clap has no hint for short words with swapped letters, such as `vea`.
fn with_hint(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let known = command.get_subcommands().map(clap::Command::get_name);
    let distance = |name: &&str| strsim::osa_distance(name, word);
    let near = known
        .min_by_key(distance)
        .filter(|name| distance(name) <= 2);
    if let Some(name) = near.map(str::to_owned) {
        let names = ContextValue::Strings(vec![name]);
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
    error
}

fn completions(experiments: &[Entry], shell: Shell, out: &mut impl Write) -> anyhow::Result<()> {
    // clap_complete panics when it cannot write.
    let mut script = Vec::new();
    let mut command = commands(experiments);
    clap_complete::generate(shell, &mut command, "straightflow", &mut script);
    out.write_all(&script)?;
    Ok(())
}

/// A reader that has seen enough (`| head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
