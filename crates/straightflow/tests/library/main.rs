//! The library from outside: each module tests one promise.

mod arm;
mod arms;
mod baselines;
mod custom_op;
mod densities;
mod errors;
mod estimates;
mod extremes;
mod finite_differences;
mod flow;
mod network;
mod oracle;
mod pwgf;
mod reinforce;
mod samplers;
mod scalar;
mod second_order;
mod specs;
mod support;
mod threads;
mod vimco;
