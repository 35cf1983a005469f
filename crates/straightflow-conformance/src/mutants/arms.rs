//! Antithetic Bernoulli draws from a Dirichlet copula (ARMS), with the factor for the wrong side.
//!
//! With `d = e / sum e` of exponential `e`, the `u = (1 - d)^(n-1)` are uniform and negatively
//! dependent. Let `q = min(p, 1 - p)`. The draws are `b = 1{u < p}` for `p < 1/2`, else
//! `b = 1{1 - u < p}`, so that the rarer value is `u < q`. Two of them have it together with
//! probability `joint = max(2 q^(1/(n-1)) - 1, 0)^(n-1)`, and
//!
//! ```text
//! g = 1/(n-1) sum_k (f_k - mean f) (b_k - p) p (1 - p) / (q - joint)
//! ```
//!
//! in which `p` in the place of `q` is wrong by a factor for `p > 1/2` only.

use burn::tensor::{Tensor, activation::sigmoid};
use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, Outcome};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    WrongSide,
}

mutant! {
    Arms {}, samples = 3,
    id: "mutant-arms",
    families: &[FamilyKind::Bernoulli],
    bias: none,
    needs: [Value],
    price: [1, 0],
    noise: Uniform,
    layers: Unsupported,
    least: 2,
}

impl Estimator for Arms {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let exponential = -noise.get(0).log();
        let others = exponential.dims()[0] as f64 - 1.0;
        let share = exponential.clone() / exponential.sum_dim(0);
        let u = (-share + 1.0).powf_scalar(others);

        let natural: Tensor<4> = law.natural().inner().unsqueeze();
        let (p, not_p) = (sigmoid(natural.clone()), sigmoid(-natural));
        let common = p.clone().greater_elem(0.5).cast_float(&p);
        let rarer = p.clone().min_pair(not_p);
        let shape = u.dims();
        let rare = u.lower(rarer.clone().expand(shape)).cast_float(&p);
        // Where 1 is the common value, the rare one is 0.
        let common_each = common.expand(shape);
        let z = rare.clone() * (-common_each.clone() + 1.0) + (-rare + 1.0) * common_each;

        let side = match self.config.mistake {
            Mistake::None => rarer,
            Mistake::WrongSide => p.clone(),
        };
        let other = -side.clone() + 1.0;
        // p (1 - p) / (side - joint), divided through by `side`, which may be zero.
        let joint = (-side.clone().powf_scalar(-1.0 / others) + 2.0)
            .clamp_min(0.0)
            .powf_scalar(others);
        let factor = other / (-joint + 1.0);

        let cost = objective.evaluate(z.clone(), law)?;
        let values = cost.clone().inner();
        let spread: Tensor<4> = (values.clone() - values.mean_dim(0)).unsqueeze_dims(&[2, 3]);
        let by_natural = (spread * (z.clone() - p) * factor).sum_dim(0) / others;
        let batch = law.dims()[0] as f64;
        let scalar = (law.natural().unsqueeze::<4>() * by_natural).sum() / batch;
        Ok(Outcome::new(cost, scalar, z))
    }
}

/// A mask as numbers of the type of the parameters.
trait CastFloat {
    fn cast_float(self, like: &Tensor<4>) -> Tensor<4>;
}

impl CastFloat for Tensor<4, burn::tensor::Bool> {
    fn cast_float(self, like: &Tensor<4>) -> Tensor<4> {
        self.float().cast(like.dtype())
    }
}

pub fn mutants() -> Vec<Mutant> {
    vec![Mutant {
        name: "arms-wrong-side",
        wrong: "ARMS's factor with p in the place of min(p, 1 - p)",
        rejected_by: "statistical",
        subject: subject(Mistake::WrongSide),
        twin: subject(Mistake::None),
    }]
}
