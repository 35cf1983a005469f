//! Truncated Gumbel-softmax against finite differences of the scalar relaxation.

use straightflow::distribution::{CountLaw, Family};

use crate::scalar_relaxation::{Scalar, compare, gumbel, largest, scalar_softmax};

/// Weights, log-probabilities and values of the window for one variable.
fn soft(
    law: &CountLaw,
    (lo, hi): (u64, u64),
    noise: &[Vec<f64>],
    temperature: f64,
) -> (Vec<f64>, Vec<f64>) {
    let values: Vec<f64> = (lo..=hi).map(|k| k as f64).collect();
    let numbers = values.iter().zip(noise.iter().flatten());
    let x: Vec<f64> = numbers
        .map(|(k, u)| (law.ln_pmf(*k) + gumbel(*u)) / temperature)
        .collect();
    (scalar_softmax(&x), values)
}

fn mean(weights: &[f64], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(y, k)| y * k).sum()
}

#[test]
fn windows_of_counts() {
    for (family, natural) in [
        (Family::Poisson, [0.3, -1.2, 1.8, 0.1]),
        (Family::Binomial { trials: 5 }, [0.3, -1.2, 0.8, 2.1]),
        (
            Family::NegativeBinomial { dispersion: 2.5 },
            [0.3, -1.2, 0.9, 0.1],
        ),
    ] {
        for (hard, temperature, tail) in
            [("off", 0.4, 1e-4), ("off", 1.0, 1e-6), ("on", 0.7, 1e-3f64)]
        {
            let spec =
                format!("truncated-gumbel:hard={hard},tail={tail},temperature={temperature}");
            compare(&spec, family, &natural, [2, 2, 1], |natural, noise| {
                let law = family.count_law(natural[0]).expect("a count");
                let window = law.window(-tail.ln());
                let (y, k) = soft(&law, window, noise, temperature);
                let value = mean(&y, &k);
                let terms = y.iter().zip(&k);
                // d y_k = y_k (s_k - mean of s) / tau, with the score s by hand.
                let score = |k: f64| match family {
                    Family::Binomial { trials } => {
                        k - f64::from(trials) / (1.0 + (-natural[0]).exp())
                    }
                    Family::NegativeBinomial { dispersion } => {
                        (k - natural[0].exp()) * dispersion / (dispersion + natural[0].exp())
                    }
                    _ => k - natural[0].exp(),
                };
                let mean_score: f64 = terms.clone().map(|(y, k)| y * score(*k)).sum();
                let weight: f64 = terms.map(|(y, k)| k * y * (score(*k) - mean_score)).sum();
                let at = |x: f64| {
                    let law = family.count_law(x).expect("a count");
                    let (y, k) = soft(&law, window, noise, temperature);
                    mean(&y, &k)
                };
                let numeric = (at(natural[0] + 1e-5) - at(natural[0] - 1e-5)) / 2e-5;
                let weight = weight / temperature;
                assert!(
                    (weight - numeric).abs() < 1e-6 * (1.0 + weight.abs()),
                    "{weight} {numeric}"
                );
                Scalar {
                    z: vec![if hard == "on" { k[largest(&y)] } else { value }],
                    jacobian: vec![vec![weight]],
                }
            });
        }
    }
}
