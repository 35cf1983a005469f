//! Leave-one-out REINFORCE with control variates from a Stein operator (RODEO), wrong in two ways.
//!
//! ```text
//! g = 1/n sum_k (f_k - f_j - (A h_j)(b_j)) (b_k - p) + A[H_k(.)(. - p)](b_k),  j the other of two
//! (A h)(b) = 1/d sum_i q_i [h(b flipped at i) - h(b)]
//! ```
//!
//! The operator takes the mean of every function `h` off, if `q_i` is the probability of the other
//! bit and if `h` does not know the draw that it is applied to. The functions here are fixed ones of
//! the other draw's linear prediction.

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
    EvenFlips,
    OwnPrediction,
}

mutant! {
    Rodeo {}, samples = 2,
    id: "mutant-rodeo",
    families: &[FamilyKind::Bernoulli],
    bias: none,
    needs: [Value, Gradient],
    price: [2, 1],
    noise: Samples,
    layers: Unsupported,
    least: 2,
}

impl Estimator for Rodeo {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let z = noise.get(0);
        let [_, batch, d, _] = z.dims();
        let (values, slope) = objective.value_and_gradient(z.clone(), law)?;
        let values: Tensor<4> = values.unsqueeze_dims(&[2, 3]);
        let natural: Tensor<4> = law.natural().inner().unsqueeze();
        let p = sigmoid(natural.clone());
        let sign = z.clone() * -2.0 + 1.0;
        let flip = match self.config.mistake {
            Mistake::EvenFlips => z.zeros_like() + 0.5,
            _ => sigmoid(natural * sign.clone()),
        };
        // With two draws the other one is that from the other end.
        let other = |x: Tensor<4>| x.flip([0]);
        let (seen_slope, seen) = match self.config.mistake {
            Mistake::OwnPrediction => (slope.clone(), z.clone()),
            _ => (other(slope), other(z.clone())),
        };
        let here = (seen_slope.clone() * (z.clone() - seen)).sum_dim(2);
        let there = seen_slope * sign.clone() + here.clone();
        let h = |x: Tensor<4>| x.clone() * 0.7 + x.sin() * 0.3;
        let big = |x: Tensor<4>| (x * 0.8 + 0.5).tanh() * 0.6;
        let operator = |f: &dyn Fn(Tensor<4>) -> Tensor<4>| {
            (flip.clone() * (f(there.clone()) - f(here.clone()))).sum_dim(2) * (1.0 / d as f64)
        };
        let control = operator(&h);
        let advantage = values.clone() - other(values) - other(control);
        let moved = flip.clone() * big(there.clone()) * sign * (1.0 / d as f64);
        let each = (advantage + operator(&big)) * (z.clone() - p) + moved;
        let cost = objective.evaluate(z.clone(), law)?;
        let gradient: Tensor<3> = each.sum_dim(0).squeeze_dim(0) * 0.5;
        let scalar = (law.natural() * gradient).sum() * (1.0 / batch as f64);
        Ok(Outcome::new(cost, scalar, z))
    }
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, mistake| Mutant {
        name,
        wrong,
        rejected_by: "expectation",
        subject: subject(mistake),
        twin: subject(Mistake::None),
    };
    vec![
        mutant(
            "rodeo-even-flips",
            "RODEO's operator with flips of probability 1/2",
            Mistake::EvenFlips,
        ),
        mutant(
            "rodeo-own-prediction",
            "RODEO's control functions see the draw that they are applied to",
            Mistake::OwnPrediction,
        ),
    ]
}
