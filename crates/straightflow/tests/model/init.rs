//! Weights of burn layers from a key.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor};
use straightflow::prelude::*;

use crate::numbers;
use crate::support::values;

#[derive(Module, Debug)]
struct Model {
    linear: Linear,
    conv: Conv2d,
    norm: BatchNorm,
    embedding: Embedding,
    code: Sampler,
    last: Linear,
}

fn model(key: Key) -> Model {
    let device = Device::flex().autodiff();
    let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 3], &device)).expect("valid");
    let code = SamplerConfig::new("relax");
    key.init(Model {
        linear: LinearConfig::new(16, 25).init(&device),
        conv: Conv2dConfig::new([4, 5], [3, 3]).init(&device),
        norm: BatchNormConfig::new(5).init(&device),
        embedding: EmbeddingConfig::new(40, 25).init(&device),
        code: code.init_for(Key::new(9), &q).expect("known"),
        last: LinearConfig::new(25, 1).init(&device),
    })
}

fn weights(model: &Model) -> Vec<Vec<f64>> {
    let bias = |layer: &Linear| values(layer.bias.as_ref().expect("it has one").val());
    vec![
        values(model.linear.weight.val()),
        bias(&model.linear),
        values(model.conv.weight.val()),
        values(model.conv.bias.as_ref().expect("it has one").val()),
        values(model.embedding.weight.val()),
        values(model.last.weight.val()),
        bias(&model.last),
    ]
}

#[test]
fn the_same_key_gives_the_same_weights() {
    let (one, again) = (model(Key::new(1)), model(Key::new(1)));
    assert_eq!(weights(&one), weights(&again));
    let other = weights(&model(Key::new(2)));
    for (mine, other) in weights(&one).iter().zip(&other) {
        assert!(mine.iter().zip(other).all(|(a, b)| a != b));
    }
}

/// The range is that of burn's own initialiser, which is seen on the same layers.
#[test]
fn weights_have_the_range_of_burns_layers() {
    let model = model(Key::new(3));
    let drawn = weights(&model);
    let bounds = [16.0, 16.0, 36.0, 36.0, f64::NAN, 25.0, 25.0];
    for (values, inputs) in drawn.iter().zip(bounds) {
        let largest = values.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        if inputs.is_nan() {
            // 1000 standard normal numbers: mean square 1 within six standard errors.
            let square = values.iter().map(|x| x * x).sum::<f64>() / values.len() as f64;
            assert!(
                (square - 1.0).abs() < 6.0 * (2.0f64 / 1000.0).sqrt(),
                "{square}"
            );
            continue;
        }
        let bound = 1.0 / f64::sqrt(inputs);
        assert!(largest < bound, "{largest} {bound}");
        assert!(
            values.len() < 100 || largest > 0.9 * bound,
            "{largest} {bound}"
        );
    }
    let burn = LinearConfig::new(16, 25).init(&Device::flex());
    let largest = values(burn.weight.val())
        .iter()
        .fold(0.0, |m: f64, x| m.max(x.abs()));
    assert!(
        largest > 0.2 && largest < 0.25,
        "burn's own law changed: {largest}"
    );
}

/// Constants stay, and so does what a sampler learns, whose weights have a key of their own.
#[test]
fn constants_and_samplers_stay() {
    let (one, other) = (model(Key::new(1)), model(Key::new(2)));
    assert_eq!(values(one.norm.gamma.val()), [1.0; 5]);
    assert_eq!(values(one.norm.beta.val()), [0.0; 5]);
    let learned = numbers(&one.code);
    assert!(learned.iter().any(|x| *x != 0.0));
    assert_eq!(learned, numbers(&other.code));
}

/// The weights are leaves that an optimiser trains.
#[test]
fn weights_want_gradients() {
    let model = model(Key::new(1));
    let x = Tensor::<2>::ones([2, 16], &Device::flex().autodiff());
    let grads = model.last.forward(model.linear.forward(x)).sum().backward();
    assert!(model.linear.weight.val().grad(&grads).is_some());
    assert!(
        model
            .last
            .bias
            .as_ref()
            .expect("it has one")
            .val()
            .grad(&grads)
            .is_some()
    );
}
