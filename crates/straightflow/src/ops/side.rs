//! Backward passes on the side, and a tripwire for what they must not reach.
//!
//! burn's backward pass consumes the graph that it walks through. A pass of an estimator's own that
//! reaches the network behind a captured distribution leaves nothing for the user's pass, which
//! panics. The tripwire sees the first pass arrive.

use std::cell::Cell;
use std::sync::Arc;

use burn::tensor::Tensor;

use super::{Rule, custom_grad};
use crate::error::{Error, Result};

/// What this thread is doing. burn runs a backward pass on the thread that asks for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Nothing on the side.
    No,
    /// A computation on the side that has not reached a tripwire.
    Apart,
    /// One that has.
    Reached,
}

thread_local! {
    static SIDE: Cell<Side> = const { Cell::new(Side::No) };
}

/// Puts the former state back, also after a panic.
struct Former(Side);

impl Drop for Former {
    fn drop(&mut self) {
        SIDE.set(self.0);
    }
}

/// Runs a computation with a backward pass of its own. Distributions that it makes itself are part
/// of it; those that were there before must not be reached.
///
/// # Errors
///
/// Those of the computation, or [`CapturedTape`](Error::CapturedTape).
pub(crate) fn on_the_side<T>(compute: impl FnOnce() -> Result<T>) -> Result<T> {
    let _former = Former(SIDE.replace(Side::Apart));
    let result = compute()?;
    match SIDE.get() {
        Side::Reached => Err(Error::CapturedTape),
        Side::Apart | Side::No => Ok(result),
    }
}

/// The same tensor, behind a tripwire if an operation of the tape made it. A leaf has nothing
/// behind it that could be consumed.
pub(crate) fn guarded(natural: Tensor<3>) -> Tensor<3> {
    let made = natural.is_tracked() && !natural.is_require_grad();
    if !made || SIDE.get() != Side::No {
        return natural;
    }
    custom_grad(natural.clone(), natural.inner(), Arc::new(Tripwire))
}

/// An identity that a pass on the side must not reach.
#[derive(Debug)]
struct Tripwire;

impl Rule<3, 3> for Tripwire {
    fn backward(&self, _natural: Tensor<3>, _same: Tensor<3>, grad: Tensor<3>) -> Tensor<3> {
        if SIDE.get() == Side::Apart {
            SIDE.set(Side::Reached);
        }
        grad
    }
}
