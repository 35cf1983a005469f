//! An autoencoder of MNIST whose code is eight small integers, by finite scalar quantisation.
//!
//! An image becomes eight groups of three numbers, and `Fsq` rounds each number to five levels. So
//! a group is one of 125 codes, and an image is 8 indices below 125: 56 bits instead of 784. There
//! is no codebook to learn and no loss for it. At the end, images are rebuilt from the indices
//! alone.
//!
//! The start matters. With biases of zero, the first thing that the pixels ask for is to be darker,
//! all of them for all images. That drives the encoder to the flat ends of `tanh`, and it stays
//! there. So the output begins at the mean of the pixels; the program shows both.
//!
//! ```text
//! cargo run --release -p straightflow --example fsq_autoencoder
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::Key;
use straightflow::fused::bernoulli_log_prob;
use straightflow::nn::{Fsq, FsqConfig, Quantized};
use straightflow_data::mnist::{self, Binarisation};
use straightflow_data::{Batches, Dataset};

const PIXELS: usize = mnist::SIDE * mnist::SIDE;
const HIDDEN: usize = 128;
const GROUPS: usize = 8;
const LEVELS: [usize; 3] = [5, 5, 5];
const BATCH: usize = 64;
const STEPS: usize = 1_500;
const LEARNING_RATE: f64 = 2e-3;
/// Images of the test set to judge by.
const TEST: usize = 2_000;

#[derive(Module, Debug)]
struct Autoencoder {
    encoder: [Linear; 2],
    quantiser: Fsq,
    decoder: [Linear; 2],
}

impl Autoencoder {
    fn new(key: Key, device: &Device) -> straightflow::Result<Self> {
        let [a, b, c, d] = key.split();
        let width = GROUPS * LEVELS.len();
        Ok(Self {
            encoder: [
                linear(a, [PIXELS, HIDDEN], device),
                linear(b, [HIDDEN, width], device),
            ],
            quantiser: FsqConfig::new(LEVELS.to_vec()).init()?,
            decoder: [
                linear(c, [width, HIDDEN], device),
                linear(d, [HIDDEN, PIXELS], device),
            ],
        })
    }

    /// Images `[batch, pixels]` to codes `[batch, groups, 3]` and indices `[batch, groups, 1]`.
    fn encode(&self, images: Tensor<2>) -> Quantized<3> {
        let [batch, _] = images.dims();
        let [first, second] = &self.encoder;
        let x = second.forward(relu(first.forward(images)));
        self.quantiser
            .forward(x.reshape([batch, GROUPS, LEVELS.len()]))
    }

    /// Codes `[batch, groups, 3]` to logits of pixels `[batch, pixels]`.
    fn decode(&self, codes: Tensor<3>) -> Tensor<2> {
        let [first, second] = &self.decoder;
        second.forward(relu(first.forward(codes.flatten(1, 2))))
    }
}

/// Uniform weights with variance 2 / (inputs + outputs), and biases of zero.
fn linear(key: Key, [inputs, outputs]: [usize; 2], device: &Device) -> Linear {
    let limit = (6.0 / (inputs + outputs) as f64).sqrt();
    let uniform = key.uniform::<2>([inputs, outputs], device, DType::F32);
    Linear {
        weight: Param::from_tensor(Tensor::from_inner((uniform * 2.0 - 1.0) * limit)),
        bias: Some(Param::from_tensor(Tensor::zeros([outputs], device))),
    }
}

fn images(data: &Dataset, indices: &[usize]) -> Tensor<2> {
    let mut pixels = vec![0.0; indices.len() * PIXELS];
    data.batch(indices, &mut pixels);
    let pixels = TensorData::new(pixels, [indices.len(), PIXELS]);
    Tensor::from_data(pixels, &Device::flex())
}

/// The mean cost of an image in nats: minus the log-likelihood of its pixels.
fn cost(logits: Tensor<2>, images: Tensor<2>) -> Tensor<1> {
    bernoulli_log_prob(logits, images).mean().neg()
}

/// The logits of the mean of each pixel, `[1, pixels]`.
fn mean_logits(images: Tensor<2>) -> Tensor<2> {
    let mean = images.mean_dim(0).clamp(1e-3, 1.0 - 1e-3);
    (mean.clone() / (mean.neg() + 1.0)).log()
}

/// Trains on the batches; `start` are the logits of the pixels to begin with.
fn train(key: Key, data: &Dataset, start: Tensor<2>) -> straightflow::Result<Autoencoder> {
    let [weights, order] = key.split();
    let batches = Batches::new(order.seed(), 0..mnist::TRAIN, BATCH);
    let mut model = Autoencoder::new(weights, &Device::flex().autodiff())?;
    let start = Tensor::from_inner(start.reshape([PIXELS]));
    model.decoder[1].bias = Some(Param::from_tensor(start));
    let mut optimiser = AdamConfig::new().init();
    let mut order = batches.epoch(0);
    for step in 0..STEPS {
        let (epoch, batch) = (step / batches.per_epoch(), step % batches.per_epoch());
        if batch == 0 {
            order = batches.epoch(epoch as u64);
        }
        let x = images(data, order.batch(batch));
        let z = model.encode(x.clone());
        let loss = cost(model.decode(z.codes), x);
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(LEARNING_RATE, model, grads);
    }
    Ok(model.valid())
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let data = mnist::load(Binarisation::Threshold)?;
    let test: Vec<usize> = (mnist::TRAIN..mnist::TRAIN + TEST).collect();
    let x = images(&data, &test);
    let judge = |model: &Autoencoder| {
        let z = model.encode(x.clone());
        let perplexity = z.perplexity();
        let direct: f32 = cost(model.decode(z.codes), x.clone()).into_scalar();
        // What would be stored are the indices; the codes come back from them.
        let stored = model.quantiser.codes(z.indices);
        let rebuilt: f32 = cost(model.decode(stored), x.clone()).into_scalar();
        assert_eq!(rebuilt, direct, "the indices are not the whole code");
        (direct, perplexity)
    };

    // Without any code: the best fixed probability of each pixel.
    let constant: f32 = cost(mean_logits(x.clone()), x.clone()).into_scalar();
    let first: Vec<usize> = (0..TEST).collect();
    let means = mean_logits(images(&data, &first));
    let zero = train(Key::new(1), &data, means.zeros_like())?;
    let model = train(Key::new(1), &data, means)?;
    let size = model.quantiser.size();
    println!("a test image costs {constant:.1} nats without a code");
    let (cost, perplexity) = judge(&zero);
    println!("start at zero:        {cost:5.1} nats, perplexity {perplexity:5.1} of {size}");
    let (cost, perplexity) = judge(&model);
    println!("start at the means:   {cost:5.1} nats, perplexity {perplexity:5.1} of {size}");
    assert!(cost < constant / 2.0, "the code says little");
    assert!(perplexity > 0.75 * size as f64, "few codes are in use");
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
