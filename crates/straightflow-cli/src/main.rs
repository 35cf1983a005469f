//! The straightflow laboratory: a command line around the library.

mod list;
mod report;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use straightflow_report::RecordError;
use straightflow_report::html::ReportError;

/// Gradients through discrete random variables: the estimators and what they promise.
#[derive(Parser)]
#[command(name = "straightflow", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Every estimator: families, bias, needs, cost, reference.
    #[command(after_help = "Examples:
  straightflow list
  straightflow list --json | jq '.[].id'
  straightflow list --markdown > docs/estimators.md")]
    List(list::Arguments),
    /// Run directories into one self-contained page: tables, plots, the paper's numbers.
    #[command(after_help = "Examples:
  straightflow report out/poisson
  straightflow report out/poisson out/toy out/lab --out report.html")]
    Report(report::Arguments),
}

fn main() -> ExitCode {
    // clap itself exits with 2 for bad arguments and with 0 for help.
    let cli = Cli::parse();
    let result = match cli.command {
        Command::List(arguments) => list::run(&arguments, &mut io::stdout().lock()),
        Command::Report(arguments) => report::run(&arguments, &mut io::stdout().lock()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("straightflow: {error:#}");
            if is_bad_input(&error) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// What was asked for is the mistake, and not what happened on the way.
fn is_bad_input(error: &anyhow::Error) -> bool {
    let record = error.downcast_ref::<RecordError>();
    error.is::<ReportError>() || record.is_some_and(RecordError::is_bad_input)
}

/// A reader that has seen enough (`| head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
