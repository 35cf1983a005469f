//! Straight-through of subsets, as if their items were independent.

use std::sync::Arc;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use straightflow::distribution::{Family, FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, NoiseSpec, Pathwise, Reduction};
use straightflow::{Rule, custom_grad};

use super::Mutant;
use super::entry::mutant;
use crate::subject::{Subject, Target};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    Diagonal,
    IndependentBits,
}

mutant! {
    SubsetSt {}, samples = 1,
    id: "mutant-subset",
    families: &[FamilyKind::Subset],
    bias: exact on "linear f",
    needs: [Gradient],
    price: [1, 1],
    noise: Samples,
    layers: Tape,
}

impl Estimator for SubsetSt {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        match self.config.mistake {
            Mistake::IndependentBits => vec![NoiseSpec::uniform("items", law.sample_dims(n))],
            Mistake::None | Mistake::Diagonal => vec![NoiseSpec::samples(law, n)],
        }
    }
}

impl Pathwise for SubsetSt {
    fn attach(&self, noise: &Noise, law: &Law, _reduction: Reduction) -> Tensor<4> {
        let mut z = noise.get(0);
        if self.config.mistake == Mistake::IndependentBits {
            let mean = law.constant().mean().unsqueeze::<4>().expand(z.dims());
            z = z.clone().lower(mean).float().cast(z.dtype());
        }
        let rule = Items {
            family: law.family(),
            diagonal: self.config.mistake == Mistake::Diagonal,
        };
        custom_grad(law.natural(), z, Arc::new(rule))
    }
}

#[derive(Debug)]
struct Items {
    family: Family,
    diagonal: bool,
}

impl Rule for Items {
    fn backward(&self, natural: Tensor<3>, _z: Tensor<4>, dz: Tensor<4>) -> Tensor<3> {
        let law = Law::new(self.family, natural).expect("the parent is a law's parameter");
        let dz: Tensor<3> = dz.sum_dim(0).squeeze_dim(0);
        match self.diagonal {
            true => law.variance() * dz,
            false => law.chain(dz),
        }
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
            "subset-diagonal",
            "straight-through of a subset with the variances of its items alone, without covariances",
            "expectation",
            Mistake::Diagonal,
        ),
        mutant(
            "subset-independent-bits",
            "independent bits with the means of the items, so that their number varies",
            "statistical",
            Mistake::IndependentBits,
        ),
    ]
}
