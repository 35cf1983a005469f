//! The straightflow laboratory: a command line around the library.

mod bench;
mod lab;
mod list;
mod poisson;
mod progress;
mod record;
mod report;
mod reproduce;
mod settings;
mod table2;
mod toy;
mod ui;
mod vae;

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use crate::ui::Printed;

/// Training makes and drops tensors of the same sizes in every step; the system's allocator maps their
/// pages anew each time, which takes as long as the arithmetic.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    /// The one-bit toy for every estimator: runs, steps to the optimum, log-variance.
    #[command(after_help = toy::EXAMPLES)]
    Toy(toy::Arguments),
    /// Every estimator against the exact gradient: bias, deviation, error, cost, and what to use.
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::Arguments),
    /// The paper's Table 1: a generator Pois(rate) against a discriminator, and control rows.
    #[command(after_help = poisson::EXAMPLES)]
    Poisson(poisson::Arguments),
    /// A variational autoencoder with discrete latent variables, trained on MNIST.
    #[command(after_help = vae::EXAMPLES)]
    Vae(Box<vae::Arguments>),
    /// The paper's Table 2: a grid of architectures, estimators and seeds, beside its numbers.
    #[command(after_help = table2::EXAMPLES)]
    Table2(Box<table2::Arguments>),
    /// Run directories into one self-contained page: tables, plots, the paper's numbers.
    #[command(after_help = "Examples:
  straightflow report out/poisson
  straightflow report out/poisson out/toy out/lab --out report.html")]
    Report(report::Arguments),
    /// Every experiment, and one page of all: tables beside the paper's numbers, learning curves.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::Arguments),
    /// The time of a training step, for estimators and architectures.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::Arguments),
    /// A completion script for a shell.
    #[command(after_help = "Examples:
  straightflow completions bash > ~/.local/share/bash-completion/completions/straightflow
  straightflow completions zsh > ~/.zfunc/_straightflow")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

fn main() -> ExitCode {
    // clap itself exits with 2 for bad arguments and with 0 for help.
    let cli = parse(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let result = dispatch(cli.command, &words, &mut Printed(io::stdout().lock()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            ui::say(format_args!("straightflow: {error:#}"));
            ExitCode::from(ui::exit_code(&error))
        }
    }
}

fn dispatch(command: Command, words: &[String], mut out: &mut dyn Write) -> anyhow::Result<()> {
    let out = &mut out;
    let line = ui::command_line(words);
    match command {
        Command::List(arguments) => list::run(&arguments, out),
        Command::Toy(arguments) => toy::run(&arguments, line, out),
        Command::Lab(arguments) => lab::run(&arguments, line, out),
        Command::Poisson(arguments) => poisson::run(&arguments, line, out),
        Command::Vae(arguments) => vae::run(&arguments, line, out),
        Command::Table2(arguments) => table2::run(&arguments, line, out),
        Command::Bench(arguments) => bench::run(&arguments, out),
        Command::Report(arguments) => report::run(&arguments, out),
        Command::Reproduce(arguments) => reproduce::run(&arguments, *out, execute),
        Command::Completions { shell } => completions(shell, out),
    }
}

/// Runs a command line in this process.
fn execute(words: &[String], out: &mut dyn Write) -> anyhow::Result<()> {
    dispatch(parse(words)?.command, words, out)
}

fn parse<T: Into<OsString> + Clone>(
    words: impl IntoIterator<Item = T>,
) -> Result<Cli, clap::Error> {
    // Otherwise `--epochs -1` were two options, and the message one about the second.
    let with_negative_numbers = |option: Arg| match option.get_action().takes_values() {
        true => option.allow_negative_numbers(true),
        false => option,
    };
    let command = Cli::command().mut_subcommands(|command| command.mut_args(with_negative_numbers));
    let matches = command.clone().try_get_matches_from(words);
    Cli::from_arg_matches(&matches.map_err(|error| with_hint(error, &command))?)
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

fn completions(shell: Shell, out: &mut impl Write) -> anyhow::Result<()> {
    // clap_complete panics when it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "straightflow", &mut script);
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
