//! REINFORCE for chains, without the score of the upper layer.

use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{
    Bias, Entry, Estimator, Need, NoiseSource, NoiseSpec, Outcome, Pass, Price, Stacked, Stacking,
};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::{about, mutant, mutant_methods};

static ENTRY: Entry = Entry::new::<Config>(about(
    "mutant-chain",
    &[FamilyKind::Bernoulli, FamilyKind::Categorical],
    Bias::Unbiased,
    &[Need::Value],
));

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    /// Only the lowest layer has a score.
    LowestOnly,
}

mutant!(Score, Config, Mistake, ENTRY, samples = 1, least = 1);

impl Estimator for Score {
    mutant_methods!(ENTRY, least = 1);

    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        vec![NoiseSpec::samples(law, n)]
    }

    fn price(&self, _law: &Law, n: usize) -> Price {
        Price {
            evaluations: n,
            gradients: 0,
        }
    }

    fn stacking(&self) -> Stacking<'_> {
        Stacking::Own(self)
    }
}

impl Stacked for Score {
    fn stacked_outcome(
        &self,
        noise: &NoiseSource,
        objective: &CountedObjective,
    ) -> Result<Outcome> {
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
        name: "chain-lowest-score-only",
        wrong: "the score of the lowest layer only, in a chain of two",
        rejected_by: "chain",
        subject: subject(Mistake::LowestOnly),
        twin: subject(Mistake::None),
    }]
}
