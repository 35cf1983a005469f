//! `straightflow reproduce`: every experiment into one report.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use straightflow_report::record::SUMMARY;

use crate::ui::{quoted, say};

pub const EXAMPLES: &str = "Examples:
  straightflow reproduce --quick              some ten minutes on two cores; out/report.html
  straightflow reproduce --full --out paper   everything to the end: a day and more on two cores
Both go on where they were interrupted.";

#[derive(Args)]
pub struct Arguments {
    /// Fewer seeds and replicates where that does not change what is seen, and autoencoders of three
    /// epochs; this is the default.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every experiment with its default settings, and autoencoders with the whole protocol.
    #[arg(long)]
    full: bool,
    /// A directory for the records and the page.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
}

/// The commands of a reproduction, each with the name of its directory.
const QUICK: &[(&str, &[&str])] = &[
    ("poisson", &["poisson"]),
    ("toy", &["toy", "--seeds", "4"]),
    ("lab", &["lab", "--replicates", "4000"]),
    ("table2", &["table2", "--epochs", "3"]),
];
const FULL: &[(&str, &[&str])] = &[
    ("poisson", &["poisson"]),
    ("toy", &["toy"]),
    ("lab", &["lab"]),
    ("table2", &["table2", "--beyond"]),
    (
        "counts",
        &["table2", "--latent", "poisson", "--arch", "nonlinear"],
    ),
    (
        "categories",
        &["table2", "--latent", "categorical", "--arch", "nonlinear"],
    ),
];

/// Runs the commands of the plan one after the other with `execute`, and then the report.
pub fn run(
    arguments: &Arguments,
    out: &mut dyn Write,
    execute: fn(&[String], &mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // The runs of both lengths have places of their own, so that neither is in the other's way.
    let (plan, place) = match arguments.full {
        true => (FULL, arguments.out.join("full")),
        false => (QUICK, arguments.out.join("quick")),
    };
    let mut failed = None;
    let directories: Vec<PathBuf> = plan.iter().map(|(name, _)| place.join(name)).collect();
    for ((_, command), directory) in plan.iter().zip(&directories) {
        let mut words = words(command);
        words.extend(["--out".to_owned(), text(directory)]);
        announce(&words, out)?;
        // A run that comes to no end is no reason to have no page of the others.
        let result = execute(&words, out);
        match (&result, directory.join(SUMMARY).exists()) {
            (Err(_), false) => return result,
            (Err(error), true) => say(format_args!("straightflow: {error:#}")),
            (Ok(()), _) => {}
        }
        failed = failed.or(result.err());
    }
    let mut words = words(&["report"]);
    words.extend(directories.iter().map(|directory| text(directory)));
    words.extend(["--out".to_owned(), text(&arguments.out.join("report.html"))]);
    announce(&words, out)?;
    execute(&words, out)?;
    failed.map_or(Ok(()), Err)
}

fn words(command: &[&str]) -> Vec<String> {
    let program = std::iter::once("straightflow");
    program
        .chain(command.iter().copied())
        .map(str::to_owned)
        .collect()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn announce(words: &[String], out: &mut dyn Write) -> std::io::Result<()> {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    writeln!(out, "\n$ {}\n", words.join(" "))?;
    out.flush()
}
