//! The straightflow laboratory: a command line around the library.

mod list;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
}

fn main() -> ExitCode {
    // clap itself exits with 2 for bad arguments and with 0 for help.
    let cli = Cli::parse();
    let result = match cli.command {
        Command::List(arguments) => list::run(&arguments, &mut io::stdout().lock()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("straightflow: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A reader that has seen enough (`| head`) is no failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
