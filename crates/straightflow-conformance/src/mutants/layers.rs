//! REINFORCE for several layers, without the score of the upper layer.

use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::FamilyKind;
use straightflow::estimator::{Estimator, NoiseSource, Outcome, Pass, Stacked};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    /// Only the lowest layer has a score.
    LowestOnly,
}

mutant! {
    Score {}, samples = 1,
    id: "mutant-layers",
    families: &[FamilyKind::Bernoulli, FamilyKind::Categorical],
    bias: none,
    needs: [Value],
    price: [1, 0],
    noise: Samples,
    layers: Own,
}

impl Estimator for Score {}

impl Stacked for Score {
    fn layers_outcome(&self, noise: &NoiseSource, objective: &CountedObjective) -> Result<Outcome> {
        let mut pass = Pass::hard(self, noise, objective)?;
        let cost = objective.evaluate_layers(&pass.z, &pass.laws)?;
        if self.config.mistake == Mistake::LowestOnly {
            pass.laws.truncate(1);
        }
        let score = (pass.log_prob() * cost.clone().inner()).mean();
        Ok(pass.outcome(cost, score))
    }
}

pub fn mutants() -> Vec<Mutant> {
    vec![Mutant {
        name: "layers-lowest-score-only",
        wrong: "the score of the lowest layer only, of two",
        rejected_by: "layers",
        subject: subject(Mistake::LowestOnly),
        twin: subject(Mistake::None),
    }]
}
