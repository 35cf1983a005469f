//! What is known about an estimator without running it.

use std::fmt;
use std::ops::{Bound, Deref, RangeBounds};

use burn::tensor::Tensor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::layers::Stacking;
use super::noise::NoiseLaw;
use super::pathwise::Pathwise;
use super::run::Estimator;
use super::spec::{Spec, near};
use super::state::State;
use crate::distribution::FamilyKind;
use crate::error::{Error, Result};
use crate::estimate::objective::ObjectiveKind;

/// What a method says about itself. [`method!`](crate::method) implements it.
pub trait Described: fmt::Debug + Send + Sync {
    /// The entry in the registry.
    fn entry(&self) -> &'static Entry;

    /// The configuration as it is recorded.
    fn config(&self) -> Value;

    /// The number of draws of one estimate, or of the antithetic pairs if it takes those.
    fn draws(&self) -> usize;

    /// How the estimator treats the layers of an objective that has several.
    fn stacking(&self) -> Stacking<'_>;

    /// The estimator of a training step: the same, with a scheduled temperature advanced to that
    /// step.
    ///
    /// # Errors
    ///
    /// None for an estimator that was built from a valid configuration.
    fn at_step(&self, step: u64) -> Result<Box<dyn Estimator>>;

    /// The same estimator with its state and a conditioning input `[batch, features]` attached.
    ///
    /// The input is what the state may look at besides the samples, such as the observation that
    /// the encoder sees. It is taken as a constant.
    ///
    /// # Errors
    ///
    /// If the estimator has no state of its own, or a part of the state is missing.
    fn bind(&self, _state: &State, _input: Option<Tensor<2>>) -> Result<Box<dyn Estimator>> {
        Err(Error::NoState {
            estimator: self.entry().id,
        })
    }

    /// The same estimator with the state of one layer only, if its layers have states.
    fn at_layer(&self, _layer: usize) -> Option<Box<dyn Estimator>> {
        None
    }

    /// The same estimator as a source of samples on the tape, if it is one.
    fn pathwise(&self) -> Option<&dyn Pathwise> {
        match self.stacking() {
            Stacking::Tape(pathwise) => Some(pathwise),
            _ => None,
        }
    }

    /// The specification that builds this estimator again.
    fn spec(&self) -> Spec {
        self.entry().spec_of(&self.config())
    }
}

/// A configuration: serialisable, with defaults, checked by [`init`](Self::init). It is what
/// records keep.
pub trait EstimatorConfig: Clone + Default + Serialize + DeserializeOwned {
    /// What the configuration makes.
    type Estimator: Estimator + 'static;

    /// Checks the configuration and makes the estimator.
    ///
    /// # Errors
    ///
    /// The first option that is out of its range.
    fn init(self) -> Result<Self::Estimator>;
}

/// Whether an estimator's expectation is the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// It is, for every cost.
    Unbiased,
    /// It is, for the costs that it is meant for.
    UnbiasedOn {
        /// Which these are.
        costs: &'static str,
    },
    /// It is not in general.
    Biased {
        /// For which costs it is.
        exact_on: &'static str,
    },
}

impl fmt::Display for Bias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbiased => f.write_str("none"),
            Self::UnbiasedOn { costs } => write!(f, "none on {costs}"),
            Self::Biased { exact_on } => write!(f, "unbiased only on {exact_on}"),
        }
    }
}

impl Bias {
    /// Whether the expectation is the gradient, for every cost that the method is meant for.
    pub fn is_unbiased(&self) -> bool {
        !matches!(self, Self::Biased { .. })
    }
}

/// What an estimator asks of the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Need {
    /// Its values.
    #[serde(rename = "f")]
    Value,
    /// Its gradient with respect to the samples.
    #[serde(rename = "df")]
    Gradient,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "f",
            Self::Gradient => "df",
        })
    }
}

/// How the price of an estimate follows from its number of draws `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceRule {
    /// So much for each draw.
    PerDraw {
        /// Evaluations of the cost.
        evaluations: usize,
        /// Backward passes through the cost.
        gradients: usize,
    },
    /// As [`Estimator::price`] says; in words.
    Own(&'static str),
}

impl fmt::Display for PriceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let term = |count: usize, what: &str| match count {
            1 => format!("n {what}"),
            _ => format!("{count} n {what}"),
        };
        match *self {
            Self::PerDraw {
                evaluations,
                gradients: 0,
            } => f.write_str(&term(evaluations, "f")),
            Self::PerDraw {
                evaluations,
                gradients,
            } => write!(f, "{}, {}", term(evaluations, "f"), term(gradients, "df")),
            Self::Own(text) => f.write_str(text),
        }
    }
}

/// The price of an estimate, in draws at which the cost is evaluated, for a cost without
/// parameters of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Evaluations of the cost.
    pub evaluations: usize,
    /// Backward passes through the cost.
    pub gradients: usize,
}

impl Price {
    /// So many evaluations and backward passes.
    pub const fn new(evaluations: usize, gradients: usize) -> Self {
        Self {
            evaluations,
            gradients,
        }
    }
}

/// A named choice of options.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name, for `preset=name`.
    pub name: &'static str,
    /// What it is, in one clause.
    pub about: &'static str,
    /// The options, as in a specification.
    pub options: &'static [(&'static str, &'static str)],
}

/// How a method treats an objective of several layers; see [`Stacking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// It takes a single one only.
    Unsupported,
    /// By samples on the tape.
    Tape,
    /// One layer after the other.
    Layerwise,
    /// By a rule of its own.
    Own,
}

/// What is known about an option besides its default.
#[derive(Clone, Copy, Debug)]
pub struct OptionFacts {
    /// The field of the configuration.
    pub field: &'static str,
    /// What it does, as in the rustdoc of the field.
    pub text: &'static str,
    /// The range of its values in words, if it has one.
    pub range: fn() -> Option<String>,
}

impl OptionFacts {
    /// The key in a specification.
    pub fn key(&self) -> String {
        self.field.replace('_', "-")
    }

    /// What it does and the range of its values.
    pub fn about(&self) -> String {
        let text = self.text.trim();
        match (self.range)() {
            Some(range) => format!("{} ({range})", text.trim_end_matches('.')),
            None => text.trim_end_matches('.').to_owned(),
        }
    }
}

/// What an estimator says about itself.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The id in specifications.
    pub id: &'static str,
    /// The name in tables.
    pub name: &'static str,
    /// The families that it supports.
    pub families: &'static [FamilyKind],
    /// Those that it supports with some options only, and not with its defaults.
    pub also: &'static [FamilyKind],
    /// The kind of objective that it takes.
    pub objective: ObjectiveKind,
    /// Its bias.
    pub bias: Bias,
    /// What it asks of the cost.
    pub needs: &'static [Need],
    /// The price of an estimate with `n` draws of `d` coordinates.
    pub price: PriceRule,
    /// What each draw takes first; see [`Estimator::noise`].
    pub noise: NoiseLaw,
    /// How it treats an objective of several layers.
    pub layers: Layers,
    /// Whether the cost is only ever evaluated at hard samples.
    pub hard: bool,
    /// Whether the draws of an estimate count differently: its value is then a weighted mean of
    /// their costs.
    pub weighted: bool,
    /// Whether some configuration has [`State`](super::State).
    pub learns: bool,
    /// The least number of draws.
    pub least_samples: usize,
    /// Where it comes from.
    pub reference: &'static str,
    /// One row for each option.
    pub options: &'static [OptionFacts],
    /// Named choices of options.
    pub presets: &'static [Preset],
    /// Other names of the same method, which specifications may use.
    pub aliases: &'static [&'static str],
}

/// One estimator of the registry: what it says about itself, and how it is made.
#[derive(Debug)]
pub struct Entry {
    about: About,
    defaults: fn() -> Value,
    build: fn(&'static str, Value) -> Result<Box<dyn Estimator>>,
}

impl Deref for Entry {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl Entry {
    /// An entry for the estimator of a configuration.
    pub const fn new<C: EstimatorConfig>(about: About) -> Self {
        Self {
            about,
            defaults: defaults::<C>,
            build: build::<C>,
        }
    }

    /// A configuration as it is recorded: an object with a field for each option.
    pub fn record<C: EstimatorConfig>(&self, config: &C) -> Value {
        serde_json::to_value(config).expect("a configuration of plain values")
    }

    /// The default configuration, as it is recorded.
    pub fn defaults(&self) -> Map<String, Value> {
        match (self.defaults)() {
            Value::Object(fields) => fields,
            other => unreachable!("a configuration is an object, got {other}"),
        }
    }

    /// Makes the estimator of a recorded configuration.
    ///
    /// # Errors
    ///
    /// If an option is unknown, of the wrong type or out of its range.
    pub fn build(&self, config: Value) -> Result<Box<dyn Estimator>> {
        (self.build)(self.id, config)
    }

    /// Makes the estimator of a specification, whatever id that has: the way for an entry that is
    /// not in the registry.
    ///
    /// # Errors
    ///
    /// As [`Spec::build`], without the unknown id.
    pub fn build_spec(&self, spec: &Spec) -> Result<Box<dyn Estimator>> {
        self.build(self.configure(spec.options())?)
    }

    /// The shortest specification of a recorded configuration: the options that differ from the
    /// defaults, or from a preset if that is no longer.
    pub(crate) fn spec_of(&self, config: &Value) -> Spec {
        let bases = self.presets.iter().map(Some).chain([None]);
        let specs = bases.map(|preset| {
            let mut base = self.defaults();
            let mut spec = Spec::new(self.id);
            if let Some(preset) = preset {
                spec.set("preset", preset.name);
                for (key, value) in preset.options {
                    let value = parse_like(self.id, key, &base[*key], value);
                    base[*key] = value.expect("a valid preset");
                }
            }
            for (key, value) in &base {
                if config[key] != *value {
                    spec.set(key, &display_option(&config[key]));
                }
            }
            spec
        });
        specs
            .min_by_key(Spec::len)
            .expect("the defaults are always a base")
    }

    /// The configuration of the options of a specification.
    fn configure<'a>(
        &self,
        options: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Result<Value> {
        let mut config = self.defaults();
        let presets = options.clone().filter(|(key, _)| *key == "preset");
        for (_, name) in presets {
            let preset = self.preset(name)?;
            for (key, value) in preset.options {
                config[*key] = parse_like(self.id, key, &config[*key], value)?;
            }
        }
        for (key, value) in options.filter(|(key, _)| *key != "preset") {
            let Some(default) = config.get(key) else {
                let known = config.keys().map(String::as_str);
                return Err(Error::UnknownOption {
                    estimator: self.id.to_owned(),
                    key: key.to_owned(),
                    near: near(
                        key,
                        known.chain((!self.presets.is_empty()).then_some("preset")),
                    ),
                });
            };
            let value = parse_like(self.id, key, default, value)?;
            config[key] = value;
        }
        Ok(Value::Object(config))
    }

    fn preset(&self, name: &str) -> Result<&Preset> {
        let found = self.presets.iter().find(|preset| preset.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.presets.iter().map(|preset| preset.name).collect();
            self.invalid(match names.as_slice() {
                [] => "it has no presets".to_owned(),
                names => format!("no preset `{name}`, only {}", names.join(", ")),
            })
        })
    }

    /// The error for an option out of its range; `message` is one clause.
    pub fn invalid(&self, message: impl Into<String>) -> Error {
        Error::InvalidOption {
            estimator: self.id,
            message: message.into(),
        }
    }

    /// Checks a number of samples.
    ///
    /// # Errors
    ///
    /// If there are too few.
    pub fn need_samples(&self, got: usize, needed: usize) -> Result<()> {
        if got < needed {
            return Err(Error::TooFewSamples {
                estimator: self.id,
                needed,
                got,
            });
        }
        Ok(())
    }

    /// Checks that a family is supported, with some options at least.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn need_family(&self, family: FamilyKind) -> Result<()> {
        match self.families.contains(&family) || self.also.contains(&family) {
            true => Ok(()),
            false => Err(Error::UnsupportedFamily {
                estimator: self.id,
                family,
                supported: self.families,
            }),
        }
    }

    /// Checks that an option is in its range.
    ///
    /// # Errors
    ///
    /// If it is not.
    pub fn need<V: OptionValue, N: OptionValue>(
        &self,
        field: &str,
        value: &V,
        range: impl RangeBounds<N>,
    ) -> Result<()> {
        let field = field.replace('_', "-");
        let (least, most) = value.extremes();
        let above = match range.start_bound() {
            Bound::Included(bound) => least >= bound.extremes().0,
            Bound::Excluded(bound) => least > bound.extremes().0,
            Bound::Unbounded => true,
        };
        let below = match range.end_bound() {
            Bound::Included(bound) => most <= bound.extremes().0,
            Bound::Excluded(bound) => most < bound.extremes().0,
            Bound::Unbounded => true,
        };
        if above && below {
            return value.check().map_err(|message| self.invalid(message));
        }
        let range = describe_range(range);
        Err(self.invalid(format!("`{field}` must be {range}, got {value}")))
    }

    /// Checks how many random numbers a variable takes.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(crate) fn need_noise(&self, needed: f64, limit: usize) -> Result<()> {
        if needed > limit as f64 {
            return Err(Error::TooMuchNoise {
                estimator: self.id,
                needed,
                limit,
            });
        }
        Ok(())
    }
}

/// An option with a range.
pub trait OptionValue: fmt::Display {
    /// The least and the largest number that it stands for.
    fn extremes(&self) -> (f64, f64);

    /// Looks for what a range cannot say.
    ///
    /// # Errors
    ///
    /// What is wrong.
    fn check(&self) -> std::result::Result<(), String> {
        Ok(())
    }
}

impl OptionValue for usize {
    fn extremes(&self) -> (f64, f64) {
        (*self as f64, *self as f64)
    }
}

impl OptionValue for f64 {
    fn extremes(&self) -> (f64, f64) {
        (*self, *self)
    }
}

/// A range in words: "at least 0 and below 1", "positive and finite".
pub fn describe_range<N: OptionValue>(range: impl RangeBounds<N>) -> String {
    let least = match range.start_bound() {
        Bound::Included(bound) | Bound::Excluded(bound) => match bound.extremes().0 {
            f64::MIN => None,
            f64::MIN_POSITIVE => Some("positive".to_owned()),
            number => Some(format!("at least {number}")),
        },
        Bound::Unbounded => None,
    };
    let most = match range.end_bound() {
        Bound::Included(bound) if bound.extremes().0 == f64::MAX => Some("finite".to_owned()),
        Bound::Included(bound) => Some(format!("at most {bound}")),
        Bound::Excluded(bound) => Some(format!("below {bound}")),
        Bound::Unbounded => None,
    };
    let words: Vec<String> = least.into_iter().chain(most).collect();
    words.join(" and ")
}

/// serde's "unknown variant `word`, expected one of `a`, `b`" with the option that has the word.
fn unknown_word(config: &Value, message: &str) -> Option<String> {
    let (word, rest) = message.strip_prefix("unknown variant `")?.split_once('`')?;
    let known = rest.strip_prefix(", expected ")?;
    let mut options = config.as_object()?.iter();
    let (key, _) = options.find(|(_, value)| value.as_str() == Some(word))?;
    Some(format!("`{key}` cannot be `{word}`, expected {known}"))
}

fn defaults<C: EstimatorConfig>() -> Value {
    serde_json::to_value(C::default()).expect("a configuration of plain values")
}

fn build<C: EstimatorConfig>(id: &'static str, config: Value) -> Result<Box<dyn Estimator>> {
    let config: C = serde_json::from_value(config.clone()).map_err(|error| {
        let message = error.to_string();
        Error::InvalidOption {
            estimator: id,
            message: unknown_word(&config, &message).unwrap_or(message),
        }
    })?;
    Ok(Box::new(config.init()?))
}

/// Reads an option's value as the type of its default.
fn parse_like(id: &'static str, key: &str, default: &Value, text: &str) -> Result<Value> {
    let value = match default {
        Value::Bool(_) => match text {
            "on" | "true" | "yes" => Some(Value::Bool(true)),
            "off" | "false" | "no" => Some(Value::Bool(false)),
            _ => None,
        },
        Value::Number(number) if number.is_f64() => text.parse::<f64>().ok().and_then(|number| {
            // JSON has no infinities, and no option of ours means one.
            serde_json::Number::from_f64(number).map(Value::Number)
        }),
        Value::Number(_) => text.parse::<u64>().ok().map(Value::from),
        _ => Some(Value::from(text)),
    };
    value.ok_or_else(|| Error::InvalidOption {
        estimator: id,
        message: format!(
            "`{key}` takes {}, got `{text}`",
            match default {
                Value::Bool(_) => "on or off",
                Value::Number(number) if number.is_f64() => "a number",
                _ => "a whole number",
            }
        ),
    })
}

/// An option's recorded value as it stands in a specification.
pub fn display_option(value: &Value) -> String {
    match value {
        Value::Bool(true) => "on".to_owned(),
        Value::Bool(false) => "off".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float.to_string(),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
