//! The score-function estimator with a leave-one-out baseline, wrong in two ways.
//!
//! ```text
//! g = 1/n sum_i (f_i - b_i) s_i,  b_i = mean of f_j over j != i
//! ```
//!
//! A baseline that includes the draw's own cost shrinks the gradient by `1 - 1/n`. Equal draws have
//! equal costs, so nothing is left.

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
    OwnSampleInBaseline,
    KeyReused,
}

mutant! {
    Reinforce {}, samples = 2,
    id: "mutant-reinforce",
    families: FamilyKind::WITH_SCORE,
    bias: none,
    needs: [Value],
    price: [1, 0],
    noise: Samples,
    layers: Unsupported,
    least: 2,
}

impl Estimator for Reinforce {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let mut z = noise.get(0);
        if self.config.mistake == Mistake::KeyReused {
            // What two draws from one key are.
            let shape = z.dims();
            z = z.narrow(0, 0, 1).expand(shape);
        }
        let cost = objective.evaluate(z.clone(), law)?;
        let values = cost.clone().inner();
        let n = values.dims()[0] as f64;
        let total = values.clone().sum_dim(0);
        let baseline = match self.config.mistake {
            Mistake::OwnSampleInBaseline => total / n,
            Mistake::None | Mistake::KeyReused => (total - values.clone()) / (n - 1.0),
        };
        let score = (law.log_prob(z.clone()) * (values - baseline)).mean();
        Ok(Outcome::new(cost, score, z))
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
            "baseline-with-own-sample",
            "the mean of all draws as the baseline of each",
            Mistake::OwnSampleInBaseline,
        ),
        mutant(
            "key-reused",
            "two draws from one key, so that they are equal",
            Mistake::KeyReused,
        ),
    ]
}
