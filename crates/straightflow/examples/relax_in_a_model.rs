//! RELAX as a layer of a model: its control variate is trained by the same backward pass, saved with
//! the model, and goes on after loading as if nothing had happened.
//!
//! ```text
//! cargo run --release -p straightflow --example relax_in_a_model
//! ```

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const PIXELS: usize = 16;
const BITS: usize = 6;

#[derive(Module, Debug)]
struct Autoencoder {
    encoder: Linear,
    code: Sampler,
    keys: KeyStream,
    decoder: Linear,
}

impl Autoencoder {
    fn new(seed: u64, device: &Device) -> Result<Self> {
        let [layers, code, noise] = Key::new(seed).split();
        let example = Bernoulli::from_logits(Tensor::<2>::zeros([1, BITS], device))?;
        let relax = SamplerConfig::new("relax").with_features(PIXELS);
        Ok(layers.init(Self {
            encoder: LinearConfig::new(PIXELS, BITS).init(device),
            code: relax.init_for(code, &example)?,
            keys: KeyStream::new(noise),
            decoder: LinearConfig::new(BITS, PIXELS).init(device),
        }))
    }

    /// The mean squared error of images `[batch, pixels]`, as a surrogate.
    fn loss(&self, images: Tensor<2>) -> Result<Tensor<1>> {
        let q = Bernoulli::from_logits(self.encoder.forward(images.clone()))?;
        let estimate = self
            .code
            .seeing(images.clone()) // the control variate may look at the images
            .estimate(self.keys.next(), &q, |z| {
                let error = self.decoder.forward(z) - images.clone().unsqueeze();
                error.square().sum_dim(2)
            })?;
        Ok(estimate.surrogate)
    }
}

/// Trains for some steps. The layer has an optimiser of its own, with a lower learning rate.
fn train(
    mut model: Autoencoder,
    [optimiser, of_code]: &mut [ModuleOptimizer; 2],
    images: &Tensor<2>,
    steps: usize,
) -> Result<Autoencoder> {
    for _ in 0..steps {
        let mut grads = model.loss(images.clone())?.backward();
        let own = GradientsParams::from_module(&mut grads, &model.code);
        model.code = of_code.step(1e-3, model.code, own);
        let gradients = GradientsParams::from_grads(grads, &model);
        model = optimiser.step(1e-2, model, gradients);
    }
    Ok(model)
}

fn run() -> Result<()> {
    let device = Device::flex().autodiff();
    let images = Key::new(3).uniform::<2>([32, PIXELS], &device, DType::F32);
    let images = images.lower_elem(0.5).float();
    let optimisers = || [AdamConfig::new().init(), AdamConfig::new().init()];
    let mean_cost = |model: &Autoencoder| -> Result<f32> {
        Ok(model.valid().loss(images.clone())?.into_scalar())
    };

    let mut own = optimisers();
    let start = Autoencoder::new(1, &device)?;
    let before = mean_cost(&start)?;
    let model = train(start, &mut own, &images, 300)?;

    // Weights, what RELAX learned, the step and the next key are one record; Adam has its own.
    let file = std::env::temp_dir().join(format!("relax-{}.bpk", std::process::id()));
    model
        .clone()
        .save_file(&file)
        .expect("a file in a temporary directory");
    let states = own.each_ref().map(ModuleOptimizer::to_record);
    let model = train(model, &mut own, &images, 100)?;

    // A model of another seed, to show that nothing of it is left after loading.
    let loaded = Autoencoder::new(2, &device)?.load_file(&file);
    let [first, second] = states;
    let [fresh, of_code] = optimisers();
    let mut own = [fresh.load_record(first), of_code.load_record(second)];
    let resumed = train(loaded, &mut own, &images, 100)?;
    // Not earlier: burn reads a parameter when it is used for the first time.
    std::fs::remove_file(&file).expect("it was written");

    let after = mean_cost(&model)?;
    println!(
        "mean cost: {before:.3} before, {after:.3} after {} steps",
        model.code.step()
    );
    assert!(after < 0.8 * before, "the cost fell by less than a fifth");
    let bytes = |model: Autoencoder| model.into_record().into_bytes().expect("a record");
    assert!(
        bytes(model).to_vec() == bytes(resumed).to_vec(),
        "the same bits"
    );
    println!("saved, loaded and trained on: the same bits");
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
