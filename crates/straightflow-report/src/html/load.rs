//! A run directory as a report reads it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::ReportError;
use super::figure::Figure;
use super::image::{self, Image};
use super::{Show, short_name, unknown};
use crate::page::Page;
use crate::record::{self, CONFIG, METRICS, SUMMARY, TIMING};

/// A JSON object.
pub type Object = Map<String, Value>;

/// What a finished run left behind.
pub struct Recorded {
    /// As it was named by the caller.
    pub directory: PathBuf,
    /// `config.toml`, word for word.
    pub config_text: String,
    /// The name of the experiment, if it is a known one.
    experiment: Option<String>,
    pub page: Page,
    pub timing: Object,
    pub figures: Vec<Figure>,
    pub images: Vec<Image>,
}

impl Recorded {
    pub fn read(directory: &Path, show: &Show) -> Result<Self, ReportError> {
        let path = || directory.to_owned();
        let not_a_run = || match directory.exists() {
            true => ReportError::NotARun { path: path() },
            false => ReportError::NoDirectory { path: path() },
        };
        let config_path = directory.join(CONFIG);
        let config_text = read(&config_path)?.ok_or_else(not_a_run)?;
        let config = parse_toml(&config_path, &config_text)?;

        let summary_path = directory.join(SUMMARY);
        let summary = read(&summary_path)?.ok_or_else(|| ReportError::Unfinished {
            path: directory.to_owned(),
        })?;
        let summary = parse_object(&summary_path, &summary)?;
        let rows = rows(&summary_path, &summary)?;
        let experiment = experiment(&summary, &config);
        let known = show(experiment, &Value::Object(summary.clone()));
        let experiment_if_known = known.is_some().then(|| experiment.to_owned());
        let page = match known {
            Some(page) => page.map_err(|error| ReportError::Unexpected {
                path: summary_path,
                reason: format!("it is not a summary of `{experiment}`: {error}"),
            })?,
            None => unknown::page(experiment, &summary, &rows),
        };

        // The page does not show single records, but a run whose records are damaged is not one to
        // report on.
        let metrics_path = directory.join(METRICS);
        if let Some(metrics) = read_bytes(&metrics_path)? {
            record::parse_lines::<IgnoredAny>(&metrics_path, &metrics)?;
        }

        let timing_path = directory.join(TIMING);
        let timing = match read(&timing_path)? {
            Some(text) => parse_object(&timing_path, &text)?,
            None => Object::new(),
        };
        Ok(Self {
            directory: directory.to_owned(),
            config_text,
            experiment: experiment_if_known,
            timing,
            figures: figures(directory, &page)?,
            images: images(directory)?,
            page,
        })
    }

    /// The command that repeats it, from its configuration: what was typed may mean something else in a
    /// later version, with more estimators by default.
    pub fn repeat(&self) -> Option<String> {
        let experiment = self.experiment.as_ref()?;
        let name = short_name(&self.directory);
        // A page is to be sent around: it says nothing about the machine.
        let directory = match self.directory.is_absolute() {
            true => Path::new(&name),
            false => &self.directory,
        };
        let config = directory.join(CONFIG);
        Some(format!(
            "straightflow {experiment} --config {} --out runs/{name}",
            config.display()
        ))
    }
}

/// What kind of run it is.
fn experiment<'a>(summary: &'a Object, config: &'a toml::Table) -> &'a str {
    let summary = summary.get("experiment").and_then(Value::as_str);
    let config = config.get("experiment").and_then(toml::Value::as_str);
    summary.or(config).unwrap_or("unnamed experiment")
}

/// The bytes of a file, or none if there is no such file.
fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>, ReportError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(source) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&source.kind()) => {
            Ok(None)
        }
        Err(source) => Err(ReportError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn read(path: &Path) -> Result<Option<String>, ReportError> {
    let text = read_bytes(path)?.map(String::from_utf8).transpose();
    text.map_err(|_| ReportError::Unexpected {
        path: path.to_owned(),
        reason: "it is not text in UTF-8".to_owned(),
    })
}

fn parse_toml(path: &Path, text: &str) -> Result<toml::Table, ReportError> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().map_or(0, |span| span.start);
        ReportError::Broken {
            path: path.to_owned(),
            line: 1 + text[..before].matches('\n').count(),
            reason: error.message().to_owned(),
        }
    })
}

fn parse_object(path: &Path, text: &str) -> Result<Object, ReportError> {
    serde_json::from_str(text).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        ReportError::Broken {
            path: path.to_owned(),
            line: error.line().max(1),
            reason: reason.to_owned(),
        }
    })
}

fn rows(path: &Path, summary: &Object) -> Result<Vec<Object>, ReportError> {
    let unexpected = |reason: &str| ReportError::Unexpected {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let rows = match summary.get("rows") {
        Some(Value::Array(rows)) => rows,
        Some(_) => return Err(unexpected("`rows` is not an array")),
        None => return Err(unexpected("there are no `rows`")),
    };
    rows.iter()
        .map(|row| match row {
            Value::Object(row) => Ok(row.clone()),
            _ => Err(unexpected("one of the `rows` is not an object")),
        })
        .collect()
}

/// The plots of a run: those that are drawn from its summary, then the other files, results before
/// explanations, each kind by name. A file whose name begins with the same word as a drawn plot is one
/// that an older version made.
fn figures(directory: &Path, page: &Page) -> Result<Vec<Figure>, ReportError> {
    const ORDER: [&str; 5] = ["curves", "pareto", "log-variance", "weights", "flow"];
    let mut figures = Vec::new();
    for (name, svg) in &page.figures {
        figures.push(Figure::parse(&directory.join(name), svg)?);
    }
    let word = |name: &str| name.split(['-', '.']).next().map(str::to_owned);
    let drawn: Vec<_> = page.figures.iter().map(|(name, _)| word(name)).collect();
    for file in files(directory, "svg", &ORDER)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if drawn.contains(&word(&name)) {
            continue;
        }
        if let Some(text) = read(&file)? {
            figures.push(Figure::parse(&file, &text)?);
        }
    }
    Ok(figures)
}

/// The pictures of a run.
fn images(directory: &Path) -> Result<Vec<Image>, ReportError> {
    const ORDER: [&str; 2] = ["reconstructions", "prior"];
    let mut images = Vec::new();
    for file in files(directory, "png", &ORDER)? {
        // A file that is refused for its size is not read before.
        if fs::metadata(&file).is_ok_and(|file| file.len() > image::MAX_BYTES) {
            return Err(ReportError::Unexpected {
                path: file,
                reason: image::too_large(),
            });
        }
        if let Some(bytes) = read_bytes(&file)? {
            images.push(Image::parse(&file, &bytes)?);
        }
    }
    Ok(images)
}

/// The files with this extension, those whose names begin with one of `order` first.
fn files(directory: &Path, extension: &str, order: &[&str]) -> Result<Vec<PathBuf>, ReportError> {
    let unreadable = |source| ReportError::Read {
        path: directory.to_owned(),
        source,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|found| found == extension) {
            files.push(file);
        }
    }
    files.sort_by_cached_key(|file| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let kind = order.iter().position(|kind| name.starts_with(kind));
        (kind.unwrap_or(order.len()), name.into_owned())
    });
    Ok(files)
}
