//! The projected flow with a Gaussian kernel, by brute-force sums over the whole support.
//!
//! With `r(y) = sum_x w(x) [K(x + 1 - y) - K(x - y)]` and `c = r'`, the gradient with respect to
//! the mean is `E 2 [r(z) - r(z - eps f'(z))]` before it is divided by the gain, and `E c(z) f'(z)`
//! in the limit of small steps. The control variate has mean zero, so it does not change the
//! expectation.

use serde_json::Value;

use super::textbook::Textbook;
use crate::problem::{Problem, softmax};
use crate::product::{Product, product_of_others};

/// `None` for options that have no scalar counterpart here: other kernels, the Wasserstein
/// projection, the per-coordinate form of one-hot vectors, and relative steps.
pub fn expected(config: &Value, problem: &Problem) -> Option<Vec<f64>> {
    let mut sum = vec![0.0; problem.natural.len()];
    for (z, p) in problem.states() {
        for (sum, term) in sum.iter_mut().zip(term(
            config,
            problem,
            &z,
            &problem.objective.gradient_at(&z),
        )?) {
            *sum += p * term;
        }
    }
    Some(sum)
}

/// The expectation for a product of costs with a step of finite size, which is not linear in the
/// cost. The rule of variable `j` sees `z_j` and `d_j f(z) = h_j'(z_j) prod_{i != j} h_i(z_i)` and
/// nothing else, so the terms are those of one variable, summed over the joint states.
pub fn expected_product(config: &Value, product: &Product) -> Option<Vec<f64>> {
    let k = product.factors[0].natural.len();
    let mut sum = vec![0.0; 3 * k];
    for (z, p) in product.states() {
        let values = product.values_at(&z);
        for (j, problem) in product.factors.iter().enumerate() {
            let others = product_of_others(&values, j);
            let mut slope = problem.objective.gradient_at(&z[j]);
            slope.iter_mut().for_each(|slope| *slope *= others);
            let terms = term(config, problem, &z[j], &slope)?;
            for (sum, term) in sum[j * k..].iter_mut().zip(terms) {
                *sum += p * term;
            }
        }
    }
    Some(sum)
}

/// The contribution of one draw where the cost has a given slope, with respect to the natural
/// parameters.
pub fn term(config: &Value, problem: &Problem, z: &[f64], slope: &[f64]) -> Option<Vec<f64>> {
    if config["kernel"] != "rbf" || config["projection"] != "mmd" {
        return None;
    }
    let step = step(config["step"].as_str()?)?;
    if !problem.family.is_vector() {
        return ordered(config, problem, z[0], slope[0], step).map(|term| vec![term]);
    }
    if !problem.family.is_one_hot() {
        return vector(config, problem, z, slope, step);
    }
    match config["categorical"] == "one-hot" {
        true => one_hot(config, problem, z, slope, step),
        false => None,
    }
}

/// The raw gradient of a vector by the definition: `2 [r(z) - r(moved)]`, `r(y) = E K(x, y) (x -
/// mean)`.
fn vector(
    config: &Value,
    problem: &Problem,
    z: &[f64],
    slope: &[f64],
    step: Option<f64>,
) -> Option<Vec<f64>> {
    if config["gain"] != "raw" {
        return None;
    }
    let h = bandwidth(config, 0.0)?;
    let step = step?;
    let states = problem.states();
    let response = |y: &[f64]| -> Vec<f64> {
        let mut sum = vec![0.0; y.len()];
        for (x, p) in &states {
            let square: f64 = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum();
            let kernel = (-0.5 * square / (h * h)).exp();
            let terms = sum.iter_mut().zip(problem.score(x));
            terms.for_each(|(sum, score)| *sum += p * kernel * score);
        }
        sum
    };
    let moved: Vec<f64> = z.iter().zip(slope).map(|(z, s)| z - step * s).collect();
    let falls = response(z).into_iter().zip(response(&moved));
    Some(falls.map(|(here, there)| 2.0 * (here - there)).collect())
}

/// `Some(None)` for an infinitely small step.
fn step(text: &str) -> Option<Option<f64>> {
    if text == "limit" {
        return Some(None);
    }
    let size = text.strip_prefix("fixed(")?.strip_suffix(')')?;
    size.parse().ok().map(Some)
}

/// A number, or a number of standard deviations with a floor.
fn bandwidth(config: &Value, deviation: f64) -> Option<f64> {
    let text = config["bandwidth"].as_str()?;
    let Some((factor, floor)) = text.split_once("sd") else {
        return text.parse().ok();
    };
    let floor = match floor.strip_prefix('>') {
        Some(floor) => floor.parse().ok()?,
        None => 1.0,
    };
    let factor: f64 = factor.parse().ok()?;
    Some((factor * deviation).max(floor))
}

fn ordered(
    config: &Value,
    problem: &Problem,
    z: f64,
    slope: f64,
    step: Option<f64>,
) -> Option<f64> {
    let law = Textbook::new(problem.family, problem.natural[0])?;
    let weight = law.weight();
    let h = bandwidth(config, law.variance().sqrt())?;
    let kernel = |d: f64| (-0.5 * d * d / (h * h)).exp();
    let sum = |term: &dyn Fn(f64) -> f64| -> f64 {
        let terms = weight.iter().enumerate();
        terms.map(|(x, w)| w * term(x as f64)).sum()
    };
    let r = |y: f64| sum(&|x| kernel(x + 1.0 - y) - kernel(x - y));
    // d/dy K(x - y) = (x - y) K(x - y) / h^2.
    let lean = |d: f64| d * kernel(d) / (h * h);
    let c = |y: f64| sum(&|x| lean(x + 1.0 - y) - lean(x - y));
    let gain = || -> Option<f64> {
        match config["gain"].as_str()? {
            "linear" => {
                let states = problem.states();
                Some(states.iter().map(|(z, p)| p * c(z[0])).sum())
            }
            // The squared length of the family's tangent in the geometry of the kernel.
            "projection" => Some(sum(&|x| {
                sum(&|y| 2.0 * kernel(x - y) - kernel(x + 1.0 - y) - kernel(x - 1.0 - y))
            })),
            _ => None,
        }
    };
    let by_mean = match step {
        None => c(z) * slope / gain()?,
        Some(eps) => {
            let moved = 2.0 * (r(z) - r(z - eps * slope));
            match config["gain"].as_str()? {
                "raw" => moved,
                _ => moved / (2.0 * eps * gain()?),
            }
        }
    };
    Some(law.jacobian() * by_mean)
}

/// One-hot vectors have no deviation: their bandwidth is the floor. Between two corners the kernel
/// is `exp(-1 / h^2)`.
fn one_hot(
    config: &Value,
    problem: &Problem,
    z: &[f64],
    slope: &[f64],
    step: Option<f64>,
) -> Option<Vec<f64>> {
    let h = bandwidth(config, 0.0)?;
    let corner = (-1.0 / (h * h)).exp();
    let gain = match config["gain"].as_str()? {
        "linear" => corner / (h * h),
        "projection" => 1.0 - corner,
        "raw" => 1.0,
        _ => return None,
    };
    let kernel = |i: usize, eps: f64| {
        let gap = |j: usize| z[j] - eps * slope[j] - f64::from(u8::from(i == j));
        let square: f64 = (0..z.len()).map(|j| gap(j).powi(2)).sum();
        (-0.5 * square / (h * h)).exp()
    };
    let by_p = |i: usize| match step {
        // d/d eps of the kernel at the corner i, up to what the softmax removes.
        None => corner / (h * h) * slope[i] / gain,
        Some(eps) if config["gain"] == "raw" => 2.0 * (kernel(i, 0.0) - kernel(i, eps)),
        Some(eps) => (kernel(i, 0.0) - kernel(i, eps)) / (eps * gain),
    };
    let by_p: Vec<f64> = (0..z.len()).map(by_p).collect();
    let p = softmax(&problem.natural);
    let along: f64 = p.iter().zip(&by_p).map(|(p, g)| p * g).sum();
    Some(p.iter().zip(&by_p).map(|(p, g)| p * (g - along)).collect())
}
