//! The paper's Poisson game: a generator `Pois(rate)` against a discriminator, for any estimator.
//!
//! [`Settings`] are what a user chooses, [`Config`] is what is recorded, [`run`] plays the games in
//! [`Cell`]s, and [`Summary`] is the table. The loop of one game is in `game.rs`.

mod config;
mod discriminator;
mod error;
mod game;
mod pictures;
mod run;
mod summary;

pub use config::{Config, DEFAULT_ROWS, Parametrisation, Row, Settings, paper_gain};
pub use discriminator::GameObjective;
pub use error::GameError;
pub use game::{FLOOR, Game};
pub use pictures::{Curve, FlowPicture, distances, flow_step, kernel_weights, learning_curves};
pub use run::{Cell, Watcher, run};
pub use summary::{Summary, SummaryRow};
