//! A mixture of experts that sends each input to two of eight, with a router that is trained through
//! its choice.
//!
//! An input has a context, which the router sees, and a payload, which the experts see. Each context
//! belongs to one of twelve tasks, and the answer of a task is the sum of two of eight linear maps of
//! the payload. Router and experts are learned together, in two ways:
//!
//! ```text
//! SIMPLE       the gates are a random subset of two experts, z ~ Subset(2, logits); backwards they
//!              have the gradient of its marginals (straight-through)
//! plain top-k  the gates are those of the two largest logits, weighted by their softmax; an expert
//!              that was not chosen gets no gradient, and neither does its logit
//! ```
//!
//! SIMPLE evaluates all experts in training, because it asks what the others would have answered;
//! plain top-k needs two. Both use the two largest logits when they are tested.
//!
//! ```text
//! cargo run --release -p straightflow --example top2_router
//! ```

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::activation::softmax;
use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::prelude::*;

const EXPERTS: usize = 8;
const TASKS: usize = 12;
const CONTEXT: usize = 16;
const PAYLOAD: usize = 4;
const BATCH: usize = 256;
const STEPS: u64 = 1_000;
const LEARNING_RATE: f64 = 0.02;
const SEEDS: u64 = 3;

/// The two experts of each task, of the 28 pairs.
const PAIRS: [[usize; 2]; TASKS] = [
    [0, 1],
    [2, 3],
    [4, 5],
    [6, 7],
    [0, 2],
    [1, 3],
    [4, 6],
    [5, 7],
    [0, 7],
    [1, 6],
    [2, 5],
    [3, 4],
];

#[derive(Module, Debug)]
struct Mixture {
    /// `[context, experts]`.
    router: Param<Tensor<2>>,
    /// `[experts, payload, payload]`.
    experts: Param<Tensor<3>>,
}

/// What the tasks are made of, and where inputs come from.
struct World {
    /// The middle of the contexts of each task, `[tasks, context]`.
    centres: Tensor<2>,
    /// The map of each task, `[tasks, payload, payload]`.
    maps: Tensor<3>,
}

struct Inputs {
    contexts: Tensor<2>,
    payloads: Tensor<2>,
    answers: Tensor<2>,
}

fn numbers<const D: usize>(key: Key, shape: [usize; D], most: f64) -> Tensor<D> {
    key.uniform::<D>(shape, &Device::flex(), DType::F32) * (2.0 * most) - most
}

impl World {
    fn new(key: Key) -> Self {
        let [centres, experts] = key.split();
        let experts: Tensor<3> = numbers(experts, [EXPERTS, PAYLOAD, PAYLOAD], 1.0);
        let map =
            |[a, b]: [usize; 2]| experts.clone().narrow(0, a, 1) + experts.clone().narrow(0, b, 1);
        Self {
            centres: numbers(centres, [TASKS, CONTEXT], 1.0),
            maps: Tensor::cat(PAIRS.into_iter().map(map).collect(), 0),
        }
    }

    fn inputs(&self, key: Key) -> Inputs {
        let [tasks, noise, payloads] = key.split();
        let mut uniform = vec![0.0; BATCH];
        tasks.fill_uniform_f64(&mut uniform);
        let tasks: Vec<i64> = uniform.iter().map(|u| (u * TASKS as f64) as i64).collect();
        let tasks = Tensor::from_data(TensorData::new(tasks, [BATCH]), &Device::flex());
        let payloads = numbers(payloads, [BATCH, PAYLOAD], 1.0);
        let maps = self.maps.clone().select(0, tasks.clone());
        let answers = payloads.clone().unsqueeze_dim::<3>(1).matmul(maps);
        Inputs {
            contexts: self.centres.clone().select(0, tasks) + numbers(noise, [BATCH, CONTEXT], 0.3),
            payloads,
            answers: answers.squeeze_dim(1),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Simple,
    TopK,
}

impl Mixture {
    fn new(key: Key) -> Self {
        let [router, experts] = key.split();
        let device = Device::flex().autodiff();
        let on_tape = |x: Tensor<2>| Tensor::<2>::from_inner(x).to_device(&device);
        let experts: Tensor<3> = numbers(experts, [EXPERTS, PAYLOAD, PAYLOAD], 0.5);
        Self {
            router: Param::from_tensor(on_tape(numbers(router, [CONTEXT, EXPERTS], 0.1))),
            experts: Param::from_tensor(Tensor::from_inner(experts).to_device(&device)),
        }
    }

    fn logits(&self, inputs: &Inputs) -> Tensor<2> {
        inputs.contexts.clone().matmul(self.router.val())
    }

    /// The gates `[batch, experts]` of the two largest logits, which sum to two.
    fn largest(&self, way: Way, logits: Tensor<2>) -> Tensor<2> {
        let second = logits.clone().inner().topk(2, 1).narrow(1, 1, 1);
        let out = logits.clone().inner().lower(second.expand(logits.dims()));
        match way {
            Way::Simple => logits.inner().ones_like().mask_fill(out, 0.0),
            Way::TopK => softmax(logits.mask_fill(out, -1e9), 1) * 2.0,
        }
    }

    /// The mean squared error of gates.
    fn error(&self, gates: Tensor<2>, inputs: &Inputs) -> Tensor<1> {
        // [experts, batch, payload]
        let each = inputs.payloads.clone().unsqueeze_dim::<3>(0);
        let each = each.repeat_dim(0, EXPERTS).matmul(self.experts.val());
        let gates = gates.transpose().unsqueeze_dim::<3>(2);
        let answer: Tensor<2> = (each * gates).sum_dim(0).squeeze_dim(0);
        (answer - inputs.answers.clone()).square().mean()
    }
}

/// Trains a mixture; returns the test error relative to the mean square of the answers, and the
/// perplexity of the experts in use.
fn train(key: Key, way: Way, world: &World) -> Result<(f32, f32)> {
    let [weights, inputs, draws] = key.split();
    let mut model = Mixture::new(weights);
    let simple = estimator("straight-through")?;
    let mut optimiser = AdamConfig::new().init();
    for step in 0..STEPS {
        let batch = world.inputs(inputs.child(step));
        let logits = model.logits(&batch);
        let gates = match way {
            Way::TopK => model.largest(way, logits),
            Way::Simple => {
                let q = Subset::from_logits(2, logits)?;
                simple.draw(draws.child(step), &q)?
            }
        };
        let grads = model.error(gates, &batch).backward();
        let grads = GradientsParams::from_grads(grads, &model);
        model = optimiser.step(LEARNING_RATE, model, grads);
    }
    let model = model.valid();
    let (mut error, mut square) = (0.0, 0.0);
    let mut used = Tensor::<2>::zeros([1, EXPERTS], &Device::flex());
    for test in 0..20 {
        let batch = world.inputs(inputs.child(STEPS + test));
        let gates = model.largest(way, model.logits(&batch));
        used = used + gates.clone().greater_elem(0.0).float().mean_dim(0);
        error += model.error(gates, &batch).into_scalar::<f32>();
        square += batch.answers.square().mean().into_scalar::<f32>();
    }
    let shares = used.clone() / used.sum().unsqueeze_dim(1);
    let entropy = -(shares.clone() * (shares + 1e-12).log()).sum();
    Ok((error / square, entropy.exp().into_scalar()))
}

fn run() -> Result<()> {
    println!("error relative to the mean square of the answers, and the perplexity of the experts");
    let mut means = [0.0; 2];
    for seed in 0..SEEDS {
        let [world, run] = Key::new(seed).split();
        let world = World::new(world);
        for (mean, (name, way)) in means
            .iter_mut()
            .zip([("SIMPLE", Way::Simple), ("plain top-k", Way::TopK)])
        {
            let (error, perplexity) = train(run, way, &world)?;
            println!("seed {seed}  {name:11}  {error:.4}  {perplexity:.2} of {EXPERTS}");
            *mean += error / SEEDS as f32;
        }
    }
    let [simple, top_k] = means;
    println!("mean    SIMPLE {simple:.4}, plain top-k {top_k:.4}");
    assert!(simple < 0.25 * top_k, "SIMPLE is not far ahead");
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
