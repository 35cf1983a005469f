//! The difference of a bound when one draw is replaced by its antithetic twin, wrong in two ways.
//!
//! ```text
//! g = sum_k 1/2 (L(b) - L(b with the twin of b_k)) (b_k - twin_k) sigmoid(|logit|)
//! ```
//!
//! `sigmoid(logit)` is wrong for negative logits only. Half the difference to the bound without the
//! draw would be right for `b_k` alone, but half of the gradient comes from the twin.

use burn::tensor::{Tensor, activation::sigmoid};
use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, Outcome};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;
use crate::gradients::{tensor, to_vec};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    WrongSide,
    LeftOut,
}

mutant! {
    LocalDisarm {}, samples = 2,
    id: "mutant-local-disarm",
    families: &[FamilyKind::Bernoulli],
    objective: Bound,
    bias: none,
    needs: [Value],
    price: [2, 0],
    noise: Uniform,
    layers: Unsupported,
}

/// `-log (1/n) sum exp(-f)`.
fn bound(f: &[f64]) -> f64 {
    let least = f.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = f.iter().map(|f| (least - f).exp()).sum();
    least - (sum / f.len() as f64).ln()
}

impl Estimator for LocalDisarm {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let u = noise.get(0);
        let [n, batch, ..] = u.dims();
        let natural: Tensor<4> = law.natural().inner().unsqueeze();
        let p = sigmoid(natural.clone()).expand(u.dims());
        let bits = |u: Tensor<4>| u.lower(p.clone()).float().cast(natural.dtype());
        let [z, twin] = [u.clone(), -u + 1.0].map(bits);
        let cost = objective.evaluate(z.clone(), law)?;
        let f = to_vec(cost.clone());
        let g = to_vec(objective.value(twin.clone(), law)?);
        let mut rises = vec![0.0; n * batch];
        for element in 0..batch {
            let all: Vec<f64> = (0..n).map(|k| f[k * batch + element]).collect();
            for k in 0..n {
                let mut other = all.clone();
                match self.config.mistake {
                    Mistake::LeftOut => {
                        other.remove(k);
                    }
                    _ => other[k] = g[k * batch + element],
                }
                rises[k * batch + element] = bound(&all) - bound(&other);
            }
        }
        let rises = tensor::<4>(rises, [n, batch, 1, 1], natural.dtype());
        let side = match self.config.mistake {
            Mistake::WrongSide => natural,
            _ => natural.abs(),
        };
        let gradient = rises * (z.clone() - twin) * sigmoid(side) * 0.5;
        let gradient: Tensor<3> = gradient.sum_dim(0).squeeze_dim(0);
        let scalar = (law.natural() * gradient).sum() * (1.0 / batch as f64);
        // The gradient of the bound itself at fixed draws.
        let n = n as f64;
        let least = cost.clone().inner().min_dim(0);
        let whole = (least.clone() - cost.clone()).exp().sum_dim(0).log();
        let whole = (least - whole + n.ln()).mean();
        Ok(Outcome {
            values: cost.inner(),
            surrogate: whole + scalar.clone() - scalar.inner(),
            samples: vec![z],
            lessons: Vec::new(),
        })
    }
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, mistake| Mutant {
        name,
        wrong,
        rejected_by: "statistical",
        subject: subject(mistake),
        twin: subject(Mistake::None),
    };
    vec![
        mutant(
            "local-disarm-wrong-side",
            "local DisARM's factor at the logit in the place of its absolute value",
            Mistake::WrongSide,
        ),
        mutant(
            "local-disarm-left-out",
            "the bound without a draw in the place of the bound with its twin",
            Mistake::LeftOut,
        ),
    ]
}
