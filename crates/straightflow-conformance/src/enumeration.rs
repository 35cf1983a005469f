//! The law of an estimate without Monte Carlo: every joint outcome of the declared noise is one
//! element of a batch, weighted with its probability.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::Law;
use straightflow::estimator::{Estimator, NoiseLaw, NoiseSpec};

use crate::gradients::{gradient_from_noise, tensor};
use crate::problem::Problem;
use crate::quadrature::integrate;

/// The largest number of joint outcomes of discrete noise.
const OUTCOMES: usize = 20_000;
/// Outcomes per call: gradients are made in bounded memory.
const CHUNK: usize = 4_096;
/// Values of lower probability are left out: times any cost here, they are below 1e-12.
const NEGLIGIBLE: f64 = 1e-17;

/// Moments of the gradient of one estimate, coordinate by coordinate.
#[derive(Clone, Debug)]
pub struct Moments {
    /// `E g`.
    pub mean: Vec<f64>,
    /// `E (g - E g)^2`.
    pub variance: Vec<f64>,
    /// `E (g - E g)^4`.
    pub fourth: Vec<f64>,
}

/// One variable of the noise: `Some` of its values with their probabilities, or `None` if it is
/// uniform on (0, 1).
type Axis = Option<Vec<(Vec<f64>, f64)>>;

/// The moments of an estimate; `None` if the noise is neither discrete with few outcomes, nor that
/// with one uniform number.
///
/// # Errors
///
/// The estimator's own, or noise that is not laid out as `[.., batch, .., ..]`.
pub fn moments(estimator: &dyn Estimator, problem: &Problem) -> Result<Option<Moments>, String> {
    let cost = |z| problem.objective.cost(z);
    moments_of(estimator, problem, |noise, law| {
        gradient_from_noise(estimator, noise, law, &cost)
    })
}

/// As [`moments`], of a gradient of each batch element that is made another way from the same noise.
///
/// # Errors
///
/// As [`moments`].
pub fn moments_of(
    estimator: &dyn Estimator,
    problem: &Problem,
    gradient: impl Fn(Vec<Tensor<4>>, &Law) -> straightflow::Result<Vec<f64>>,
) -> Result<Option<Moments>, String> {
    let law = problem.law(1);
    let specs = estimator.noise(&law, estimator.draws());
    let Some(axes) = axes(&specs, &law, problem)? else {
        return Ok(None);
    };
    let uniform = axes.iter().filter(|axis| axis.is_none()).count();
    let outcomes = axes.iter().flatten().map(|values| values.len() as f64);
    if uniform > 1 || outcomes.product::<f64>() > OUTCOMES as f64 {
        return Ok(None);
    }
    let joint = joint(&axes);
    let run = |u: &[f64]| run(&gradient, problem, &specs, &joint, u);
    if uniform == 0 {
        return run(&[0.5]).map(|mut powers| Some(centred(&powers.remove(0))));
    }
    integrate(1e-12, run).map(|powers| Some(centred(&powers)))
}

fn axes(specs: &[NoiseSpec], law: &Law, problem: &Problem) -> Result<Option<Vec<Axis>>, String> {
    let mut axes = Vec::new();
    for spec in specs {
        let [n, batch, d, k] = spec.shape;
        if batch != 1 {
            return Err(format!(
                "the noise `{}` is not [.., batch, .., ..]",
                spec.name
            ));
        }
        let (count, axis): (usize, Axis) = match spec.law {
            NoiseLaw::Uniform => (n * d * k, None),
            NoiseLaw::Samples => (n, Some(problem.states())),
            NoiseLaw::Weight => {
                let Some(weight) = law.weight().and_then(|law| law.count_laws()) else {
                    return Err("weight samples of a variable without order".to_owned());
                };
                let (lo, hi) = weight[0].window(45.0);
                let values = (lo..=hi).map(|x| (vec![x as f64], weight[0].pmf(x as f64)));
                (n, Some(values.collect()))
            }
        };
        let axis = axis.map(|mut values| {
            values.retain(|(_, p)| *p > NEGLIGIBLE);
            values
        });
        if count > 24 {
            return Ok(None);
        }
        axes.extend(std::iter::repeat_n(axis, count));
    }
    Ok(Some(axes))
}

/// All joint outcomes of the discrete axes, each as one index for every axis, and its probability.
fn joint(axes: &[Axis]) -> Vec<(Vec<Option<Vec<f64>>>, f64)> {
    let mut joint = vec![(Vec::new(), 1.0)];
    for axis in axes {
        joint = match axis {
            None => {
                joint.iter_mut().for_each(|(values, _)| values.push(None));
                joint
            }
            Some(values) => joint
                .iter()
                .flat_map(|(known, p)| {
                    values.iter().map(move |(value, q)| {
                        let mut known: Vec<Option<Vec<f64>>> = known.clone();
                        known.push(Some(value.clone()));
                        (known, p * q)
                    })
                })
                .collect(),
        };
    }
    joint
}

/// For each number `u`: the sums over all outcomes of `p g`, `p g^2`, `p g^3` and `p g^4`.
fn run(
    gradient: &impl Fn(Vec<Tensor<4>>, &Law) -> straightflow::Result<Vec<f64>>,
    problem: &Problem,
    specs: &[NoiseSpec],
    joint: &[(Vec<Option<Vec<f64>>>, f64)],
    u: &[f64],
) -> Result<Vec<Vec<f64>>, String> {
    let k = problem.natural.len();
    let mut powers = vec![vec![0.0; 4 * k]; u.len()];
    let cells: Vec<(usize, usize)> = (0..u.len())
        .flat_map(|node| (0..joint.len()).map(move |outcome| (node, outcome)))
        .collect();
    for chunk in cells.chunks(CHUNK) {
        let law = problem.law(chunk.len());
        let outcomes: Vec<Vec<&[f64]>> = chunk
            .iter()
            .map(|(node, outcome)| {
                let values = joint[*outcome].0.iter();
                values
                    .map(|x| match x {
                        Some(value) => value.as_slice(),
                        None => &u[*node..=*node],
                    })
                    .collect()
            })
            .collect();
        let noise = layout(specs, &outcomes);
        let gradients = gradient(noise, &law).map_err(|error| error.to_string())?;
        for ((node, outcome), gradient) in chunk.iter().zip(gradients.chunks(k)) {
            let p = joint[*outcome].1;
            for (i, g) in gradient.iter().enumerate() {
                for power in 0..4 {
                    powers[*node][power * k + i] += p * g.powi(power as i32 + 1);
                }
            }
        }
    }
    Ok(powers)
}

/// The noise tensors `[n, batch, d, k]` of outcomes, each a list of the values of its axes.
fn layout(specs: &[NoiseSpec], outcomes: &[Vec<&[f64]>]) -> Vec<Tensor<4>> {
    let batch = outcomes.len();
    let mut first = 0;
    let mut tensors = Vec::new();
    for spec in specs {
        let [n, _, d, k] = spec.shape;
        // Samples are one axis for each draw, uniform numbers one for each entry.
        let axes = match spec.law {
            NoiseLaw::Uniform => d * k,
            NoiseLaw::Samples | NoiseLaw::Weight => 1,
        };
        let mut values = Vec::with_capacity(n * batch * d * k);
        for draw in 0..n {
            for outcome in outcomes {
                for value in &outcome[first + draw * axes..][..axes] {
                    values.extend_from_slice(value);
                }
            }
        }
        first += n * axes;
        tensors.push(tensor(values, [n, batch, d, k], DType::F64));
    }
    tensors
}

/// From raw to centred moments.
fn centred(powers: &[f64]) -> Moments {
    let k = powers.len() / 4;
    let (mut variance, mut fourth) = (Vec::new(), Vec::new());
    for i in 0..k {
        let [m1, m2, m3, m4] = std::array::from_fn(|power| powers[power * k + i]);
        variance.push((m2 - m1 * m1).max(0.0));
        fourth.push((m4 - 4.0 * m1 * m3 + 6.0 * m1 * m1 * m2 - 3.0 * m1.powi(4)).max(0.0));
    }
    Moments {
        mean: powers[..k].to_vec(),
        variance,
        fourth,
    }
}
