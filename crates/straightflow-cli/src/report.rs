//! `straightflow report`: run directories into one page.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use straightflow_experiments::Entry;
use straightflow_report::html;

#[derive(Args)]
pub struct Arguments {
    /// Directories of finished runs, in any order.
    #[arg(required = true, value_name = "DIR")]
    runs: Vec<PathBuf>,
    /// The page to write. Replaces an older report, but no other file.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Print the tables to the terminal instead of writing a page.
    #[arg(long, conflicts_with = "out")]
    text: bool,
}

pub fn run(
    arguments: &Arguments,
    experiments: &[Entry],
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let show = |id: &str, summary: &serde_json::Value| {
        let entry = experiments.iter().find(|entry| entry.id == id)?;
        Some(entry.show(summary))
    };
    if arguments.text {
        write!(out, "{}", html::text(&arguments.runs, &show)?)?;
        return Ok(());
    }
    let page = html::render(&arguments.runs, &show)?;
    html::write(&arguments.out, &page)?;
    writeln!(out, "{}", arguments.out.display())?;
    Ok(())
}
