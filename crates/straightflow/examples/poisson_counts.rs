//! Counts: the straight-through estimate beside the exact gradient, and its bias beside theory.
//!
//! For a Poisson variable of rate m and log-rate t, with `f(z) = z^2`:
//!
//! ```text
//! E f(z) = m + m^2,  dm/dt = m
//! exact:             d/dt E f(z)   = m (1 + 2 m)
//! straight-through:  m E f'(z)     = m (2 m)
//! bias:              -m f''/2 V'(m) = -m,  because the variance V(m) = m moves with the mean
//! ```
//!
//! On a linear cost there is nothing to miss, and every single draw gives the exact gradient.
//!
//! ```text
//! cargo run --release -p straightflow --example poisson_counts
//! ```

use burn::tensor::{DType, Device, Tensor};
use straightflow::prelude::*;

const RATES: [f64; 3] = [0.5, 2.0, 5.0];
const DRAWS: usize = 100_000;

/// The cost of one variable for each batch element: `[n, batch, 1]` as it comes.
fn square(z: Tensor<3>) -> Tensor<3> {
    z.square()
}

fn line(z: Tensor<3>) -> Tensor<3> {
    z * 3.0 - 1.0
}

fn numbers(x: Tensor<2>) -> Vec<f64> {
    x.into_data().try_into_vec().expect("f64 values")
}

fn run() -> Result<()> {
    // Three batch elements of one coordinate; no network and no tape are needed.
    let rates = Tensor::<2>::from_data(
        [[RATES[0]], [RATES[1]], [RATES[2]]],
        (&Device::flex(), DType::F64),
    );
    let q = Poisson::from_rates(rates)?;
    let [one, many] = Key::new(1).split();
    let straight_through = StraightThroughConfig { samples: DRAWS }.init()?;

    let exact = numbers(Exact::default().gradient(&q, square)?);
    let estimate = numbers(straight_through.gradient(many, &q, square)?);
    println!("d/d log-rate E z^2");
    println!(
        "{:>6} {:>12} {:>18} {:>10} {:>10}",
        "rate", "exact", "straight-through", "bias", "theory"
    );
    for (i, rate) in RATES.into_iter().enumerate() {
        let bias = estimate[i] - exact[i];
        println!(
            "{rate:>6} {:>12.6} {:>18.6} {bias:>10.4} {:>10.4}",
            exact[i], estimate[i], -rate
        );
        assert!((exact[i] - rate * (1.0 + 2.0 * rate)).abs() < 1e-9);
        // The estimate is m times a mean of 2 z, so its standard error is 2 m sqrt(m / DRAWS). At
        // five of them and three rates, a correct program fails with probability 2e-6 or so, and
        // always or never, because the key is fixed.
        let standard_error = 2.0 * rate * (rate / DRAWS as f64).sqrt();
        assert!((bias + rate).abs() < 5.0 * standard_error);
    }

    // One draw is enough on a linear cost.
    let exact = numbers(Exact::default().gradient(&q, line)?);
    let estimate = numbers(StraightThrough::default().gradient(one, &q, line)?);
    println!("\nd/d log-rate E (3 z - 1)\nexact {exact:.9?}\none draw {estimate:.9?}");
    for (a, b) in exact.iter().zip(&estimate) {
        assert!((a - b).abs() < 1e-9);
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let failed = run().inspect_err(|error| eprintln!("{error}")).is_err();
    u8::from(failed).into()
}
