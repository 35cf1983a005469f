//! The methods: one file each, one list of all.
//!
//! A method is addressed by a [`Spec`] such as `straight-through:samples=4` wherever a person or a
//! file names it, and by its type in code. [`REGISTRY`] is the list from which command line,
//! documentation, tests, benches and reports are made.

use crate::distribution::FamilyKind;
use crate::error::{Error, Result};
use crate::estimate::{Entry, Estimator, Layers, Spec, near};

// Named here, so that rustfmt and editors see the files, and once more in the list below, which has
// the order of the documentation. A test compares the two with the folder.
mod arm;
mod arms;
mod carms;
mod debiased_st;
mod disarm;
mod double_cv;
mod enumerate;
mod exponential_arrival;
mod fini;
mod finite_difference;
mod gapped_straight_through;
mod gumbel_rao;
mod gumbel_softmax;
mod local_disarm;
mod muprop;
mod pwgf;
mod rebar;
mod reinforce;
mod reinmax;
mod relax;
mod relaxed_top_k;
mod rodeo;
mod second_order_st;
mod straight_through;
mod straight_through_gumbel;
mod truncated_gumbel;
mod unordered_set;
mod vimco;

/// Methods that work alike.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What its methods have in common.
    pub about: &'static str,
    /// Its methods, in the order of the documentation.
    pub methods: &'static [&'static Entry],
}

/// Collects the methods and their entries, kind by kind.
macro_rules! methods {
    ($($kind:literal: $about:literal [$($module:ident),* $(,)?])*) => {
        $($(pub use $module::*;)*)*

        /// The methods and their configurations alone.
        pub mod all {
            $($(pub use super::$module::*;)*)*
        }

        /// Every method, in the order of the documentation.
        pub static REGISTRY: &[&Entry] = &[$($(&$module::ENTRY),*),*];

        /// The same, kind by kind.
        pub static KINDS: &[Kind] = &[$(Kind {
            name: $kind,
            about: $about,
            methods: &[$(&$module::ENTRY),*],
        }),*];

        pastey::paste! {
            /// The kinds with links to their methods, for the page of the module.
            macro_rules! kinds {
                () => {
                    concat!(
                        "| kind | methods |\n|---|---|\n",
                        $("| **", $kind, "**: ", $about, " | ", $(
                            "[`", stringify!([<$module:camel>]), "`](estimator::",
                            stringify!([<$module:camel>]), ") ",
                        )* "|\n",)*
                    )
                };
            }
        }
    };
}

methods! {
    "straight-through": "hard samples, and the slope of the cost there; biased, drop-in"
        [straight_through, pwgf, second_order_st, reinmax, fini]
    "relaxation": "a continuous variable behind the sample, at a temperature; biased, drop-in"
        [
            gumbel_softmax,
            straight_through_gumbel,
            gumbel_rao,
            gapped_straight_through,
            exponential_arrival,
            truncated_gumbel,
            relaxed_top_k,
        ]
    "corrected straight-through": "the same slopes, corrected by differences; unbiased"
        [debiased_st]
    "score function": "values of the cost only; unbiased"
        [reinforce, arm, disarm, arms, carms, unordered_set]
    "control variate": "score function minus something of known mean; unbiased"
        [muprop, double_cv, rodeo, rebar, relax]
    "bound": "score function of a multi-sample bound; unbiased"
        [vimco, local_disarm]
    "exhaustive": "differences of the cost at neighbouring values, or all values; for few variables"
        [finite_difference, enumerate]
}

/// The entry of an id, or of another name of the method.
///
/// # Errors
///
/// If there is none; the error names the ids that look like it.
pub fn find(id: &str) -> Result<&'static Entry> {
    let names = |entry: &'static Entry| entry.aliases.iter().copied().chain([entry.id]);
    let mut entries = REGISTRY.iter().copied();
    let found = entries.find(|entry| names(entry).any(|name| name == id));
    found.ok_or_else(|| Error::UnknownEstimator {
        id: id.to_owned(),
        near: near(id, REGISTRY.iter().map(|entry| entry.id)),
    })
}

impl Spec {
    /// Makes the estimator.
    ///
    /// # Errors
    ///
    /// If the id or an option is unknown (the error names those that look like it), or a value is
    /// of the wrong type or out of its range.
    pub fn build(&self) -> Result<Box<dyn Estimator>> {
        find(self.id())?.build_spec(self)
    }
}

/// Any method by its specification, `id` or `id:key=value,key=value`.
///
/// # Errors
///
/// If the specification is malformed, and as [`Spec::build`].
///
/// ```
/// use straightflow::prelude::*;
///
/// let method = estimator("disarm:samples=4")?;
/// assert_eq!(method.draws(), 4);
/// # Ok::<(), Error>(())
/// ```
pub fn estimator(spec: &str) -> Result<Box<dyn Estimator>> {
    spec.parse::<Spec>()?.build()
}

/// The methods whose samples can be drawn on the tape, for variables of a family.
pub(crate) fn drop_ins(family: FamilyKind) -> Vec<&'static str> {
    let fits = |entry: &&&Entry| entry.layers == Layers::Tape && entry.families.contains(&family);
    REGISTRY.iter().filter(fits).map(|entry| entry.id).collect()
}
