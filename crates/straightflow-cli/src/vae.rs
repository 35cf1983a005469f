//! `straightflow vae`: one variational autoencoder with discrete latent variables, trained on MNIST.

mod arguments;
mod plots;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use straightflow_experiments::vae::{
    self, Config, Epoch, Finished, Pictures, Source, Summary, VaeError, Watcher,
};
use straightflow_report::Run;
use straightflow_report::picture::{Picture, PictureError};
use straightflow_report::record::{CONFIG, METRICS, SUMMARY, TIMING};

pub use arguments::{Arguments, EXAMPLES};

use crate::progress::Progress;
use crate::settings::read_config;
use crate::ui::{Timing, bad_input, where_recorded};

/// The name of the file with the last checkpoint.
const CHECKPOINT: &str = "checkpoint.bin";
/// The name of the picture of test images and what the model makes of them.
pub const RECONSTRUCTIONS: &str = "reconstructions.png";
/// The side of a pixel of the pictures.
const SCALE: usize = 2;

pub fn run(arguments: &Arguments, command: String, out: &mut impl Write) -> anyhow::Result<()> {
    let (config, data) = arguments.config()?;
    let command = arguments.repeating(&config, command);
    let mut progress = Progress::new("vae");
    let directory = arguments.out();
    let mut watch = |event: Event| {
        match event {
            Event::Epoch(epoch) => {
                progress.finish_part();
                progress.note(&epoch_line(epoch, config.epochs));
            }
            Event::Share(share) => progress.set(share),
        }
        Ok(())
    };
    let summary = match directory {
        Some(path) => {
            let run = match arguments.resume() {
                true => go_on(path, &config)?,
                false => Run::open(path, &config)?,
            };
            record(run, &config, &data, &command, &mut watch)?
        }
        None => {
            let mut screen = Screen::new(None, 0, &mut watch);
            vae::run(&config, &data, None, &mut screen)?.summary
        }
    };
    progress.finish();
    if arguments.json() {
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
        return Ok(());
    }
    print(&config, &summary, out)?;
    Ok(where_recorded(directory, out)?)
}

/// What is heard of a run.
pub enum Event<'a> {
    /// The share of its steps that is done.
    Share(f64),
    /// What was measured after an epoch.
    Epoch(&'a Epoch),
}

/// Who hears it; an error ends the run.
pub type Watch<'a> = dyn FnMut(Event) -> anyhow::Result<()> + Send + 'a;

/// Opens the run of a directory, also one that differs in the number of its epochs: it takes the new one,
/// unless it has begun more.
pub fn go_on(path: &Path, config: &Config) -> anyhow::Result<Run> {
    let file = path.join(CONFIG);
    let recorded = match file.exists() {
        true => Some(read_config::<Config>(&file, "vae")?),
        false => None,
    };
    let changed = recorded.filter(|old| old != config && old.may_become(config));
    let Some(old) = changed else {
        return Ok(Run::open(path, config)?);
    };
    let run = Run::open(path, &old)?;
    check_length(path, config)?;
    run.reconfigure(config)?;
    Ok(run)
}

/// Refuses a number of epochs that is smaller than what the run of a directory has begun.
pub fn check_length(path: &Path, config: &Config) -> anyhow::Result<()> {
    let (begun, asked) = (epochs_begun(path)?, config.epochs);
    match begun > asked {
        true => Err(VaeError::FewerEpochs { begun, asked }.into()),
        false => Ok(()),
    }
}

/// The epochs of which there is a trace in the directory of a run.
fn epochs_begun(path: &Path) -> anyhow::Result<u64> {
    let records = read_if_there(&path.join(METRICS))?.unwrap_or_default();
    let recorded = records.iter().filter(|byte| **byte == b'\n').count() as u64;
    let trained = match read_if_there(&path.join(CHECKPOINT))? {
        Some(bytes) => {
            vae::epochs_begun(&bytes).map_err(|error| in_directory(error.into(), path))?
        }
        None => 0,
    };
    Ok(recorded.max(trained))
}

/// A run in its directory, from its last checkpoint if there is one, to its summary. A complete run is
/// only read.
pub fn record(
    mut run: Run,
    config: &Config,
    data: &Source,
    command: &str,
    watch: &mut Watch,
) -> anyhow::Result<Summary> {
    let start = Instant::now();
    let path = run.path().to_owned();
    if let Some(summary) = read_summary(&run)? {
        return Ok(summary);
    }
    let known = run.metrics::<Epoch>()?.len() as u64;
    let checkpoint = read_if_there(&path.join(CHECKPOINT))?;
    let resumed = checkpoint.is_some();
    let mut screen = Screen::new(Some(&mut run), known, watch);
    let finished = vae::run(config, data, checkpoint, &mut screen)
        .map_err(|error| in_directory(error, &path))?;
    let before = if resumed {
        screen.first_share.unwrap_or(1.0)
    } else {
        0.0
    };

    for (name, svg) in plots::draw(config, &finished.summary.curve) {
        run.write_text(name, &svg)?;
    }
    for (name, png) in pictures(&finished, data)? {
        run.write_bytes(name, &png)?;
    }
    let timing = Timing::since(start, 1.0 - before, 1, command.to_owned());
    run.write_json(TIMING, &timing)?;
    // The summary is last: a directory that has one is complete.
    run.write_json(SUMMARY, &finished.summary)?;
    Ok(finished.summary)
}

/// Says which checkpoint it is, and what to do.
fn in_directory(error: anyhow::Error, path: &Path) -> anyhow::Error {
    match error.downcast_ref::<VaeError>() {
        Some(VaeError::Checkpoint { .. }) => error.context(format!(
            "{} cannot be used; move it away to begin anew",
            path.join(CHECKPOINT).display()
        )),
        _ => error,
    }
}

fn read_summary(run: &Run) -> anyhow::Result<Option<Summary>> {
    let path = run.path().join(SUMMARY);
    let Some(bytes) = read_if_there(&path)? else {
        return Ok(None);
    };
    let summary = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is no summary of this experiment", path.display()));
    summary.map(Some).map_err(bad_input)
}

fn read_if_there(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// Shows the progress of a run and records it.
struct Screen<'a, 'b> {
    run: Option<&'a mut Run>,
    /// The epochs that were recorded before.
    known: u64,
    /// The share with which this process began.
    first_share: Option<f64>,
    watch: &'a mut Watch<'b>,
}

impl<'a, 'b> Screen<'a, 'b> {
    fn new(run: Option<&'a mut Run>, known: u64, watch: &'a mut Watch<'b>) -> Self {
        Self {
            run,
            known,
            first_share: None,
            watch,
        }
    }
}

impl Watcher for Screen<'_, '_> {
    type Error = anyhow::Error;

    fn progress(&mut self, share: f64) -> anyhow::Result<()> {
        self.first_share.get_or_insert(share);
        (self.watch)(Event::Share(share))
    }

    fn epoch(&mut self, epoch: &Epoch) -> anyhow::Result<()> {
        if epoch.epoch <= self.known {
            return Ok(());
        }
        self.known = epoch.epoch;
        if let Some(run) = &mut self.run {
            run.append(epoch)?;
        }
        (self.watch)(Event::Epoch(epoch))
    }

    fn checkpoint(&mut self, bytes: Vec<u8>) -> anyhow::Result<()> {
        if let Some(run) = &self.run {
            run.write_bytes(CHECKPOINT, &bytes)?;
        }
        Ok(())
    }
}

fn epoch_line(epoch: &Epoch, epochs: u64) -> String {
    format!(
        "epoch {} of {epochs}, negative ELBO: first training images {:.2}, validation {:.2}, test {:.2}",
        epoch.epoch, epoch.train_part_nelbo, epoch.valid_nelbo, epoch.test_nelbo
    )
}

fn pictures(
    finished: &Finished,
    data: &Source,
) -> Result<Vec<(&'static str, Vec<u8>)>, PictureError> {
    let Pictures {
        originals,
        reconstructions,
        dreams,
    } = &finished.pictures;
    let new = || Picture::new(data.height(), data.width());
    let mut pairs = new()?;
    pairs.push_row(originals)?;
    pairs.push_row(reconstructions)?;
    let mut prior = new()?;
    for row in dreams.chunks(originals.len()) {
        prior.push_row(row)?;
    }
    Ok(vec![
        (RECONSTRUCTIONS, pairs.png(SCALE)?),
        ("prior.png", prior.png(SCALE)?),
    ])
}

fn print(config: &Config, summary: &Summary, out: &mut impl Write) -> std::io::Result<()> {
    let row = &summary.rows[0];
    writeln!(
        out,
        "{}, {} with {} variables, {} images, {} epoch{} of {} steps, seed {}.\n",
        row.label,
        row.arch,
        row.latent,
        config.data,
        row.epochs,
        if row.epochs == 1 { "" } else { "s" },
        row.steps / row.epochs,
        row.seed
    )?;
    let lines = [
        ("negative ELBO, all training images", summary.train_nelbo),
        ("negative ELBO, validation images", summary.valid_nelbo),
        ("negative ELBO, test images", summary.test_nelbo),
    ];
    for (name, value) in lines {
        writeln!(out, "{name:36} {value:9.2}")?;
    }
    let bound = format!("{}-sample bound, test images", summary.bound_samples);
    writeln!(out, "{bound:36} {:9.2}", summary.test_bound_100)?;
    if let Some(variance) = row.gradient_variance {
        let name = "variance of the encoder's gradient";
        writeln!(out, "{name:36} {variance:9.3}")?;
    }
    Ok(())
}
