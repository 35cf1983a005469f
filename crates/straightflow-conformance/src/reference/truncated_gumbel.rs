//! The means of `f'(y) dy/d natural` and `f(y)` over many draws of a plain scalar sampler, because the noise
//! has as many dimensions as the window has values.

use serde_json::Value;

use super::quadrature::temperature;
use super::textbook::Textbook;
use crate::problem::{Problem, softmax};

const DRAWS: usize = 400_000;

/// The expectation and its standard error.
pub fn expected(config: &Value, problem: &Problem) -> (Vec<f64>, Vec<f64>) {
    let slope_and_weight = |y: f64, weight: f64| problem.objective.gradient_at(&[y])[0] * weight;
    let (mean, error) = over_noise(config, problem, slope_and_weight);
    (vec![mean], vec![error])
}

/// The expected cost of the sample at which the cost is evaluated, and its standard error.
pub fn expected_cost(config: &Value, problem: &Problem) -> (f64, f64) {
    over_noise(config, problem, |y, _| problem.objective.value_at(&[y]))
}

/// The mean of a function of the sample `y` and the weight `dy/d natural`. The window is that of the law, whose tails define it;
/// probabilities and scores are computed here.
fn over_noise(
    config: &Value,
    problem: &Problem,
    of_sample: impl Fn(f64, f64) -> f64,
) -> (f64, f64) {
    let tau = temperature(config);
    let hard = config["hard"] == true;
    let tail = config["tail"].as_f64().expect("a number");
    let x = problem.natural[0];
    let law = problem.family.count_law(x).expect("a count");
    let (lo, hi) = law.window(-tail.ln());
    let values: Vec<f64> = (lo..=hi).map(|k| k as f64).collect();
    let ln_pmf = |x: f64, k: f64| {
        let law = Textbook::new(problem.family, x);
        law.expect("a count").ln_pmf(k)
    };
    let log_p: Vec<f64> = values.iter().map(|k| ln_pmf(x, *k)).collect();
    let score: Vec<f64> = {
        let h = 1e-4;
        let central = |k: f64, h: f64| (ln_pmf(x + h, k) - ln_pmf(x - h, k)) / (2.0 * h);
        let extrapolated = |k: &f64| (4.0 * central(*k, h / 2.0) - central(*k, h)) / 3.0;
        values.iter().map(extrapolated).collect()
    };

    let product: Vec<f64> = values.iter().zip(&score).map(|(k, s)| k * s).collect();

    let mut state = 0x5eed_u64;
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..DRAWS {
        let perturbed: Vec<f64> = log_p
            .iter()
            .map(|l| l - (-uniform(&mut state).ln()).ln())
            .collect();
        let y = softmax(&perturbed.iter().map(|x| x / tau).collect::<Vec<_>>());
        let mean = |v: &[f64]| y.iter().zip(v).map(|(y, v)| y * v).sum::<f64>();
        let count = mean(&values);
        let weight = (mean(&product) - count * mean(&score)) / tau;
        let most = (0..y.len()).fold(0, |best, i| {
            if perturbed[i] > perturbed[best] {
                i
            } else {
                best
            }
        });
        let at = if hard { values[most] } else { count };
        let term = of_sample(at, weight);
        sum += term;
        squares += term * term;
    }
    let n = DRAWS as f64;
    let mean = sum / n;
    let error = ((squares / n - mean * mean).max(0.0) / n).sqrt();
    (mean, error)
}

/// SplitMix64, as a number in the open interval (0, 1).
pub fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    ((z >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}
