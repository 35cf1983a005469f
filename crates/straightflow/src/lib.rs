//! Gradients through discrete random variables, on the [burn](https://burn.dev) tensor framework.
//!
//! For a discrete variable `z ~ q_θ`, the chain rule stops at the sample. This crate has the known ways
//! around that, behind one interface: [`estimator`] lists them, [`distribution`] has the variables,
//! [`exact`] computes the exact gradient by enumeration, and [`Key`] is the source of all randomness.
//!
//! # Change one line of a model
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use straightflow::prelude::*;
//!
//! # let device = Device::flex().autodiff();
//! # let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
//! let q = Bernoulli::from_logits(logits.clone())?;               // of any rank, on the tape
//! let z = estimator("reinmax")?.draw(Key::new(1), &q)?;          // hard 0/1 values, on the tape
//! let loss = (z - 0.3).square().mean();
//! let grads = loss.backward();
//! # assert!(logits.grad(&grads).is_some());
//! # Ok::<(), Error>(())
//! ```
//!
//! # Or give the cost to any estimator
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use straightflow::prelude::*;
//!
//! # let device = Device::flex().autodiff();
//! # let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
//! let q = Bernoulli::from_logits(logits.clone())?;
//! let estimate = estimator("disarm:samples=4")?.estimate(Key::new(1), &q, |z| {
//!     (z - 0.3).square().sum_dim(2)                              // [n, batch, d] -> [n, batch, 1]
//! })?;
//! let grads = estimate.surrogate.backward();                     // its value is the mean cost
//! # assert!(logits.grad(&grads).is_some());
//! # Ok::<(), Error>(())
//! ```
//!
//! # Or make it part of a model
//!
//! [`Sampler`](estimator::Sampler) holds a method and its learned state as a field of a burn module, and
//! [`KeyStream`] supplies the keys for its draws.

// The macro `method!` names this crate by its name, here and elsewhere.
extern crate self as straightflow;

#[doc(hidden)]
pub use {pastey, serde, serde_json};

mod antithetic;
pub mod compare;
pub mod distribution;
pub mod error;
#[macro_use]
mod estimate;
pub mod exact;
pub mod flow;
mod gradient;
pub mod kernel;
mod key;
#[macro_use]
mod method;
pub mod nn;
mod ops;
pub mod projection;
mod relaxation;
mod relaxed_control;
mod text;

/// Gradient estimators: every method, and what methods have in common.
///
/// On the command line and in files a method is named by a [`Spec`](estimator::Spec) such as
/// `straight-through:samples=4`, and in code by its type. [`REGISTRY`](estimator::REGISTRY) lists
/// all methods, and [`KINDS`](estimator::KINDS) groups them by kind:
///
#[doc = kinds!()]
///
/// In their formulas `z_i` is draw `i` of `n`, `f` the cost, `p` a probability, `m` a mean, `φ` a
/// logit, `λ` a rate, `τ` a temperature, `σ` the sigmoid, and `1[..]` is 1 where the condition holds.
/// A lower index follows `_`, a power follows `^`.
pub mod estimator {
    pub use crate::estimate::*;
    pub use crate::method::*;
}

pub use estimate::objective;

pub use error::{Error, Result};
pub use key::{Key, KeyStream};
pub use ops::{Rule, custom_grad, fused};

/// What most programs need: keys, distributions, estimators, exact gradients, and the error type.
pub mod prelude {
    pub use crate::compare::{Budget, compare};
    pub use crate::distribution::Distribution;
    pub use crate::distribution::all::*;
    pub use crate::estimator::all::*;
    pub use crate::estimator::{
        Described, Estimate, Estimator, EstimatorConfig, EstimatorExt, Pathwise, Sampler,
        SamplerConfig, Spec, State, StateShape, Temperature, estimator,
    };
    pub use crate::exact::Exact;
    pub use crate::objective::{Context, IntoCost, Objective, ObjectiveKind, Single};
    pub use crate::{Error, Key, KeyStream, Result};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct LibraryReadme;
