//! Estimators that are wrong on purpose. The suite has to reject each of them and to pass its
//! correct twin, so that a rejection is not an artefact of how the mutant is written.

mod arms;
mod carms;
mod contract;
mod debiased_st;
mod entry;
mod layers;
mod local_disarm;
mod paper_mmd;
mod rebar;
mod reinforce;
mod relax;
mod relaxed_top_k;
mod rodeo;
mod rounded;
mod straight_through;
mod subset;
mod unordered_set;

use crate::subject::Subject;

/// A wrong estimator and the right one that it comes from.
#[derive(Debug)]
pub struct Mutant {
    /// The name in the documentation.
    pub name: &'static str,
    /// What is wrong, in one clause.
    pub wrong: &'static str,
    /// The first check of [`crate::check::CHECKS`] that rejects it.
    pub rejected_by: &'static str,
    /// The wrong estimator.
    pub subject: Subject,
    /// The same code without the mistake.
    pub twin: Subject,
}

/// All mutants, in the order of the documentation.
pub fn mutants() -> Vec<Mutant> {
    [
        straight_through::mutants(),
        reinforce::mutants(),
        paper_mmd::mutants(),
        arms::mutants(),
        carms::mutants(),
        unordered_set::mutants(),
        rebar::mutants(),
        relax::mutants(),
        rodeo::mutants(),
        local_disarm::mutants(),
        debiased_st::mutants(),
        subset::mutants(),
        relaxed_top_k::mutants(),
        rounded::mutants(),
        layers::mutants(),
        contract::mutants(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
