//! A mixture of experts with hard gates: a one-hot variable chooses which line answers.
//!
//! The target is `y = |x|`, which no single line fits and two lines fit exactly. The squared error
//! of the chosen expert can be written in two ways that agree on every one-hot gate `z`:
//!
//! ```text
//! inside:   (sum_k z_k a_k - y)^2      quadratic in z
//! outside:  sum_k z_k (a_k - y)^2      linear in z
//! ```
//!
//! Straight-through is exact on a linear cost only, so the second way is the one to write. In the
//! first, it sees `(sum_k p_k a_k - y)^2` in expectation: a soft mixture that never has to decide.
//!
//! ```text
//! cargo run --release -p straightflow --example categorical_gates
//! ```

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const EXPERTS: usize = 4;
const POINTS: usize = 128;
const STEPS: u64 = 500;
const LEARNING_RATE: f64 = 0.05;

/// Inputs have two features, 1 and x, so a column of a matrix is a line.
#[derive(Module, Debug)]
struct Mixture {
    gates: Param<Tensor<2>>,
    experts: Param<Tensor<2>>,
}

/// Inputs `[batch, 2]` and targets `[batch, 1]`.
struct Data {
    features: Tensor<2>,
    targets: Tensor<2>,
}

/// Gates `[n, batch, 1, k]`, answers `[batch, k]` and targets `[batch, 1]` to errors `[n, batch]`.
type ErrorOfGate = fn(Tensor<4>, Tensor<2>, Tensor<2>) -> Tensor<2>;

fn inside(gate: Tensor<4>, answers: Tensor<2>, targets: Tensor<2>) -> Tensor<2> {
    let chosen = (gate.squeeze_dim::<3>(2) * answers.unsqueeze_dim(0)).sum_dim(2);
    (chosen - targets.unsqueeze_dim(0)).square().squeeze_dim(2)
}

fn outside(gate: Tensor<4>, answers: Tensor<2>, targets: Tensor<2>) -> Tensor<2> {
    let errors = (answers - targets).square();
    let chosen = gate.squeeze_dim::<3>(2) * errors.unsqueeze_dim(0);
    chosen.sum_dim(2).squeeze_dim(2)
}

impl Mixture {
    fn new(key: Key, device: &Device) -> Self {
        let weights = |key: Key| {
            let uniform = key.uniform([2, EXPERTS], device, DType::F32);
            Param::from_tensor(Tensor::from_inner(uniform * 2.0 - 1.0))
        };
        let [gates, experts] = key.split();
        Self {
            gates: weights(gates),
            experts: weights(experts),
        }
    }

    /// One variable for each input: `[batch, d = 1, k]`.
    fn gate(&self, data: &Data) -> Result<Categorical> {
        let logits = data.features.clone().matmul(self.gates.val());
        Categorical::from_logits(logits.unsqueeze_dim(1))
    }

    fn cost(&self, error: ErrorOfGate, gate: Tensor<4>, data: &Data) -> Tensor<2> {
        let answers = data.features.clone().matmul(self.experts.val());
        error(gate, answers, data.targets.clone())
    }
}

/// Trains on one of the two costs and returns the mean squared error of the hard gates.
fn train(key: Key, error: ErrorOfGate, data: &Data) -> Result<f32> {
    let [weights, training] = key.split();
    let mut model = Mixture::new(weights, &Device::flex().autodiff());
    // The estimator is given by its specification, as on a command line.
    let estimator = estimator("straight-through:samples=8")?;
    let mut optimiser = AdamConfig::new().init();
    for step in 0..STEPS {
        let q = model.gate(data)?;
        let cost = |gate| model.cost(error, gate, data);
        let estimate = estimator.estimate(training.child(step), &q, cost)?;
        let gradients = GradientsParams::from_grads(estimate.surrogate.backward(), &model);
        model = optimiser.step(LEARNING_RATE, model, gradients);
    }
    // Four categories are few enough to take the expectation over the gates exactly.
    let model = model.valid();
    let cost = |gate| model.cost(error, gate, data);
    let expected = Exact::default().expectation(&model.gate(data)?, cost)?;
    Ok(expected.value.mean().into_scalar())
}

fn run() -> Result<()> {
    let [inputs, run] = Key::new(1).split();
    let x = inputs.uniform::<2>([POINTS, 1], &Device::flex(), DType::F32) * 2.0 - 1.0;
    let data = Data {
        features: Tensor::cat(vec![x.ones_like(), x.clone()], 1),
        targets: x.abs(),
    };
    let constant = data.targets.clone().var(0).into_scalar::<f32>();
    let (inside, outside) = (train(run, inside, &data)?, train(run, outside, &data)?);
    println!("expected squared error of the best constant:    {constant:.5}");
    println!("trained with the gate inside of the square:     {inside:.5}");
    println!("trained with the gate outside of the square:    {outside:.5}");
    assert!(outside < constant / 10.0, "the experts did not specialise");
    assert!(
        outside < inside / 3.0,
        "the bias on the quadratic cost is gone"
    );
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
