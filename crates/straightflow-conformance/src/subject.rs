//! What is tested: an estimator with a specification, and what its expectation is compared with.

use std::fmt;

use serde_json::Value;
use straightflow::Error;
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Bias, Entry, Estimator, REGISTRY, Spec};

use crate::problem::{self, Problem};

/// A rejection: which check, of what, and the numbers.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The check that rejects.
    pub check: &'static str,
    /// The specification of the estimator.
    pub spec: String,
    /// The family, its parameters and the objective, as far as they matter.
    pub problem: String,
    /// What was found, with numbers.
    pub found: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            check,
            spec,
            problem,
            found,
        } = self;
        write!(f, "[{check}] {spec}, {problem}: {found}")
    }
}

/// Against what the expectation of an estimator's gradient is checked.
#[derive(Clone, Debug)]
pub enum Target {
    /// The exact gradient of the objective.
    Exact,
    /// The scalar reference of an id, for a recorded configuration.
    Reference {
        /// The id in [`expected`](crate::reference::expected).
        id: &'static str,
        /// The configuration.
        config: Value,
    },
}

/// An estimator under test.
pub struct Subject {
    /// The specification, as it stands in messages and pins.
    pub spec: String,
    /// What the expectation is compared with.
    pub target: Target,
    /// The variance of one estimate, where a subject states it beyond
    /// [`variance`](crate::reference::variance).
    pub variance: Option<fn(&Problem) -> Vec<f64>>,
    /// The only family that is looked at, if not all.
    family: Option<FamilyKind>,
    /// A new estimator for each use, because one may carry a state from call to call.
    make: Box<dyn Fn() -> Box<dyn Estimator> + Send + Sync>,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subject").field(&self.spec).finish()
    }
}

impl Subject {
    /// A subject whose target follows from the bias that the entry declares.
    pub fn new(make: impl Fn() -> Box<dyn Estimator> + Send + Sync + 'static) -> Self {
        let estimator = make();
        let target = match estimator.entry().bias {
            Bias::Unbiased | Bias::UnbiasedOn { .. } => Target::Exact,
            Bias::Biased { .. } => Target::Reference {
                id: estimator.entry().id,
                config: estimator.config(),
            },
        };
        Self {
            spec: estimator.spec().to_string(),
            target,
            variance: None,
            family: None,
            make: Box::new(make),
        }
    }

    /// The same subject, of one family alone.
    pub fn of_family(self, kind: FamilyKind) -> Self {
        Self {
            family: Some(kind),
            ..self
        }
    }

    /// A new estimator.
    pub fn estimator(&self) -> Box<dyn Estimator> {
        (self.make)()
    }

    /// The entry of the estimator.
    pub fn entry(&self) -> &'static Entry {
        self.estimator().entry()
    }

    /// A rejection by a check.
    pub fn failure(
        &self,
        check: &'static str,
        problem: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Failure {
        Failure {
            check,
            spec: self.spec.clone(),
            problem: problem.to_string(),
            found: found.to_string(),
        }
    }

    /// All one-variable problems that the subject claims to solve: every family, each with a
    /// moderate and an extreme parameter, with every objective.
    ///
    /// # Errors
    ///
    /// If a claimed family is refused by another error than [`Error::UnsupportedFamily`] or
    /// [`Error::InvalidOption`], or a default configuration refuses one that it claims to take.
    pub fn problems(&self) -> Result<Vec<Problem>, Failure> {
        let mut problems = Vec::new();
        for kind in self.families()? {
            problems.extend(problem::problems(kind));
        }
        Ok(problems)
    }

    /// The families that this configuration takes. An option may narrow those of the entry.
    ///
    /// # Errors
    ///
    /// As [`problems`](Self::problems).
    pub fn families(&self) -> Result<Vec<FamilyKind>, Failure> {
        let estimator = self.estimator();
        let entry = estimator.entry();
        let is_default = estimator.config() == Value::Object(entry.defaults());
        let mut families = Vec::new();
        let asked = |kind: &&FamilyKind| self.family.is_none_or(|family| family == **kind);
        for kind in entry.families.iter().chain(entry.also).filter(asked) {
            let law = problem::problems(*kind)[0].law(1);
            match estimator.check(&law, estimator.draws()) {
                Ok(()) => families.push(*kind),
                Err(Error::UnsupportedFamily { .. } | Error::InvalidOption { .. })
                    if !is_default || entry.also.contains(kind) => {}
                Err(error) => return Err(self.failure("families", kind, error)),
            }
        }
        Ok(families)
    }
}

/// Options beyond those that are derived from the registry, worth a run of their own.
const VARIANTS: &[(&str, &[&str])] = &[
    ("pwgf", &["bandwidth=1sd", "gain=projection"]),
    ("fini", &["order=3", "order=4"]),
    ("arms", &["samples=4"]),
    (
        "debiased-st",
        &[
            "flips=2",
            "base=second-order-st,choice=uniform,curvature=off",
            "scale=learned,choice=variance",
        ],
    ),
    ("muprop", &["coefficients=learned"]),
    ("double-cv", &["alpha=-1,tune=off", "alpha=-0.4,tune=off"]),
    ("rebar", &["tune=none,eta=0.6,temperature=1.5", "tune=eta"]),
    ("relax", &["control=sum", "control=sum,samples=2"]),
];

/// Every estimator of the registry: its defaults, every preset, two and three draws, every baseline
/// that it knows, and the variants listed above.
pub fn registry() -> Vec<Subject> {
    REGISTRY.iter().flat_map(|entry| of_entry(entry)).collect()
}

/// The subjects of one entry.
pub fn of_entry(entry: &'static Entry) -> Vec<Subject> {
    let mut specs = vec![Spec::new(entry.id)];
    for preset in entry.presets {
        specs.push(with(entry, &[("preset", preset.name)]));
    }
    if entry.defaults().contains_key("samples") {
        specs.push(with(entry, &[("samples", "2")]));
        specs.push(with(entry, &[("samples", "3")]));
    }
    for baseline in choices(entry, "baseline") {
        specs.push(with(entry, &[("baseline", &baseline)]));
        specs.push(with(entry, &[("baseline", &baseline), ("samples", "2")]));
    }
    for (_, options) in VARIANTS.iter().filter(|(id, _)| *id == entry.id) {
        for option in *options {
            specs.push(format!("{}:{option}", entry.id).parse().expect("a spec"));
        }
    }
    let mut subjects: Vec<Subject> = Vec::new();
    for spec in specs {
        // What an entry refuses (too few draws, say) is not a configuration of it.
        let Ok(estimator) = entry.build_spec(&spec) else {
            continue;
        };
        let text = estimator.spec().to_string();
        if subjects.iter().all(|subject| subject.spec != text) {
            subjects.push(Subject::new(move || {
                entry.build_spec(&spec).expect("it was built before")
            }));
        }
    }
    subjects
}

fn with(entry: &Entry, options: &[(&str, &str)]) -> Spec {
    let mut spec = Spec::new(entry.id);
    for (key, value) in options {
        spec.set(key, value);
    }
    spec
}

/// The words that an option takes, read from the error for a word that it does not take: serde
/// names them all in back quotes after "expected".
fn choices(entry: &Entry, option: &str) -> Vec<String> {
    if !entry.defaults().contains_key(option) {
        return Vec::new();
    }
    let Err(error) = entry.build_spec(&with(entry, &[(option, "no-such-word")])) else {
        return Vec::new();
    };
    let text = error.to_string();
    let Some((_, expected)) = text.split_once("expected") else {
        return Vec::new();
    };
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_derived_from_the_registry() {
        let specs: Vec<String> = registry().into_iter().map(|subject| subject.spec).collect();
        for spec in [
            "straight-through",
            "straight-through:samples=3",
            "pwgf:preset=paper",
            "second-order-st:baseline=loo,samples=2",
        ] {
            assert!(specs.iter().any(|known| known == spec), "{spec}: {specs:?}");
        }
    }

    #[test]
    fn every_listed_variant_builds() {
        for (id, options) in VARIANTS {
            let Some(entry) = REGISTRY.iter().find(|entry| entry.id == *id) else {
                continue;
            };
            for option in *options {
                let spec: Spec = format!("{id}:{option}").parse().expect("a spec");
                entry.build_spec(&spec).expect("a valid variant");
            }
        }
    }
}
