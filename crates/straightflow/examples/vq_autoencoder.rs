//! An autoencoder of MNIST whose code is eight entries of a learned codebook.
//!
//! An image becomes eight vectors of four numbers, and `VectorQuantizer` replaces each by the
//! nearest of 64 entries: 48 bits for an image. The codebook begins with vectors of the first
//! batch, because an entry that is never the nearest never learns. Two gradients of the encoder are
//! compared: straight-through, and the rotation trick.
//!
//! ```text
//! cargo run --release -p straightflow --example vq_autoencoder
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::Key;
use straightflow::fused::bernoulli_log_prob;
use straightflow::nn::{CodebookGradient, VectorQuantizer, VectorQuantizerConfig};
use straightflow_data::mnist::{self, Binarisation};
use straightflow_data::{Batches, Dataset};

const PIXELS: usize = mnist::SIDE * mnist::SIDE;
const HIDDEN: usize = 128;
const VECTORS: usize = 8;
const DIM: usize = 4;
const CODES: usize = 64;
const BATCH: usize = 64;
const STEPS: usize = 1_500;
const LEARNING_RATE: f64 = 2e-3;
/// What the quantiser's loss, a mean over 32 numbers of an image, counts beside a sum over pixels.
/// With less, the codebook does not follow the encoder, and few of its entries are in use.
const WEIGHT: f64 = 100.0;
/// Images of the test set to judge by.
const TEST: usize = 2_000;

#[derive(Module, Debug)]
struct Autoencoder {
    encoder: [Linear; 2],
    quantiser: VectorQuantizer,
    decoder: [Linear; 2],
}

impl Autoencoder {
    /// Weights from a key, a codebook from the images, and the output at the mean of the pixels.
    fn new(key: Key, gradient: CodebookGradient, images: Tensor<2>) -> straightflow::Result<Self> {
        let device = &Device::flex().autodiff();
        let [a, b, c, d, codes, choice] = key.split();
        let width = VECTORS * DIM;
        let config = VectorQuantizerConfig::new(CODES, DIM).with_gradient(gradient);
        let mut model = Self {
            encoder: [
                linear(a, [PIXELS, HIDDEN], device),
                linear(b, [HIDDEN, width], device),
            ],
            quantiser: config.init(codes, device)?,
            decoder: [
                linear(c, [width, HIDDEN], device),
                linear(d, [HIDDEN, PIXELS], device),
            ],
        };
        let start = Tensor::from_inner(mean_logits(images.clone()).reshape([PIXELS]));
        model.decoder[1].bias = Some(Param::from_tensor(start));
        let vectors = model.valid().encode(images);
        model.quantiser = model.quantiser.with_codes_from(choice, vectors)?;
        Ok(model)
    }

    /// Images `[batch, pixels]` to vectors `[batch, vectors, dim]`.
    fn encode(&self, images: Tensor<2>) -> Tensor<3> {
        let [batch, _] = images.dims();
        let [first, second] = &self.encoder;
        let x = second.forward(relu(first.forward(images)));
        x.reshape([batch, VECTORS, DIM])
    }

    /// Codes `[batch, vectors, dim]` to logits of pixels `[batch, pixels]`.
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

fn train(
    key: Key,
    gradient: CodebookGradient,
    data: &Dataset,
) -> straightflow::Result<Autoencoder> {
    let [weights, order] = key.split();
    let batches = Batches::new(order.seed(), 0..mnist::TRAIN, BATCH);
    let first: Vec<usize> = (0..TEST).collect();
    let mut model = Autoencoder::new(weights, gradient, images(data, &first))?;
    let mut optimiser = AdamConfig::new().init();
    let mut order = batches.epoch(0);
    for step in 0..STEPS {
        let (epoch, batch) = (step / batches.per_epoch(), step % batches.per_epoch());
        if batch == 0 {
            order = batches.epoch(epoch as u64);
        }
        let x = images(data, order.batch(batch));
        let z = model.quantiser.forward(model.encode(x.clone()));
        let loss = cost(model.decode(z.codes), x) + z.loss * WEIGHT;
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(LEARNING_RATE, model, grads);
    }
    Ok(model.valid())
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let data = mnist::load(Binarisation::Threshold)?;
    let test: Vec<usize> = (mnist::TRAIN..mnist::TRAIN + TEST).collect();
    let x = images(&data, &test);
    // Without any code: the best fixed probability of each pixel.
    let constant: f32 = cost(mean_logits(x.clone()), x.clone()).into_scalar();
    println!("a test image costs {constant:.1} nats without a code");
    for gradient in [
        CodebookGradient::StraightThrough,
        CodebookGradient::Rotation,
    ] {
        let model = train(Key::new(1), gradient, &data)?;
        let z = model.quantiser.forward(model.encode(x.clone()));
        let perplexity = z.perplexity();
        let trained: f32 = cost(model.decode(z.codes), x.clone()).into_scalar();
        // What would be stored are the indices; the codes come back from them.
        let stored = model.quantiser.codes(z.indices);
        let rebuilt: f32 = cost(model.decode(stored), x.clone()).into_scalar();
        let name = format!("{gradient:?}:");
        println!("{name:16} {trained:6.1} nats, perplexity {perplexity:4.1} of {CODES}");
        assert_eq!(rebuilt, trained, "the indices are not the whole code");
        assert!(trained < constant / 2.0, "the code says little");
        assert!(perplexity > 0.75 * CODES as f64, "few codes are in use");
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
