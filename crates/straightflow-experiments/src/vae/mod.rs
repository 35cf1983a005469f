//! Variational autoencoders with discrete latent variables, for any estimator.
//!
//! [`Settings`] are what a user chooses, [`Config`] is what is recorded, [`run`] trains and evaluates,
//! and [`Summary`] is what comes of it. The cost is in `elbo.rs`, one step of training in `trainer.rs`.

mod checkpoint;
mod config;
mod elbo;
mod error;
mod evaluate;
mod images;
mod model;
mod moments;
mod protocol;
mod run;
mod summary;
mod table;
mod trainer;

pub use checkpoint::epochs_begun;
pub use config::{Architecture, Config, Direct, Latent, Settings};
pub use elbo::Elbo;
pub use error::VaeError;
pub use evaluate::Pictures;
pub use model::{Layout, Network, Vae};
pub use protocol::{Centring, Prior, Protocol, Source};
pub use run::{Finished, Watcher, run};
pub use summary::{Epoch, Row, Summary, TRAIN_SAMPLE, label};
pub use table::{TableCell, TableConfig, TableRow, TableSummary, default_estimators};
pub use trainer::Trainer;
