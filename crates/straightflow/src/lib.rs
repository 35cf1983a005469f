//! Gradients through discrete random variables, on the [burn](https://burn.dev) tensor framework.
//!
//! For a discrete variable `z ~ q_θ`, sampling cuts the chain rule. This crate offers the ways
//! around, behind one interface: [`estimator`] lists them, [`distribution`] has the variables,
//! [`exact`] computes the truth by enumeration, and [`Key`] is where all randomness comes from.
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
//! # Or hand the cost to any estimator
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
//! # Or hold it in a model
//!
//! [`Sampler`](estimator::Sampler) is a method and what it learns as a field of a burn module, and
//! [`KeyStream`] the keys that its draws take.

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
/// A method is addressed by a [`Spec`](estimator::Spec) such as `straight-through:samples=4`
/// wherever a person or a file names it, and by its type in code. [`REGISTRY`](estimator::REGISTRY)
/// is the list of all, [`KINDS`](estimator::KINDS) has it kind by kind:
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

/// What most programs need: keys, distributions, estimators, the oracle, and the error.
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
