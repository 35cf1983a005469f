//! Straight-through with a wrong factor, and with one element's noise for the whole batch.

use std::sync::Arc;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, Pathwise, Reduction};
use straightflow::{Rule, custom_grad};

use super::Mutant;
use super::entry::mutant;
use crate::subject::{Subject, Target};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    SignFlipped,
    FactorTwo,
    SharedNoise,
}

mutant! {
    StraightThrough {}, samples = 1,
    id: "mutant-straight-through",
    families: FamilyKind::ALL,
    bias: exact on "linear f",
    needs: [Gradient],
    price: [1, 1],
    noise: Samples,
    layers: Tape,
}

impl Estimator for StraightThrough {}

impl Pathwise for StraightThrough {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let mut z = noise.get(0);
        if self.config.mistake == Mistake::SharedNoise {
            let shape = z.dims();
            z = z.narrow(1, 0, 1).expand(shape);
        }
        let factor = match self.config.mistake {
            Mistake::SignFlipped => -1.0,
            Mistake::FactorTwo => 2.0,
            Mistake::None | Mistake::SharedNoise => 1.0,
        };
        let family = law.family();
        custom_grad(law.natural(), z, Arc::new(Scaled { family, factor }))
    }
}

#[derive(Debug)]
struct Scaled {
    family: Family,
    factor: f64,
}

impl Rule for Scaled {
    fn backward(&self, natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        let law = Law::new(self.family, natural).expect("the parent is a law's parameter");
        law.chain(dz.sum_dim(0).squeeze_dim(0)) * self.factor
    }
}

fn aimed(mistake: Mistake) -> Subject {
    let mut subject = subject(mistake);
    subject.target = Target::Reference {
        id: "straight-through",
        config: serde_json::Value::Null,
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
        mutant(
            "sign-flipped",
            "straight-through with the opposite sign",
            "expectation",
            Mistake::SignFlipped,
        ),
        mutant(
            "factor-two",
            "straight-through times two",
            "expectation",
            Mistake::FactorTwo,
        ),
        mutant(
            "shared-noise",
            "every batch element gets the draws of the first, as if keyed alike",
            "batch",
            Mistake::SharedNoise,
        ),
    ]
}
