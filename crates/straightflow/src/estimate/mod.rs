//! The one path from a cost to its gradients: objective, noise, what a method declares and
//! computes, layers, state.

#[macro_use]
mod declare;

pub(crate) mod ext;
pub(crate) mod facts;
pub(crate) mod layers;
pub(crate) mod network;
pub(crate) mod noise;
pub mod objective;
pub(crate) mod pathwise;
pub(crate) mod run;
mod sampler;
pub(crate) mod spec;
pub(crate) mod state;
mod temperature;

pub use ext::{Estimate, EstimatorExt};
pub use facts::{
    About, Bias, Described, Entry, EstimatorConfig, Layers, Need, OptionFacts, OptionValue, Preset,
    Price, PriceRule, describe_range, display_option,
};
pub use layers::{Pass, Stacked, Stacking, layers_log_prob};
pub use network::{ControlNetwork, Network, SteinNetwork};
pub use noise::{Noise, NoiseLaw, NoiseSource, NoiseSpec};
pub use pathwise::{Pathwise, Reduction, pathwise_outcome};
pub use run::{Estimator, Outcome};
pub use sampler::{Sampler, SamplerConfig, Seeing};
pub use spec::Spec;
pub(crate) use spec::near;
pub use state::{
    LayerState, LearnedBaseline, Lesson, MovingAverage, RunningMeans, State, StateShape,
};
pub use temperature::Temperature;
