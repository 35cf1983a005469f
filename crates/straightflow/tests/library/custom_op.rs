//! The custom op and its pitfalls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, activation::sigmoid};
use straightflow::prelude::*;
use straightflow::{Rule, custom_grad};

use crate::support::{leaf, tensor, values};

/// Parameters that are the result of an operation, as an encoder's would be, and their leaf.
fn parameters() -> (Tensor<3>, Tensor<3>) {
    let leaf = leaf::<3>(&[0.3, -0.7], [1, 2, 1], DType::F32);
    (leaf.clone(), leaf * 1.5)
}

fn draws() -> Tensor<4> {
    tensor(&[1.0, 0.0, 1.0, 1.0], [2, 1, 2, 1], DType::F32)
}

#[derive(Debug)]
struct Sum;

impl Rule for Sum {
    fn backward(&self, _parent: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        dz.sum_dim(0).squeeze_dim(0)
    }
}

/// Differentiates something else on a tape of its own, within the backward pass.
#[derive(Debug)]
struct TapeOfItsOwn;

impl Rule for TapeOfItsOwn {
    fn backward(&self, parent: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        let leaf = parent.autodiff().require_grad();
        let weight = dz.sum_dim(0).squeeze_dim::<3>(0);
        let grads = (sigmoid(leaf.clone()) * weight).sum().backward();
        leaf.grad(&grads).expect("gradient")
    }
}

#[test]
fn a_rule_may_use_a_tape_of_its_own() {
    let (start, natural) = parameters();
    let z = custom_grad(natural, draws(), Arc::new(TapeOfItsOwn));
    let grads = (z.clone() * z).sum().backward();
    let nested = values(start.grad(&grads).expect("gradient"));

    // Straight-through by its formula.
    let want = [0.3f64, -0.7].map(|x| {
        let p = 1.0 / (1.0 + (-1.5 * x).exp());
        1.5 * p * (1.0 - p)
    });
    assert!((nested[0] - 4.0 * want[0]).abs() < 1e-6 && (nested[1] - 2.0 * want[1]).abs() < 1e-6);
}

#[derive(Debug)]
struct WrongShape;

impl Rule for WrongShape {
    fn backward(&self, parent: Tensor<3>, _z: Tensor<4>, _dz: Tensor<4>) -> Tensor<3> {
        parent.swap_dims(1, 2)
    }
}

#[test]
fn a_panic_in_a_rule_names_it_and_leaves_burn_usable() {
    let (_, first) = parameters();
    let z = custom_grad(first, draws(), Arc::new(WrongShape));
    let outcome = catch_unwind(AssertUnwindSafe(|| z.sum().backward()));
    let message = outcome.map(|_| ()).expect_err("the wrong shape is noticed");
    let message = message.downcast_ref::<String>().expect("a message");
    assert!(message.contains("WrongShape returned a gradient of the wrong shape"));

    let (start, second) = parameters();
    let z = custom_grad(second, draws(), Arc::new(Sum));
    assert!(start.grad(&z.sum().backward()).is_some());
}

#[test]
fn the_tape_of_the_value_is_cut() {
    let (start, natural) = parameters();
    let other = leaf::<4>(&[1.0; 4], [2, 1, 2, 1], DType::F32);
    let z = custom_grad(natural, other.clone() * 2.0, Arc::new(Sum));
    let grads = z.sum().backward();
    assert!(start.grad(&grads).is_some());
    assert!(other.grad(&grads).is_none());
}

/// Without anything to differentiate there is no tape: evaluation costs nothing.
#[test]
fn constant_parameters_give_constant_samples() {
    let q = Bernoulli::from_logits(Tensor::<2>::zeros([3, 2], &Device::flex())).expect("valid");
    let z = StraightThrough::default()
        .sample(Key::new(1), &q, 4)
        .expect("valid");
    assert!(!z.is_autodiff());
    let device = Device::flex().autodiff();
    let q = Bernoulli::from_logits(Tensor::<2>::zeros([3, 2], &device)).expect("valid");
    let z = StraightThrough::default()
        .sample(Key::new(1), &q, 4)
        .expect("valid");
    assert!(!z.is_tracked());
}

/// With gradient checkpointing on the model's device, inner and outer tapes still fit.
#[test]
fn gradient_checkpointing_is_respected() {
    let device = Device::flex().autodiff().gradient_checkpointing();
    let logits = Tensor::<2>::from_floats([[0.3, -0.7]], &device).require_grad();
    let weight = Tensor::<3>::ones([1, 1, 2], &device).require_grad();
    let q = Bernoulli::from_logits(logits.clone() * 1.0).expect("valid");
    let cost = |z: Tensor<3>| (z * weight.clone()).sum_dim(2);
    let estimate = StraightThrough::default()
        .estimate(Key::new(2), &q, cost)
        .expect("valid");
    let grads = estimate.surrogate.backward();
    assert!(logits.grad(&grads).is_some() && weight.grad(&grads).is_some());
    let gradient = StraightThrough::default()
        .gradient(Key::new(2), &q, cost)
        .expect("valid");
    assert_eq!(gradient.dims(), [1, 2]);
}
