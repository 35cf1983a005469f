//! An autoencoder with a binary bottleneck: an ordinary burn model in which one line samples.
//!
//! ```text
//! cargo run --release -p straightflow --example bernoulli_drop_in
//! ```

use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const BITS: usize = 8;
const PIXELS: usize = 16;
const IMAGES: usize = 64;
const STEPS: u64 = 400;
const LEARNING_RATE: f64 = 0.02;

#[derive(Module, Debug)]
struct Autoencoder {
    encoder: Linear,
    decoder: Linear,
}

impl Autoencoder {
    /// Images `[batch, pixels]` to reconstructions of the same shape.
    fn forward(&self, key: Key, images: Tensor<2>) -> Result<Tensor<2>> {
        let logits = self.encoder.forward(images);
        // The line that changes. Before, the code was soft: `let code = sigmoid(logits);`
        let code = StraightThrough::default().draw(key, &Bernoulli::from_logits(logits)?)?;
        Ok(self.decoder.forward(code))
    }

    fn loss(&self, key: Key, images: Tensor<2>) -> Result<Tensor<1>> {
        let reconstructions = self.forward(key, images.clone())?;
        Ok(MseLoss::new().forward(reconstructions, images, Reduction::Mean))
    }
}

/// Images `[batch, pixels]` that four bits describe: the sign of a random mix of four patterns.
fn images(key: Key, device: &Device) -> Tensor<2> {
    let [sources, patterns] = key.split();
    let sources = sources.uniform::<2>([IMAGES, 4], device, DType::F32);
    let patterns = patterns.uniform::<2>([4, PIXELS], device, DType::F32) - 0.5;
    let signs = (sources - 0.5).sign();
    signs.matmul(patterns).sign() * 0.5 + 0.5
}

fn run() -> Result<()> {
    let device = Device::flex().autodiff();
    let [data, layers, training, evaluation] = Key::new(1).split();
    let images = images(data, &device);
    // Weights from a key: burn's own initialisers share one generator of the whole process.
    let mut model = layers.init(Autoencoder {
        encoder: LinearConfig::new(PIXELS, BITS).init(&device),
        decoder: LinearConfig::new(BITS, PIXELS).init(&device),
    });
    // Without autodiff nothing is recorded, and `draw` is a plain sampler.
    let evaluate = |model: &Autoencoder| -> Result<f32> {
        let loss = model.valid().loss(evaluation, images.clone())?;
        Ok(loss.into_scalar())
    };
    let before = evaluate(&model)?;

    let mut optimiser = AdamConfig::new().init();
    for step in 0..STEPS {
        let loss = model.loss(training.child(step), images.clone())?;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(LEARNING_RATE, model, gradients);
    }

    let after = evaluate(&model)?;
    println!("squared error per pixel: {before:.4} before, {after:.4} after {STEPS} steps");
    assert!(
        after < before / 5.0,
        "the loss fell by less than a factor of 5"
    );
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
