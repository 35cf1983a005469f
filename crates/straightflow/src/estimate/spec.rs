//! How an estimator is addressed outside of code: `id` or `id:key=value,key=value`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Near, Result};
use crate::text::as_text;

/// An estimator and its options, as text.
///
/// ```
/// use straightflow::estimator::Spec;
///
/// let spec: Spec = "straight-through:samples=4".parse()?;
/// let estimator = spec.build()?;
/// assert_eq!(estimator.draws(), 4);
/// assert_eq!(estimator.spec(), spec);
/// # Ok::<(), straightflow::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Spec {
    id: String,
    /// In the order in which they are written.
    options: Vec<(String, String)>,
}

impl Spec {
    /// An estimator with its default options.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            options: Vec::new(),
        }
    }

    /// The estimator's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Sets an option, or replaces its value.
    pub fn set(&mut self, key: &str, value: &str) {
        match self.options.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => value.clone_into(old),
            None => self.options.push((key.to_owned(), value.to_owned())),
        }
    }

    /// The number of options.
    pub(crate) fn len(&self) -> usize {
        self.options.len()
    }

    /// The value of an option, if the specification names it.
    pub fn option(&self, key: &str) -> Option<&str> {
        let mut options = self.options();
        options.find(|(known, _)| *known == key).map(|(_, v)| v)
    }

    /// The options in the order in which they are written.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.options.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)?;
        for (index, (key, value)) in self.options.iter().enumerate() {
            let separator = if index == 0 { ':' } else { ',' };
            write!(f, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || Error::MalformedSpec {
            spec: text.to_owned(),
        };
        let (id, options) = match text.split_once(':') {
            Some((id, options)) => (id, Some(options)),
            None => (text, None),
        };
        let mut spec = Self::new(id.trim());
        if spec.id.is_empty() {
            return Err(malformed());
        }
        for option in options.into_iter().flat_map(|options| options.split(',')) {
            let (key, value) = option.split_once('=').ok_or_else(malformed)?;
            let (key, value) = (key.trim(), value.trim());
            let repeated = spec.options.iter().any(|(known, _)| known == key);
            if key.is_empty() || value.is_empty() || repeated {
                return Err(malformed());
            }
            spec.set(key, value);
        }
        Ok(spec)
    }
}

as_text!(Spec);

/// The known words that look like a given one, nearest first, or that it is a list of; all of them in alphabetical order if
/// none does.
pub(crate) fn near<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Near {
    let word = &word.to_lowercase();
    let is_known = |part: &str| known.clone().any(|one| one == part);
    if word.contains(',') && word.split(',').all(is_known) {
        return Near::Several(word.split(',').map(str::to_owned).collect());
    }
    let mut scored: Vec<(f64, &str)> = known
        .map(|candidate| {
            let part = candidate.contains(word) || word.contains(candidate);
            let part = f64::from(u8::from(part && !word.is_empty()));
            (strsim::jaro_winkler(word, candidate).max(part), candidate)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let similar: Vec<String> = scored
        .iter()
        .filter(|(score, _)| *score > 0.8)
        .take(3)
        .map(|(_, candidate)| (*candidate).to_owned())
        .collect();
    if similar.is_empty() {
        let words = scored.into_iter().map(|(_, word)| word.to_owned());
        let mut all: Vec<String> = words.collect();
        all.sort_unstable();
        return Near::All(all);
    }
    Near::Similar(similar)
}
