//! The grid behind the paper's Table 2: architectures, estimators and seeds, each an autoencoder of its own.

mod arguments;
mod config;
mod experiment;
mod opening;
mod plots;
mod recorded;
mod show;
mod summary;

pub use config::{TableCell, TableConfig, default_estimators};
pub use experiment::{Table2, Table2 as This};
pub use recorded::{Recorded, recorded};
pub use summary::{TableRow, TableSummary};
