//! An estimator written outside of the crate, from its configuration to the proof that it is
//! unbiased. `docs/adding-an-estimator.md` walks through this file.
//!
//! ```text
//! cargo run --release -p straightflow --example own_estimator
//! ```

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Noise, Outcome, Price};
use straightflow::objective::CountedObjective;
use straightflow::prelude::*;

// 1. What is known about the method without running it, and its options.
straightflow::method! {
    /// The score-function estimator of what the first-order expansion of the cost at the mean
    /// leaves, plus the exact gradient of that expansion.
    ///
    /// With `m` the mean, `J` its Jacobian with respect to the natural parameter and
    /// `h(z) = f(m) + f'(m) . (z - m)`,
    ///
    /// ```text
    /// g = 1/n sum_i [f(z_i) - h(z_i)] d log q(z_i) / d natural  +  J^T f'(m)
    /// ```
    pub struct TaylorScore {}

    options TaylorScoreConfig {
        /// The number of draws n of one estimate.
        samples: usize = 1,
    }

    facts {
        id: "taylor-score",
        name: "Score function with a Taylor control variate",
        // Those for which the proof below is made.
        families: &[FamilyKind::Bernoulli],
        bias: none,
        needs: [Value, Gradient],
        price: "n + 1 f, 1 df",
        reference: "MuProp without a baseline: Gu, Levine, Sutskever, Mnih 2016, arXiv 1511.05176",
        layers: Layerwise,
    }
}

// 2. What it computes.
impl Estimator for TaylorScore {
    fn price(&self, _law: &Law, n: usize) -> Price {
        Price {
            evaluations: n + 1,
            gradients: 1,
        }
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let z = noise.get(0);
        let cost = objective.evaluate(z.clone(), law)?;
        let values = cost.clone().inner();

        let mean = law.mean().inner().unsqueeze::<4>();
        let (at_mean, slope) = objective.value_and_gradient(mean.clone(), law)?;
        let rise = (slope.clone() * (z.clone() - mean)).sum_dims(&[2, 3]);
        let rest = values.clone() - at_mean - rise.squeeze_dims(&[2, 3]);

        // Two scalars whose gradients are the two terms. Everything but the law is a constant.
        let score = (law.log_prob(z.clone()) * rest).mean();
        // Multiplied by the reciprocal: burn differentiates a division by a number in `f32`.
        let share = 1.0 / law.dims()[0] as f64;
        let expansion = (law.mean().unsqueeze::<4>() * slope).sum() * share;
        Ok(Outcome::new(cost, score + expansion, z))
    }
}

// 3. The proof: the sum over all outcomes, weighted with their probabilities, is the exact gradient.
fn run() -> Result<()> {
    // Every outcome of two bits is one element of the batch, with the same parameters.
    let double = (&Device::flex(), DType::F64);
    let z = Tensor::<2>::from_data([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], double);
    let q = Bernoulli::from_logits(Tensor::<2>::from_data([[0.4, -1.1]; 4], double))?;
    // Not symmetric, not quadratic, and not a sum over the coordinates.
    let cost = |z: Tensor<3>| {
        let [first, second] = [0, 1].map(|j| z.clone().narrow(2, j, 1));
        (first.clone() * 1.3 + 0.2).exp() + first * second.square() * 0.7
    };

    let estimator = TaylorScore::default();
    let noise = vec![z.clone().reshape([1, 4, 2, 1])];
    let gradients = estimator.gradient(noise, &q, cost)?;
    let probabilities = q.log_prob(z.unsqueeze_dim(0)).exp();
    let expected = probabilities.matmul(gradients);
    let exact = Exact::default().gradient(&q, cost)?.narrow(0, 0, 1);
    println!("exact gradient     {}", exact.to_data());
    println!("expected estimate  {}", expected.to_data());
    let bias = (expected - exact).abs().max().into_scalar::<f64>();
    assert!(bias < 1e-12, "the bias is {bias:e}");

    // The declared cost is the counted one, and the specification names the configuration.
    let estimator = TaylorScoreConfig::default().with_samples(5).init()?;
    let counts = estimator.estimate(Key::new(1), &q, cost)?.counts;
    let declared = estimator.price(q.law(), 5);
    assert_eq!(declared.evaluations, counts.evaluations());
    assert_eq!(declared.gradients, counts.gradients());
    assert_eq!(estimator.spec().to_string(), "taylor-score:samples=5");
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
