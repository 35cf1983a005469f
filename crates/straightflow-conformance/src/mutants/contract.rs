//! Straight-through that computes the right thing and breaks a promise of the interface: one
//! mutant for each check that the wrong formulas do not reach.

use std::sync::Arc;

use burn::tensor::{DType, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{
    Described, Entry, Estimator, Noise, Outcome, Pathwise, Price, Reduction, Stacking,
};
use straightflow::objective::CountedObjective;
use straightflow::{Result, Rule, custom_grad};

use super::Mutant;
use super::entry::mutant;
use crate::subject::{Subject, Target};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    Unchecked,
    Underpriced,
    OtherDropIn,
    DividesByZero,
    ThreadDependent,
}

mutant! {
    Contract {}, samples = 2,
    id: "mutant-contract",
    families: FamilyKind::ALL,
    bias: exact on "linear f",
    needs: [Gradient],
    price: [1, 1],
    noise: Samples,
    layers: Tape,
}

impl Estimator for Contract {
    fn check(&self, law: &Law, n: usize) -> Result<()> {
        if self.config.mistake == Mistake::Unchecked {
            return Ok(());
        }
        ENTRY.need_samples(n, 1)?;
        law.validate()
    }

    fn price(&self, _law: &Law, n: usize) -> Price {
        let gradients = match self.config.mistake {
            Mistake::Underpriced => 0,
            _ => n,
        };
        Price {
            evaluations: n,
            gradients,
        }
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let z = self.tied(noise, law, 1.0);
        let cost = objective.evaluate(z.clone(), law)?;
        Ok(Outcome {
            values: cost.clone().inner(),
            surrogate: cost.mean(),
            samples: vec![z.inner()],
            lessons: Vec::new(),
        })
    }
}

impl Pathwise for Contract {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let factor = match self.config.mistake {
            Mistake::OtherDropIn => 2.0,
            _ => 1.0,
        };
        self.tied(noise, law, factor)
    }
}

impl Contract {
    fn tied(&self, noise: &Noise, law: &Law, factor: f64) -> Tensor<4> {
        let rule = Tied {
            family: law.family(),
            factor,
            mistake: self.config.mistake,
        };
        custom_grad(law.natural(), noise.get(0), Arc::new(rule))
    }
}

#[derive(Debug)]
struct Tied {
    family: Family,
    factor: f64,
    mistake: Mistake,
}

impl Rule for Tied {
    fn backward(&self, natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        let law = Law::new(self.family, natural).expect("the parent is a law's parameter");
        let gradient = law.chain(dz.sum_dim(0).squeeze_dim(0)) * self.factor;
        match self.mistake {
            // A weight that was not multiplied by the chain factor on paper.
            Mistake::DividesByZero => {
                let variance = law.variance();
                gradient * variance.clone() / variance
            }
            // A sum whose order depends on the number of threads differs in the last bits.
            Mistake::ThreadDependent if gradient.dtype() == DType::F32 => {
                gradient * (1.0 + 2.4e-7 * rayon::current_num_threads() as f64)
            }
            _ => gradient,
        }
    }
}

/// Records one draw, whatever it takes.
#[derive(Clone, Debug)]
struct Forgetful(Contract);

impl Described for Forgetful {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn config(&self) -> Value {
        let config = self.0.config.clone();
        ENTRY.record(&Config {
            samples: 1,
            ..config
        })
    }

    fn draws(&self) -> usize {
        self.0.draws()
    }

    fn stacking(&self) -> Stacking<'_> {
        self.0.stacking()
    }

    fn at_step(&self, step: u64) -> Result<Box<dyn Estimator>> {
        self.0.at_step(step)
    }
}

impl Estimator for Forgetful {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        self.0.outcome(noise, law, objective)
    }
}

fn aimed(mistake: Mistake) -> Subject {
    aim(subject(mistake))
}

fn aim(mut subject: Subject) -> Subject {
    subject.target = Target::Reference {
        id: "straight-through",
        config: Value::Null,
    };
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
        Mutant {
            name: "forgets-samples",
            wrong: "the record of the configuration leaves the number of draws out",
            rejected_by: "spec",
            subject: aim(Subject::new(|| Box::new(Forgetful(Contract::default())))),
            twin: aimed(Mistake::None),
        },
        mutant(
            "unchecked",
            "no draw at all is accepted",
            "errors",
            Mistake::Unchecked,
        ),
        mutant(
            "underpriced",
            "backward passes that are not declared",
            "cost",
            Mistake::Underpriced,
        ),
        mutant(
            "other-drop-in",
            "the drop-in's gradient is twice that of the estimate",
            "drop-in",
            Mistake::OtherDropIn,
        ),
        mutant(
            "divides-by-zero",
            "a factor that is 0 / 0 at the ends of the parameter range",
            "extremes",
            Mistake::DividesByZero,
        ),
        mutant(
            "thread-dependent",
            "the last bits depend on the number of threads",
            "determinism",
            Mistake::ThreadDependent,
        ),
    ]
}
