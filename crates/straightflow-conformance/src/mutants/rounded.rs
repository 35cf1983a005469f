//! Straight-through of stochastic rounding, with another rounding and with another gradient.

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
    Nearest,
    InSteps,
}

mutant! {
    RoundedSt {}, samples = 1,
    id: "mutant-rounded",
    families: &[FamilyKind::Rounded],
    bias: exact on "linear f",
    needs: [Gradient],
    price: [1, 1],
    noise: Samples,
    layers: Tape,
}

impl Estimator for RoundedSt {}

impl Pathwise for RoundedSt {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let Family::Rounded { step, .. } = law.family() else {
            unreachable!("the entry names no other family");
        };
        let mut z = noise.get(0);
        if self.config.mistake == Mistake::Nearest {
            let nearest = (law.natural().inner() / step).round() * step;
            z = nearest.unsqueeze::<4>().expand(z.dims());
        }
        let factor = match self.config.mistake {
            Mistake::InSteps => step,
            Mistake::None | Mistake::Nearest => 1.0,
        };
        custom_grad(law.natural(), z, Arc::new(Scaled(factor)))
    }
}

#[derive(Debug)]
struct Scaled(f64);

impl Rule for Scaled {
    fn backward(&self, _natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        dz.sum_dim(0).squeeze_dim(0) * self.0
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
            "rounded-nearest",
            "numbers are rounded to the nearest value, not at random",
            "expectation",
            Mistake::Nearest,
        ),
        mutant(
            "rounded-in-steps",
            "the gradient is that of a number in units of the step",
            "expectation",
            Mistake::InSteps,
        ),
    ]
}
