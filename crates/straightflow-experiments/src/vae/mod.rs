//! Variational autoencoders with discrete latent variables, for any estimator.
//!
//! [`Settings`] are what a user chooses, [`Config`] is what is recorded, [`run`] trains and evaluates,
//! and [`Summary`] is what comes of it. The cost is in `elbo.rs`, one step of training in `trainer.rs`.

mod arguments;
mod checkpoint;
mod config;
mod elbo;
mod error;
mod evaluate;
mod experiment;
mod floor;
mod images;
mod input;
mod model;
mod moments;
mod plots;
mod protocol;
mod run;
mod show;
mod summary;
mod trainer;

pub use arguments::{ARCHITECTURES, ImageArguments, LATENTS, PROTOCOLS};
pub use checkpoint::epochs_begun;
pub use config::{Architecture, Config, Direct, Latent, Settings};
pub use elbo::Elbo;
pub use error::VaeError;
pub use evaluate::Pictures;
pub use experiment::{RECONSTRUCTIONS, VaeRun, VaeRun as This};
pub use floor::Floor;
pub use input::Input;
pub use model::{Layout, Network, Vae};
pub use protocol::{Centring, Prior, Protocol, Source};
pub use run::{Finished, Watcher, run};
pub(crate) use show::{BOUND, DEFAULT_PWGF, EVALUATIONS, GRADIENTS, VARIANCE, default_pwgf, sized};
pub use summary::{Epoch, Row, StepBound, Summary, TRAIN_SAMPLE, label};
pub use trainer::Trainer;
