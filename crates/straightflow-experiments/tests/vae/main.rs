//! The autoencoder against scalar code, enumeration and the committed records.

mod checkpoints;
mod cost;
mod direct;
mod ops;
mod protocols;
mod records;
mod scalar;
mod training;
