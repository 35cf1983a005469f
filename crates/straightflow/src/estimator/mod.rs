//! Gradient estimators: one file each, one list of all.
//!
//! An estimator is addressed by a [`Spec`] such as `straight-through:samples=4` wherever a person
//! or a file names it, and by its type in code. [`REGISTRY`] is the list from which command line,
//! documentation, tests, benches and reports are made.

#[macro_use]
mod declare;

mod antithetic;
mod chain;
mod control;
mod estimate;
mod network;
mod noise;
mod pathwise;
mod registry;
mod relaxation;
mod spec;
mod state;
mod temperature;

pub use chain::{Pass, Stacked, Stacking, chain_log_prob};
pub use estimate::{Estimate, Estimator, EstimatorExt, Outcome};
pub use network::{ControlNetwork, Network};
pub use noise::{Noise, NoiseLaw, NoiseSource, NoiseSpec};
pub use pathwise::{Pathwise, PathwiseExt, Reduction, pathwise_outcome};
pub use registry::{
    About, Bias, Described, Entry, EstimatorConfig, Layers, Need, OptionFacts, OptionValue, Preset,
    Price, PriceRule, describe_range, display_option,
};
pub use spec::Spec;
pub use state::{
    LayerState, LearnedBaseline, Lesson, MovingAverage, RunningMeans, State, StateShape,
};
pub use temperature::Temperature;

// The estimators. Each is named here, so that rustfmt and editors see its file, and once more in the
// list below, which has the order of the documentation; a test compares the two with the folder.
mod arm;
mod arms;
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
mod muprop;
mod pwgf;
mod rebar;
mod reinforce;
mod reinmax;
mod relax;
mod second_order_st;
mod straight_through;
mod straight_through_gumbel;
mod truncated_gumbel;
mod vimco;

/// Collects the estimators of the modules and their entries.
macro_rules! estimators {
    ($($module:ident),* $(,)?) => {
        $(pub use $module::*;)*

        /// The estimators and their configurations alone.
        pub mod all {
            $(pub use super::$module::*;)*
        }

        /// Every estimator, in the order of the documentation.
        pub static REGISTRY: &[&Entry] = &[$(&$module::ENTRY),*];
    };
}

estimators! {
    straight_through,
    pwgf,
    second_order_st,
    reinmax,
    fini,
    gumbel_softmax,
    straight_through_gumbel,
    gumbel_rao,
    gapped_straight_through,
    exponential_arrival,
    truncated_gumbel,
    debiased_st,
    reinforce,
    arm,
    disarm,
    arms,
    muprop,
    double_cv,
    rebar,
    relax,
    vimco,
    finite_difference,
    enumerate,
}

/// The entry of an id.
///
/// # Errors
///
/// If there is none; the error names the ids that look like it.
pub fn find(id: &str) -> crate::Result<&'static Entry> {
    REGISTRY
        .iter()
        .copied()
        .find(|entry| entry.id == id)
        .ok_or_else(|| crate::Error::UnknownEstimator {
            id: id.to_owned(),
            near: spec::near(id, REGISTRY.iter().map(|entry| entry.id)),
        })
}
