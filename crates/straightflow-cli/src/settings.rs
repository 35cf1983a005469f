//! What all commands share about settings: the files they are read from, and their words and numbers on the
//! command line.

use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, anyhow, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde::de::value::StringDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::ui::bad_input;

/// Words and what they mean.
pub type Words = [(&'static str, &'static str)];

pub const ARCHITECTURES: &Words = &[
    ("linear", "784-[200]-784"),
    ("two-layer", "784-[200]-[200]"),
    ("nonlinear", "784-200-200-[200]-200-200-784"),
];
pub const PROTOCOLS: &Words = &[
    (
        "threshold",
        "Pixels above one half, batches of 25, a fixed prior (protocol A)",
    ),
    (
        "static",
        "Pixels drawn once, batches of 50, a learned prior (protocol B)",
    ),
    (
        "dynamic",
        "Pixels drawn anew in every epoch; needs --data (protocol D)",
    ),
];
pub const LATENTS: &Words = &[
    ("bernoulli", "200 bits"),
    ("categorical", "20 variables with 10 categories"),
    ("poisson", "200 counts"),
];
pub const DIRECTS: &Words = &[
    ("dropped", "The parameters of log q are constants"),
    ("kept", "The gradient of log q is part of the estimate"),
];
pub const PRIORS: &Words = &[
    ("fixed", "Even odds, equal categories, a rate of one"),
    ("learned", "The same at first, and then learned"),
];
pub const CENTRINGS: &Words = &[
    ("none", "x"),
    ("signed", "2 x - 1"),
    ("mean", "x minus its mean over the training images"),
];
pub const PARAMETRISATIONS: &Words = &[
    ("direct", "The parameter is the rate"),
    ("log-rate", "The parameter is the logarithm of the rate"),
    ("softplus", "The rate is ln(1 + exp(parameter))"),
];
pub const OBJECTIVES: &Words = &[
    ("log-loss", "-E_data log w - E_generator log(1 - w)"),
    (
        "literal",
        "E_generator w - E_data w, the paper's formula as it is printed",
    ),
];

/// A parser of the words that a type has in records.
pub fn word<T>(words: &'static Words) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = words
        .iter()
        .map(|(word, help)| PossibleValue::new(word).help(help));
    PossibleValuesParser::new(values).try_map(|word| {
        let word: StringDeserializer<serde::de::value::Error> = word.into_deserializer();
        T::deserialize(word)
    })
}

/// A whole number that is not negative.
pub fn count<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, &'static str> {
    text.parse()
        .map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => "the number is too large",
            _ => "a whole number is wanted that is not negative",
        })
}

/// The configuration of an experiment that a file holds, of this version of the program.
pub fn read_config<C>(path: &Path, experiment: &str) -> anyhow::Result<C>
where
    C: Serialize + DeserializeOwned,
{
    let read = || -> anyhow::Result<C> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        parse(&text, experiment)
            .with_context(|| format!("{} is no configuration of `{experiment}`", path.display()))
    };
    read().map_err(bad_input)
}

fn parse<C: Serialize + DeserializeOwned>(text: &str, experiment: &str) -> anyhow::Result<C> {
    let located = |error: toml::de::Error| anyhow!("{}{}", place(text, &error), error.message());
    let table: toml::Table = toml::from_str(text).map_err(located)?;
    let word = |key: &str| table.get(key).and_then(toml::Value::as_str);
    let found = word("experiment").context("it does not say of which `experiment` it is")?;
    ensure!(found == experiment, "it is one of `{found}`");
    let (own, version) = (env!("CARGO_PKG_VERSION"), word("version"));
    let version = version.context("it does not say which `version` wrote it")?;
    ensure!(
        version == own,
        "the configuration was written by version {version}, and this is {own}: the same bits are \
         promised for the same version only"
    );
    let config: C = toml::from_str(text).map_err(located)?;
    let known = toml::Table::try_from(&config)?;
    let unknown = table.keys().find(|key| {
        let kebab = key.replace('_', "-");
        !["experiment", "version"].contains(&key.as_str()) && !known.contains_key(&kebab)
    });
    match unknown {
        Some(key) => Err(anyhow!("there is no setting `{key}`")),
        None => Ok(config),
    }
}

/// The line of an error and, where the line has one, the setting.
fn place(text: &str, error: &toml::de::Error) -> String {
    // What is missing is nowhere.
    let there = !error.message().starts_with("missing field");
    let Some(span) = error.span().filter(|_| there) else {
        return String::new();
    };
    let before = &text[..span.start];
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default();
    match line.split_once('=') {
        Some((key, _)) => format!("line {}, `{}`: ", number + 1, key.trim()),
        None => format!("line {}: ", number + 1),
    }
}

#[cfg(test)]
mod tests {
    use straightflow_experiments::poisson::{GameObjective, Parametrisation};
    use straightflow_experiments::toy::ToyConfig;
    use straightflow_experiments::vae::{Architecture, Centring, Direct, Latent, Prior, Protocol};

    use super::*;

    fn refused(text: &str) -> String {
        let error = parse::<ToyConfig>(text, "toy").expect_err("it is bad");
        format!("{error:#}")
    }

    #[test]
    fn a_bad_file_is_told_its_line_and_setting() {
        let good = toml::to_string(&ToyConfig::default()).expect("TOML");
        let version = env!("CARGO_PKG_VERSION");
        let good = format!("experiment = \"toy\"\nversion = \"{version}\"\n{good}");
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
            ("\"toy\"", "\"vae\"", "it is one of `vae`"),
            ("experiment = \"toy\"\n", "", "of which `experiment`"),
            (version, "0.0.1", "written by version 0.0.1"),
        ] {
            let message = refused(&good.replacen(from, to, 1));
            assert!(message.contains(hint), "{hint}: {message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn the_words_of_the_command_line_are_those_of_the_records() {
        fn known<T: DeserializeOwned + Clone + Send + Sync + 'static>(words: &'static Words) {
            let argument = clap::Arg::new("x").value_parser(word::<T>(words));
            let command = clap::Command::new("x").arg(argument);
            for (word, _) in words {
                let parsed = command.clone().try_get_matches_from(["x", word]);
                assert!(parsed.is_ok(), "{word}: {parsed:?}");
            }
        }
        known::<Architecture>(ARCHITECTURES);
        known::<Protocol>(PROTOCOLS);
        known::<Latent>(LATENTS);
        known::<Direct>(DIRECTS);
        known::<Prior>(PRIORS);
        known::<Centring>(CENTRINGS);
        known::<Parametrisation>(PARAMETRISATIONS);
        known::<GameObjective>(OBJECTIVES);
    }

    #[test]
    fn numbers_that_are_no_counts_are_told_so() {
        assert_eq!(count::<u64>("12"), Ok(12));
        for (text, hint) in [
            ("-1", "not negative"),
            ("1.5", "whole number"),
            ("18446744073709551616", "too large"),
        ] {
            let message = count::<u64>(text).expect_err("no count");
            assert!(message.contains(hint), "{text}: {message}");
        }
    }
}
