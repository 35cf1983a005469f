//! Gumbel-Rao is a conditional expectation of straight-through Gumbel-softmax given the hard
//! sample, so by the law of total expectation its target is the same, for any number of draws.

pub use super::straight_through_gumbel::expected;
