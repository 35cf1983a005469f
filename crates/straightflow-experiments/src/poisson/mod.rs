//! The paper's Poisson game: a generator `Pois(rate)` against a discriminator, for any estimator.
//!
//! [`Settings`] are what a user chooses, [`Config`] is what is recorded, [`PoissonGame`] plays the games in
//! [`Cell`]s, and [`Summary`] is the table. The loop of one game is in `game.rs`.

mod arguments;
mod cells;
mod config;
mod discriminator;
mod error;
mod experiment;
mod game;
mod pictures;
mod plots;
mod show;
mod summary;

pub use PoissonGame as This;
pub use cells::{Cell, PoissonGame};
pub use config::{Config, DEFAULT_ROWS, Parametrisation, Row, Settings, paper_gain};
pub use discriminator::GameObjective;
pub use error::GameError;
pub use game::{FLOOR, Game};
pub use pictures::{Curve, FlowPicture, distances, flow_step, kernel_weights, learning_curves};
pub use summary::{Summary, SummaryRow};
