//! Gradients through discrete random variables, on the [burn](https://burn.dev) tensor framework.
//!
//! For a discrete variable $z \sim q_\theta$, sampling cuts the chain rule. This crate offers the
//! ways around, behind one interface: [`estimator`] lists them, [`distribution`] has the variables,
//! [`exact`] computes the truth by enumeration, and [`Key`] is where all randomness comes from.
//!
//! # Change one line of a model
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use straightflow::prelude::*;
//!
//! # fn main() -> Result<(), straightflow::Error> {
//! # let device = Device::flex().autodiff();
//! # let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
//! let q = Bernoulli::from_logits(logits.clone())?;               // [batch, d], on the tape
//! let z = StraightThrough::default().draw(Key::new(1), &q)?;     // hard 0/1 values, on the tape
//! let loss = (z - 0.3).square().mean();
//! let grads = loss.backward();
//! # assert!(logits.grad(&grads).is_some());
//! # Ok(())
//! # }
//! ```
//!
//! # Or hand the cost to any estimator
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use straightflow::prelude::*;
//!
//! # fn main() -> Result<(), straightflow::Error> {
//! # let device = Device::flex().autodiff();
//! # let logits = Tensor::<2>::zeros([3, 2], &device).require_grad();
//! let q = Bernoulli::from_logits(logits.clone())?;
//! let estimator = "straight-through:samples=4".parse::<Spec>()?.build()?;
//! let estimate = estimator.estimate(Key::new(1), &q, |z, _q| {
//!     (z - 0.3).square().sum_dim(2).squeeze_dim(2)               // [n, batch, d] -> [n, batch]
//! })?;
//! let grads = estimate.surrogate.backward();                     // its value is the mean cost
//! # assert!(logits.grad(&grads).is_some());
//! # Ok(())
//! # }
//! ```

pub mod distribution;
pub mod error;
pub mod estimator;
pub mod exact;
pub mod flow;
pub mod kernel;
mod key;
pub mod nn;
pub mod objective;
mod ops;
pub mod projection;

pub use error::{Error, Result};
pub use key::Key;
pub use ops::{Rule, custom_grad, fused};

/// What most programs need: keys, distributions, estimators, and the oracle.
pub mod prelude {
    pub use crate::Key;
    pub use crate::distribution::Distribution;
    pub use crate::distribution::all::*;
    pub use crate::estimator::all::*;
    pub use crate::estimator::{
        Estimate, Estimator, EstimatorConfig, EstimatorExt, Pathwise, PathwiseExt, Spec, State,
        StateShape, Temperature,
    };
    pub use crate::exact::Exact;
    pub use crate::objective::{Objective, Single};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct LibraryReadme;
