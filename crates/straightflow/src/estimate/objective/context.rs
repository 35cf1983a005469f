//! What a cost needs besides samples and distribution.

use burn::tensor::{Bool, Int, Tensor};

use crate::distribution::Distribution;

/// What a cost needs besides samples and distribution, and what may be on the tape: features of the
/// encoder for a skip connection, say.
///
/// Some methods differentiate the cost on the side, with a backward pass of their own. A tensor
/// that the cost captures would be consumed by that pass, together with the network behind it, and
/// burn would panic in the user's `backward()`. As context it is an argument, and the pass on the
/// side gets a constant in its place. The weights of a decoder are leaves; they may be captured.
///
/// A captured distribution is found and refused
/// ([`CapturedTape`](crate::Error::CapturedTape)). Any other captured tensor that a network made
/// cannot be: with `muprop`, `double-cv`, `rebar` and `relax:control=sum` burn panics, in the
/// user's `backward()`.
///
/// Tensors of any rank, distributions, arrays, tuples up to six, `Vec` and `Option` of them and
/// `()` are contexts. See [`estimate_with`](crate::estimator::EstimatorExt::estimate_with).
pub trait Context: Clone {
    /// The same numbers, on no tape.
    #[must_use]
    fn as_constant(&self) -> Self;
}

impl<const R: usize> Context for Tensor<R> {
    fn as_constant(&self) -> Self {
        self.clone().inner()
    }
}

impl<const R: usize> Context for Tensor<R, Int> {
    fn as_constant(&self) -> Self {
        self.clone()
    }
}

impl<const R: usize> Context for Tensor<R, Bool> {
    fn as_constant(&self) -> Self {
        self.clone()
    }
}

impl<D: Distribution> Context for D {
    fn as_constant(&self) -> Self {
        self.constant()
    }
}

impl<C: Context> Context for Option<C> {
    fn as_constant(&self) -> Self {
        self.as_ref().map(C::as_constant)
    }
}

impl<C: Context> Context for Vec<C> {
    fn as_constant(&self) -> Self {
        self.iter().map(C::as_constant).collect()
    }
}

impl<C: Context, const N: usize> Context for [C; N] {
    fn as_constant(&self) -> Self {
        self.each_ref().map(C::as_constant)
    }
}

impl Context for () {
    fn as_constant(&self) -> Self {}
}

macro_rules! tuples {
    ($(($($part:ident $index:tt),*))*) => {$(
        impl<$($part: Context),*> Context for ($($part,)*) {
            fn as_constant(&self) -> Self {
                ($(self.$index.as_constant(),)*)
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
