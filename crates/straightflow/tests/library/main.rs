//! The library from outside: each module tests one promise.

mod custom_op;
mod densities;
mod errors;
mod estimates;
mod extremes;
mod network;
mod oracle;
mod samplers;
mod specs;
mod support;
mod threads;
