//! Relaxed top-k of other keys, and without taking out what was taken.

use burn::tensor::{Tensor, activation::softmax};
use serde::{Deserialize, Serialize};
use serde_json::json;
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, Pathwise, Reduction};

use super::Mutant;
use super::entry::mutant;
use crate::subject::{Subject, Target};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    Means,
    NotTakenOut,
}

mutant! {
    TopK {}, samples = 1,
    id: "mutant-relaxed-top-k",
    families: &[FamilyKind::Subset],
    bias: exact on "constant f",
    needs: [Gradient],
    price: [1, 1],
    noise: Uniform,
    layers: Tape,
}

impl Estimator for TopK {
    fn hard_samples(&self) -> bool {
        false
    }
}

impl Pathwise for TopK {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let Family::Subset { size } = law.family() else {
            unreachable!("the entry names no other family");
        };
        let natural = match self.config.mistake {
            Mistake::Means => (law.mean() + 1e-30).log(),
            Mistake::None | Mistake::NotTakenOut => law.natural(),
        };
        let mut keys = natural.unsqueeze::<4>() - (-noise.get(0).log()).log();
        let mut taken = keys.clone() * 0.0;
        for _ in 0..size {
            let share = softmax(keys.clone() * 2.0, 3);
            taken = taken + share.clone();
            if self.config.mistake != Mistake::NotTakenOut {
                keys = keys + (-share + 1.0).clamp_min(1e-38).log();
            }
        }
        taken
    }
}

fn aimed(mistake: Mistake) -> Subject {
    let mut subject = subject(mistake);
    subject.target = Target::Reference {
        id: "relaxed-top-k",
        config: json!({ "temperature": "0.5" }),
    };
    subject
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, mistake| Mutant {
        name,
        wrong,
        rejected_by: "statistical",
        subject: aimed(mistake),
        twin: aimed(Mistake::None),
    };
    vec![
        mutant(
            "top-k-of-means",
            "relaxed top-k with the logarithms of the means in the place of the logits",
            Mistake::Means,
        ),
        mutant(
            "top-k-not-taken-out",
            "relaxed top-k whose softmaxes are all the same",
            Mistake::NotTakenOut,
        ),
    ]
}
