//! A family written outside of the crate: a Poisson count that is known to be below `k`. Every family
//! with finitely many values is a categorical variable whose logits are functions of fewer
//! parameters, so every method for categorical variables takes it.
//!
//! ```text
//! cargo run --release -p straightflow --example own_family
//! ```

use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow::distribution::Law;
use straightflow::prelude::*;

/// Counts `0, .., k - 1` with `P(z) ~ rate^z / z!`; samples are one-hot vectors.
#[derive(Clone, Debug)]
struct TruncatedPoisson(Categorical);

impl TruncatedPoisson {
    /// From log-rates `[batch, d]`; the logits `z log-rate - log z!` are on their tape.
    fn from_log_rates(log_rates: Tensor<2>, k: usize) -> Result<Self> {
        let factorials = (0..k).scan(0.0, |sum, z| {
            *sum += (z.max(1) as f64).ln();
            Some(*sum)
        });
        let factorials = row(factorials.collect(), &log_rates);
        let logits = log_rates.clone().unsqueeze_dim(2) * counts(k, &log_rates) - factorials;
        Categorical::from_logits(logits).map(Self)
    }
}

impl Distribution for TruncatedPoisson {
    type Parameters = Tensor<3>;
    type Samples = Tensor<4>;

    fn law(&self) -> &Law {
        self.0.law()
    }

    fn from_law(law: Law) -> Self {
        Self(Categorical::from_law(law))
    }

    fn element(law: &Law) -> Vec<usize> {
        Categorical::<3>::element(law)
    }
}

/// Numbers `[1, 1, k]`, where and of the type that parameters are.
fn row(values: Vec<f64>, like: &Tensor<2>) -> Tensor<3> {
    let data = TensorData::new(values.clone(), [1, 1, values.len()]);
    Tensor::from_data(data, (&like.device().inner(), like.dtype()))
}

fn counts(k: usize, like: &Tensor<2>) -> Tensor<3> {
    row((0..k).map(|z| z as f64).collect(), like)
}

/// The gradient of `E (z - 2.5)^2` for any method, beside the derivative of the sum over all values.
fn run() -> Result<()> {
    const K: usize = 6;
    let rows = 20_000;
    let device = Device::flex().autodiff();
    let log_rates = || Tensor::<2>::full([rows, 1], 0.7, (&device, DType::F64)).require_grad();
    let cost = |z: Tensor<4>| {
        let values = counts(
            K,
            &Tensor::<2>::zeros([1, 1], (&Device::flex(), DType::F64)),
        );
        let count = (z * values.unsqueeze()).sum_dim(3);
        (count - 2.5).square()
    };
    let leaf = log_rates();
    let exact = Exact::default()
        .expectation(&TruncatedPoisson::from_log_rates(leaf.clone(), K)?, cost)?
        .surrogate();
    let exact = leaf
        .grad(&exact.backward())
        .expect("a leaf")
        .sum()
        .into_scalar::<f64>();
    for method in [
        "reinmax",
        "reinforce:baseline=loo,samples=4",
        "finite-difference",
    ] {
        let leaf = log_rates();
        let q = TruncatedPoisson::from_log_rates(leaf.clone(), K)?;
        let estimate = estimator(method)?.estimate(Key::new(1), &q, cost)?;
        let each = leaf.grad(&estimate.surrogate.backward()).expect("a leaf") * rows as f64;
        let (variance, mean) = each.var_mean(0);
        let (mean, error) = (
            mean.into_scalar::<f64>(),
            (variance.into_scalar::<f64>() / rows as f64).sqrt(),
        );
        println!("{method:<34} {mean:.4} +- {error:.4}, exact {exact:.4}");
        // The cost is quadratic, on which ReinMax is exact too. Six standard errors.
        assert!(
            (mean - exact).abs() < 6.0 * error + 1e-9,
            "{method} is biased"
        );
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
