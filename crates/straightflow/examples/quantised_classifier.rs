//! A classifier of MNIST with weights and activations of few bits.
//!
//! A network is trained in floating point and then gets 4 bits for each weight and each hidden
//! activation, in two ways. Post-training rounding takes the steps with the least squared error and
//! leaves the weights alone. Quantisation-aware training puts `LearnedStep` into the network and
//! trains on, weights and steps together. On this task 4 bits lose next to nothing either way. With
//! 2 bits, rounding alone loses several points, and training gets most of them back.
//!
//! ```text
//! cargo run --release -p straightflow --example quantised_classifier
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use straightflow::nn::{LearnedStep, LearnedStepConfig};
use straightflow::{Error, Key};
use straightflow_data::mnist::{self, Binarisation};
use straightflow_data::{Batches, Dataset};

const PIXELS: usize = mnist::SIDE * mnist::SIDE;
const HIDDEN: usize = 64;
const DIGITS: usize = 10;
const BATCH: usize = 64;
const LEARNING_RATE: f64 = 1e-3;
/// Steps in floating point, and after the quantisers were put in.
const STEPS: [usize; 2] = [2_000, 1_000];

#[derive(Module, Debug)]
struct Classifier {
    layers: [Linear; 2],
    quantisers: Option<Quantisers>,
}

/// One step for each matrix of weights, and one for the hidden activations, which are not negative.
/// The pixels are bits already.
#[derive(Module, Debug)]
struct Quantisers {
    weights: [LearnedStep; 2],
    hidden: LearnedStep,
}

impl Classifier {
    fn new(key: Key, device: &Device) -> Self {
        let [first, second] = key.split();
        Self {
            layers: [
                linear(first, [PIXELS, HIDDEN], device),
                linear(second, [HIDDEN, DIGITS], device),
            ],
            quantisers: None,
        }
    }

    /// Images `[batch, pixels]` to log-probabilities of the digits `[batch, 10]`.
    fn forward(&self, images: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden(images);
        let hidden = match &self.quantisers {
            Some(quantisers) => quantisers.hidden.forward(hidden),
            None => hidden,
        };
        log_softmax(self.layer(1, hidden), 1)
    }

    /// The hidden activations before they are rounded.
    fn hidden(&self, images: Tensor<2>) -> Tensor<2> {
        relu(self.layer(0, images))
    }

    fn layer(&self, index: usize, input: Tensor<2>) -> Tensor<2> {
        let Linear { weight, bias } = &self.layers[index];
        let weight = match &self.quantisers {
            Some(quantisers) => quantisers.weights[index].forward(weight.val()),
            None => weight.val(),
        };
        let bias = bias.as_ref().expect("layers have biases").val();
        input.matmul(weight) + bias.unsqueeze()
    }

    /// The network with quantisers. Their steps come from a function of the values to be rounded.
    fn quantised(
        mut self,
        bits: u32,
        images: Tensor<2>,
        step: impl Fn(LearnedStep, Tensor<2>) -> Result<LearnedStep, Error>,
    ) -> Result<Self, Error> {
        let device = Device::flex().autodiff();
        let config = LearnedStepConfig::new(bits);
        let unsigned = config.clone().with_signed(false);
        // The step's rule is to depend on the features of one image, not on the batch.
        let unsigned = unsigned.with_elements(Some(HIDDEN));
        let weight = |index: usize| {
            let values = self.layers[index].weight.val().inner();
            step(config.init(&device)?, values)
        };
        let hidden = self.valid().hidden(images);
        self.quantisers = Some(Quantisers {
            weights: [weight(0)?, weight(1)?],
            hidden: step(unsigned.init(&device)?, hidden)?,
        });
        Ok(self)
    }
}

/// Post-training rounding: of many steps the one with the least squared error.
fn least_error(quantiser: LearnedStep, values: Tensor<2>) -> Result<LearnedStep, Error> {
    let start = quantiser.calibrate(values.clone())?;
    let candidates = (1..=80).map(|i| {
        let scale = f64::from(i) / 40.0;
        let mut candidate = start.clone();
        candidate.step = candidate
            .step
            .map(|step| Tensor::from_inner(step.inner() * scale).require_grad());
        let rounded = candidate.valid().forward(values.clone());
        let error: f32 = (rounded - values.clone()).square().mean().into_scalar();
        (error, candidate)
    });
    let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.expect("there are candidates").1)
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

/// Images `[n, pixels]` and their digits `[n, 1]`.
fn batch(data: &Dataset, indices: &[usize]) -> (Tensor<2>, Tensor<2, Int>) {
    let mut pixels = vec![0.0; indices.len() * PIXELS];
    data.batch(indices, &mut pixels);
    let labels = data.labels().expect("MNIST has labels");
    let digits: Vec<i64> = indices.iter().map(|&i| i64::from(labels[i])).collect();
    let (n, device) = (indices.len(), Device::flex());
    (
        Tensor::from_data(TensorData::new(pixels, [n, PIXELS]), &device),
        Tensor::from_data(TensorData::new(digits, [n, 1]), &device),
    )
}

/// The share of test images that get their digit, in percent.
fn accuracy(model: &Classifier, data: &Dataset) -> f64 {
    let test: Vec<usize> = (mnist::TRAIN..mnist::TRAIN + mnist::TEST).collect();
    let (images, digits) = batch(data, &test);
    let answers = model.valid().forward(images).argmax(1);
    let right: i64 = answers.equal(digits).int().sum().into_scalar();
    100.0 * right as f64 / mnist::TEST as f64
}

fn train(key: Key, mut model: Classifier, steps: usize, data: &Dataset) -> Classifier {
    let batches = Batches::new(key.seed(), 0..mnist::TRAIN, BATCH);
    let mut order = batches.epoch(0);
    let mut optimiser = AdamConfig::new().init();
    for step in 0..steps {
        let (epoch, number) = (step / batches.per_epoch(), step % batches.per_epoch());
        if number == 0 {
            order = batches.epoch(epoch as u64);
        }
        let (images, digits) = batch(data, order.batch(number));
        let loss = model.forward(images).gather(1, digits).mean().neg();
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(LEARNING_RATE, model, grads);
    }
    model
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let data = mnist::load(Binarisation::Threshold)?;
    let [weights, first, second] = Key::new(1).split();
    let start = Classifier::new(weights, &Device::flex().autodiff());
    let float = train(first, start, STEPS[0], &data);
    // As many steps in floating point as the quantised networks get.
    let longer = train(second, float.clone(), STEPS[1], &data);
    let reference = accuracy(&longer, &data);
    println!("floating point:                   {reference:.2} % of the test images");

    let some: Vec<usize> = (0..1_000).collect();
    let (some, _) = batch(&data, &some);
    for bits in [4, 2] {
        let rounded = longer.clone().quantised(bits, some.clone(), least_error)?;
        let rounded = accuracy(&rounded, &data);
        let calibrated = float
            .clone()
            .quantised(bits, some.clone(), LearnedStep::calibrate)?;
        let trained = accuracy(&train(second, calibrated, STEPS[1], &data), &data);
        println!("{bits} bits, rounded after training:   {rounded:.2} %");
        println!("{bits} bits, trained with LearnedStep: {trained:.2} %");
        if bits == 4 {
            assert!(trained > reference - 1.0, "more than a point is lost");
        } else {
            assert!(trained > rounded, "training does not help");
        }
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
