//! Configurations as they are recorded, and as they are read again.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the program. The same bits are promised for the same version only.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A configuration as it is recorded: with the experiment and the version before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorded<C> {
    /// The experiment.
    pub experiment: String,
    /// The version of the program.
    pub version: String,
    /// The settings.
    #[serde(flatten)]
    pub config: C,
}

impl<C> Recorded<C> {
    /// A configuration of an experiment of this version.
    pub fn new(experiment: &str, config: C) -> Self {
        Self {
            experiment: experiment.to_owned(),
            version: VERSION.to_owned(),
            config,
        }
    }
}

/// Why a file is not taken for a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no such file, or it is not text.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// It is not one of this experiment and version.
    #[error("{} is not a `{experiment}` config", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The experiment.
        experiment: &'static str,
        /// What is wrong with it.
        source: ConfigFault,
    },
    /// A directory that is to be gone on with.
    #[error("{} has no run to resume", path.display())]
    NothingThere {
        /// The directory.
        path: PathBuf,
        /// What is wrong with its configuration.
        source: Box<ConfigError>,
    },
}

/// What is wrong with the text of a configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigFault {
    /// It is not TOML, or a setting is missing or of a wrong type.
    #[error("{place}{message}")]
    Toml {
        /// The line and, where the line has one, the setting.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// It does not say what it is.
    #[error("it does not name its `experiment`")]
    NoExperiment,
    /// It is one of another experiment.
    #[error("it is a `{0}` config")]
    OtherExperiment(String),
    /// It does not say what wrote it.
    #[error("it does not say which `version` wrote it")]
    NoVersion,
    /// It is one of another version of the program.
    #[error(
        "the configuration was written by version {0}, and this is {VERSION}: the same bits are \
         promised for the same version only"
    )]
    OtherVersion(String),
    /// It has a setting that does not exist.
    #[error("there is no setting `{0}`")]
    UnknownSetting(String),
}

/// The configuration of an experiment that a file holds, of this version of the program.
///
/// # Errors
///
/// The file cannot be read, or is not such a configuration.
pub fn read<C>(path: &Path, experiment: &'static str) -> Result<C, ConfigError>
where
    C: Serialize + DeserializeOwned,
{
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text, experiment).map_err(|source| ConfigError::Unfit {
        path: path.to_owned(),
        experiment,
        source,
    })
}

fn parse<C: Serialize + DeserializeOwned>(text: &str, experiment: &str) -> Result<C, ConfigFault> {
    let located = |error: toml::de::Error| ConfigFault::Toml {
        place: place(text, &error),
        message: error.message().to_owned(),
    };
    let mut table: toml::Table = toml::from_str(text).map_err(located)?;
    let mut word = |key: &str| match table.remove(key) {
        Some(toml::Value::String(word)) => Some(word),
        _ => None,
    };
    let found = word("experiment").ok_or(ConfigFault::NoExperiment)?;
    if found != experiment {
        return Err(ConfigFault::OtherExperiment(found));
    }
    let version = word("version").ok_or(ConfigFault::NoVersion)?;
    if version != VERSION {
        return Err(ConfigFault::OtherVersion(version));
    }
    let config: C = toml::from_str(&settings(text)).map_err(located)?;
    let known = toml::Table::try_from(&config).map_err(|error| ConfigFault::Toml {
        place: String::new(),
        message: error.to_string(),
    })?;
    let mut keys = table.keys();
    let unknown = keys.find(|key| !known.contains_key(&key.replace('_', "-")));
    match unknown {
        Some(key) => Err(ConfigFault::UnknownSetting(key.clone())),
        None => Ok(config),
    }
}

/// The text without experiment and version, each of which leaves an empty line: the places of errors stay.
fn settings(text: &str) -> String {
    let aside = |line: &str| {
        let key = line.split('=').next().unwrap_or(line).trim();
        ["experiment", "version"].contains(&key)
    };
    let line = |line: &str| match aside(line) {
        true => " ".repeat(line.len()) + "\n",
        false => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The line of an error and, where the line has one, the setting.
fn place(text: &str, error: &toml::de::Error) -> String {
    // What is missing is nowhere.
    let there = !error.message().starts_with("missing field");
    let Some(span) = error.span().filter(|_| there) else {
        return String::new();
    };
    let before = text.get(..span.start).unwrap_or(text);
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    match line.split_once('=') {
        Some((key, _)) => format!("line {}, `{}`: ", number + 1, key.trim()),
        None => format!("line {}: ", number + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::in_one_line;
    use super::*;
    use crate::toy::ToyConfig;

    fn refused(text: &str) -> String {
        in_one_line(&parse::<ToyConfig>(text, "toy").expect_err("it is bad"))
    }

    #[test]
    fn a_bad_file_is_told_its_line_and_setting() {
        let recorded = Recorded::new("toy", ToyConfig::default());
        let good = toml::to_string(&recorded).expect("TOML");
        let config: ToyConfig = parse(&good, "toy").expect("a configuration");
        assert_eq!(config, ToyConfig::default());
        // As it was spelled before.
        let old = good.replace("learning-rate", "learning_rate");
        let old = old.replace("state-", "state_");
        assert_ne!(old, good);
        let config: ToyConfig = parse(&old, "toy").expect("an old configuration");
        assert_eq!(config, ToyConfig::default());

        for (from, to, hint) in [
            (
                "seeds = 20",
                "seeds = \"ten\"",
                "line 4, `seeds`: invalid type: string",
            ),
            ("seeds = 20", "seeds = -1", "line 4, `seeds`: "),
            ("seeds = 20", "seeds = 20 20", "line 4, `seeds`: "),
            ("seeds = 20", "sedes = 20", "missing field `seeds`"),
            (
                "seeds = 20",
                "seeds = 20\nsedes = 3",
                "there is no setting `sedes`",
            ),
            ("\"toy\"", "\"vae\"", "it is a `vae` config"),
            ("experiment = \"toy\"\n", "", "name its `experiment`"),
            (VERSION, "0.0.1", "written by version 0.0.1"),
        ] {
            let message = refused(&good.replacen(from, to, 1));
            assert!(message.contains(hint), "{hint}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }
}
