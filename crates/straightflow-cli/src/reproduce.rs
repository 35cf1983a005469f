//! `straightflow reproduce`: every experiment into one report.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use straightflow_experiments::runner::quoted;
use straightflow_experiments::{Entry, Plan};
use straightflow_report::record::SUMMARY;

use crate::interrupt::Interrupted;
use crate::ui::say;

pub const EXAMPLES: &str = "Examples:
  straightflow reproduce --quick              one to three minutes on two cores; writes out/report.html
  straightflow reproduce --full --out paper   the full protocol: more than a day on two cores
Interrupted runs resume: repeat the command.";

#[derive(Args)]
pub struct Arguments {
    /// Run with fewer seeds and replicates, and train the linear and nonlinear autoencoders for two epochs;
    /// this is the default.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Run every experiment at full length, with one seed of each autoencoder, and include the estimators that are not
    /// in the paper.
    #[arg(long)]
    full: bool,
    /// Write the records and the page to this directory.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

/// Runs the plans of all experiments one after the other, and then the report.
pub fn run(
    arguments: &Arguments,
    experiments: &[Entry],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // The runs of both lengths have places of their own, so that neither is in the other's way.
    let place = arguments.out.join(match arguments.full {
        true => "full",
        false => "quick",
    });
    let mut failed = None;
    let mut report = command("report", "");
    for (id, (name, settings)) in plans(experiments, arguments.full) {
        let directory = place.join(name);
        let mut words = command(id, settings);
        words.extend(["--out".into(), directory.clone().into()]);
        announce(&words, out)?;
        // A failed run does not keep the others off the page, unless the user interrupted it.
        if let Err(error) = crate::run(experiments, &words, out) {
            if error.is::<Interrupted>() || !directory.join(SUMMARY).exists() {
                return Err(error);
            }
            say(format_args!("straightflow: {error:#}"));
            failed = failed.or(Some(error));
        }
        report.push(directory.into());
    }
    report.extend(["--out".into(), arguments.out.join("report.html").into()]);
    announce(&report, out)?;
    crate::run(experiments, &report, out)?;
    failed.map_or(Ok(()), Err)
}

/// The commands of a reproduction: the experiment, the name of the directory, the settings.
fn plans(experiments: &[Entry], full: bool) -> impl Iterator<Item = (&'static str, Plan)> {
    experiments.iter().flat_map(move |entry| {
        let plans = if full { entry.full } else { entry.quick };
        plans.iter().map(|plan| (entry.id, *plan))
    })
}

fn command(name: &str, settings: &str) -> Vec<OsString> {
    let words = ["straightflow", name].into_iter();
    let words = words.chain(settings.split_whitespace());
    words.map(OsString::from).collect()
}

fn announce(words: &[OsString], out: &mut dyn Write) -> std::io::Result<()> {
    let words: Vec<String> = words
        .iter()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    writeln!(out, "\n$ {}\n", words.join(" "))?;
    out.flush()
}
