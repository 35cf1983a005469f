//! Memory stays flat: a test of its own process, because it reads the process's size.

#![cfg(target_os = "linux")]

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

#[derive(Module, Debug)]
struct Model {
    encoder: Linear,
    decoder: Linear,
}

impl Model {
    /// The squared error of a reconstruction through 32 hard bits.
    fn loss(&self, key: Key, x: Tensor<2>) -> Result<Tensor<1>, straightflow::Error> {
        let q = Bernoulli::from_logits(self.encoder.forward(x.clone()))?;
        let z = StraightThrough::default().draw(key, &q)?;
        Ok((self.decoder.forward(z) - x).square().mean())
    }
}

/// Resident memory in megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux kernel");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: f64 = kilobytes.expect("a size").parse().expect("a number");
    kilobytes / 1024.0
}

#[test]
fn training_and_evaluation_keep_memory_flat() {
    let device = Device::flex().autodiff();
    let mut model = Model {
        encoder: LinearConfig::new(64, 32).init(&device),
        decoder: LinearConfig::new(32, 64).init(&device),
    };
    let x = Key::new(1).uniform::<2>([50, 64], &device, DType::F32);
    let mut optimiser = SgdConfig::new().init();
    let mut marks = Vec::new();
    for step in 0..2000u64 {
        let input = Tensor::from_inner(x.clone());
        let loss = model.loss(Key::new(2).child(step), input).expect("finite");
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.01, model, grads);
        if step % 500 == 499 {
            marks.push(resident());
        }
    }
    // Evaluations that no backward pass goes through: finite differences look at the cost, and never
    // differentiate it there.
    for step in 0..1000u64 {
        let input = Tensor::<2>::from_inner(x.clone());
        let q = Bernoulli::from_logits(model.encoder.forward(input.clone())).expect("valid");
        let estimate = FiniteDifference::default().estimate(Key::new(4).child(step), &q, |z| {
            let gap = model.decoder.forward(z) - input.clone().unsqueeze::<3>();
            gap.square().mean_dim(2)
        });
        let loss = estimate.expect("finite").surrogate;
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.01, model, grads);
        if step % 500 == 499 {
            marks.push(resident());
        }
    }
    // Evaluation without a backward pass: a model without autodiff and plain inputs.
    let plain = model.valid();
    for step in 0..2000u64 {
        let loss = plain
            .loss(Key::new(3).child(step), x.clone())
            .expect("finite");
        assert!(!loss.is_autodiff());
        if step % 500 == 499 {
            marks.push(resident());
        }
    }
    let growth = marks[marks.len() - 1] - marks[0];
    assert!(growth < 4.0, "resident megabytes: {marks:?}");
}
