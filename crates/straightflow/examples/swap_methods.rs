//! Methods by name: the same classifier with a categorical bottleneck, trained by each method of the
//! command line.
//!
//! ```text
//! cargo run --release -p straightflow --example swap_methods -- reinmax reinforce:baseline=loo,samples=4
//! ```

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::log_softmax;
use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const FEATURES: usize = 6;
const VARIABLES: usize = 3;
const CATEGORIES: usize = 4;
const STEPS: usize = 250;

#[derive(Module, Debug)]
struct Classifier {
    encoder: Linear,
    code: Sampler,
    keys: KeyStream,
    classes: Linear,
}

impl Classifier {
    fn new(method: &str, key: Key, device: &Device) -> Result<Self> {
        let [layers, code, noise] = key.split();
        let example = Tensor::<3>::zeros([1, VARIABLES, CATEGORIES], device);
        let example = Categorical::from_logits(example)?;
        Ok(layers.init(Self {
            encoder: LinearConfig::new(FEATURES, VARIABLES * CATEGORIES).init(device),
            code: SamplerConfig::new(method).init_for(code, &example)?,
            keys: KeyStream::new(noise),
            classes: LinearConfig::new(VARIABLES * CATEGORIES, 2).init(device),
        }))
    }

    /// Features `[batch, features]` and one-hot targets `[batch, 2]` to the mean cross entropy. Every
    /// method takes this form; those that can also `draw`.
    fn loss(&self, x: Tensor<2>, y: Tensor<2>) -> Result<Tensor<1>> {
        let logits = self
            .encoder
            .forward(x)
            .reshape([-1, VARIABLES as i32, CATEGORIES as i32]);
        let q = Categorical::from_logits(logits)?;
        let estimate = self.code.estimate(self.keys.next(), &q, |z| {
            let code: Tensor<3> = z.flatten(2, 3); // [n, batch, variables * categories]
            let scores = log_softmax(self.classes.forward(code), 2);
            -(scores * y.clone().unsqueeze()).sum_dim(2)
        })?;
        Ok(estimate.surrogate)
    }
}

fn run() -> Result<()> {
    let mut methods: Vec<String> = std::env::args().skip(1).collect();
    if methods.is_empty() {
        let some = [
            "straight-through",
            "reinmax",
            "reinforce:baseline=loo,samples=4",
            "relax",
        ];
        methods = some.map(str::to_owned).to_vec();
    }
    let device = Device::flex().autodiff();
    let x = Key::new(1).uniform::<2>([128, FEATURES], &device, DType::F32) * 2.0 - 1.0;
    // The class is the sign of the product of two features: no linear model finds it.
    let product = x.clone().narrow(1, 0, 1) * x.clone().narrow(1, 1, 1);
    let positive = product.greater_elem(0.0).float();
    let y = Tensor::cat(vec![positive.clone(), -positive + 1.0], 1);
    for method in methods {
        let mut model = Classifier::new(&method, Key::new(2), &device)?;
        let mut optimiser = AdamConfig::new().init();
        for _ in 0..STEPS {
            let loss = model.loss(x.clone(), y.clone())?;
            let gradients = GradientsParams::from_grads(loss.backward(), &model);
            model = optimiser.step(0.03, model, gradients);
        }
        let loss: f32 = model.valid().loss(x.clone(), y.clone())?.into_scalar();
        println!("{method:<34} cross entropy {loss:.3} (chance 0.693)");
        assert!(loss < 0.65, "{method} did not learn");
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
