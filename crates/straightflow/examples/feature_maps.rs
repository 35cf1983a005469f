//! A convolutional autoencoder whose code are binary feature maps `[batch, channels, height, width]`:
//! variables of rank 4, drawn without a reshape.
//!
//! ```text
//! cargo run --release -p straightflow --example feature_maps
//! ```

use burn::module::Module;
use burn::nn::PaddingConfig2d;
use burn::nn::conv::{Conv2d, Conv2dConfig, ConvTranspose2d, ConvTranspose2dConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const IMAGES: usize = 64;
const SIDE: usize = 8;
const CHANNELS: usize = 8;
const STEPS: usize = 300;

#[derive(Module, Debug)]
struct Autoencoder {
    encoder: Conv2d,
    code: Sampler,
    keys: KeyStream,
    decoder: ConvTranspose2d,
}

impl Autoencoder {
    fn new(key: Key, device: &Device) -> Result<Self> {
        let [layers, code, noise] = key.split();
        let encoder = Conv2dConfig::new([1, CHANNELS], [4, 4]).with_stride([2, 2]);
        let decoder = ConvTranspose2dConfig::new([CHANNELS, 1], [4, 4]).with_stride([2, 2]);
        let maps = Tensor::<4>::zeros([1, CHANNELS, SIDE / 2, SIDE / 2], device);
        let example = Bernoulli::from_logits(maps)?;
        Ok(layers.init(Self {
            encoder: encoder
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(device),
            code: SamplerConfig::new("reinmax").init_for(code, &example)?,
            keys: KeyStream::new(noise),
            decoder: decoder.with_padding([1, 1]).init(device),
        }))
    }

    /// The squared error of images `[batch, 1, height, width]`.
    fn loss(&self, images: Tensor<4>) -> Result<Tensor<1>> {
        let q = Bernoulli::from_logits(self.encoder.forward(images.clone()))?;
        let maps = self.code.draw(self.keys.next(), &q)?; // hard, of the shape of the logits
        Ok((self.decoder.forward(maps) - images).square().mean())
    }
}

/// Images of crossing bars, each bar there or not.
fn images(key: Key, device: &Device) -> Tensor<4> {
    let [rows, columns] = key.split();
    let bars = |key: Key, shape: [usize; 4]| {
        let u = key.uniform::<4>(shape, device, DType::F32);
        u.lower_elem(0.25).float()
    };
    let across = bars(rows, [IMAGES, 1, SIDE, 1]).expand([IMAGES, 1, SIDE, SIDE]);
    let down = bars(columns, [IMAGES, 1, 1, SIDE]).expand([IMAGES, 1, SIDE, SIDE]);
    (across + down).clamp_max(1.0)
}

fn run() -> Result<()> {
    let device = Device::flex().autodiff();
    let [data, model] = Key::new(1).split();
    let images = images(data, &device);
    let mut model = Autoencoder::new(model, &device)?;
    // Without autodiff nothing is recorded, and the code is a plain sample.
    let evaluate = |model: &Autoencoder| -> Result<f32> {
        Ok(model.valid().loss(images.clone())?.into_scalar())
    };
    let before = evaluate(&model)?;
    let mut optimiser = AdamConfig::new().init();
    for _ in 0..STEPS {
        let loss = model.loss(images.clone())?;
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(0.02, model, gradients);
    }
    let after = evaluate(&model)?;
    println!("squared error per pixel: {before:.4} before, {after:.4} after {STEPS} steps");
    assert!(
        after < before / 4.0,
        "the loss fell by less than a factor of 4"
    );
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
