//! REBAR with a fixed temperature and scale 1, wrong in three ways.
//!
//! With uniform `u`, `v` and `p = sigmoid(phi)`: `z = phi + logit u`, `b = 1{z > 0}`, and the
//! conditional `z~ = phi + logit v'` with `v' = b (v p + 1 - p) + (1 - b) v (1 - p)`, which has the
//! law of `z` given `b`. For the relaxation `f~(z) = f(sigmoid(z / tau))`,
//!
//! ```text
//! g = (f(b) - f~(z~)) (b - p) + d/dphi f~(z) - d/dphi f~(z~)
//! ```
//!
//! where `z~` depends on `phi` through `v'` too. Noise that is drawn without regard to `b` and used
//! unconditionally leaves `g` unbiased: both corrections have mean zero then, and only the variance
//! tells. Conditioned on another variable than `b`, it is biased.

use burn::tensor::{Tensor, activation::sigmoid};
use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, NoiseSpec, Outcome};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;
use crate::problem::Problem;
use crate::subject::Subject;

const TEMPERATURE: f64 = 0.5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    /// `z~ = phi + logit v`.
    FreeNoise,
    /// `v'` is made with another draw than `b`.
    OtherDraw,
    /// The derivative of `v'` with respect to `phi` is left out.
    NotDifferentiated,
}

mutant! {
    Rebar {}, samples = 1,
    id: "mutant-rebar",
    families: &[FamilyKind::Bernoulli],
    bias: none,
    needs: [Value, Gradient],
    price: [3, 2],
    noise: Samples,
    layers: Unsupported,
}

impl Estimator for Rebar {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let shape = law.sample_dims(n);
        ["relaxation", "conditional", "other draw"]
            .map(|name| NoiseSpec::uniform(name, shape))
            .to_vec()
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let mistake = self.config.mistake;
        let [u, v, w] = std::array::from_fn(|i| noise.get(i));
        let shape = u.dims();
        let phi: Tensor<4> = law.natural().inner().unsqueeze::<4>().expand(shape);
        let (p, q) = (sigmoid(phi.clone()), sigmoid(-phi.clone()));
        let above = |x: Tensor<4>| x.greater_elem(0.0).float().cast(phi.dtype());
        let logit = |u: Tensor<4>| u.clone().log() - (-u + 1.0).log();

        let z = phi.clone() + logit(u);
        let b = above(z.clone());
        let given = match mistake {
            Mistake::OtherDraw => above(phi.clone() + logit(w)),
            _ => b.clone(),
        };
        // v' and 1 - v' without cancellation, and the derivative of v' with respect to phi.
        let not_given = -given.clone() + 1.0;
        let rest = -v.clone() + 1.0;
        let low = given.clone() * (v.clone() * p.clone() + q.clone())
            + not_given.clone() * v.clone() * q.clone();
        let high = given.clone() * p.clone() * rest.clone()
            + not_given.clone() * (p.clone() + q.clone() * rest.clone());
        let slope = -(given * rest + not_given * v.clone()) * p.clone() * q;
        let conditional = match mistake {
            Mistake::FreeNoise => phi.clone() + logit(v),
            _ => phi.clone() + low.clone().log() - high.clone().log(),
        };
        let by_phi = match mistake {
            Mistake::FreeNoise | Mistake::NotDifferentiated => phi.ones_like(),
            Mistake::None | Mistake::OtherDraw => slope / (low * high) + 1.0,
        };

        let relaxed = |z: Tensor<4>| {
            let y = sigmoid(z.clone() / TEMPERATURE);
            let width = y.clone() * sigmoid(-z / TEMPERATURE) / TEMPERATURE;
            (y, width)
        };
        let (y, width) = relaxed(z);
        let (y_given, width_given) = relaxed(conditional);
        let cost = objective.evaluate(b.clone(), law)?;
        let (_, along) = objective.value_and_gradient(y, law)?;
        let (control, along_given) = objective.value_and_gradient(y_given, law)?;
        let rest: Tensor<4> = (cost.clone().inner() - control).unsqueeze_dims(&[2, 3]);
        let each = rest * (b.clone() - p) + along * width - along_given * width_given * by_phi;
        let by_natural = each.mean_dim(0);
        let batch = law.dims()[0] as f64;
        let scalar = (law.natural().unsqueeze::<4>() * by_natural).sum() / batch;
        Ok(Outcome::new(cost, scalar, b))
    }
}

/// The variance of one estimate by a midpoint rule over `u` and `v`, on each side of `b`'s jump.
fn variance(problem: &Problem) -> Vec<f64> {
    const POINTS: usize = 300;
    let phi = problem.natural[0];
    let p = 1.0 / (1.0 + (-phi).exp());
    let f = |x: f64| problem.objective.value_at(&[x]);
    let soft = |z: f64| 1.0 / (1.0 + (-z / TEMPERATURE).exp());
    let logit = |u: f64| (u / (1.0 - u)).ln();
    // d/dz f(sigmoid(z / tau)).
    let slope = |z: f64| {
        let y = soft(z);
        problem.objective.gradient_at(&[y])[0] * y * (1.0 - y) / TEMPERATURE
    };
    let middle = |i: usize| (i as f64 + 0.5) / POINTS as f64;
    let (mut mean, mut square) = (0.0, 0.0);
    for b in [0.0, 1.0] {
        let probability = if b == 1.0 { p } else { 1.0 - p };
        let weight = probability / (POINTS * POINTS) as f64;
        for i in 0..POINTS {
            let u = if b == 1.0 {
                1.0 - p + p * middle(i)
            } else {
                (1.0 - p) * middle(i)
            };
            let z = phi + logit(u);
            for j in 0..POINTS {
                let v = middle(j);
                let given = |p: f64| b * (v * p + 1.0 - p) + (1.0 - b) * v * (1.0 - p);
                let inner = given(p);
                let by_p = b * (v - 1.0) - (1.0 - b) * v;
                let by_phi = 1.0 + by_p * p * (1.0 - p) / (inner * (1.0 - inner));
                let conditional = phi + logit(inner);
                let score = (f(b) - f(soft(conditional))) * (b - p);
                let g = score + slope(z) - slope(conditional) * by_phi;
                mean += weight * g;
                square += weight * g * g;
            }
        }
    }
    vec![square - mean * mean]
}

fn aimed(mistake: Mistake) -> Subject {
    let mut subject = subject(mistake);
    subject.variance = Some(variance);
    subject
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, rejected_by, mistake| Mutant {
        name,
        wrong,
        rejected_by,
        subject: aimed(mistake),
        twin: aimed(Mistake::None),
    };
    vec![
        mutant(
            "rebar-free-noise",
            "REBAR's conditional noise independent of b, used unconditionally (still unbiased)",
            "variance",
            Mistake::FreeNoise,
        ),
        mutant(
            "rebar-other-draw",
            "REBAR's conditional noise given another draw than b",
            "statistical",
            Mistake::OtherDraw,
        ),
        mutant(
            "rebar-not-differentiated",
            "REBAR's conditional noise not differentiated with respect to the logit",
            "statistical",
            Mistake::NotDifferentiated,
        ),
    ]
}
