//! The projected flow of a Bernoulli variable, raw, with a fixed step and without the control
//! variate, as the paper prints it (`docs/paper-errata.md`, entries 1 and 2).
//!
//! With `y = z - eps f'(z)` and `K(d) = exp(-d^2 / (2 h^2))`, the gradient of the discrepancy with
//! respect to `p` is
//!
//! ```text
//! holds:    2 [(2p - 1)(1 - K(1)) - mean (K(1 - y) - K(0 - y))]
//! printed:  2 [(1 - 2p)(1 - K(1)) - mean (K(1 - y_i) - K(1 - y_j))]
//! ```

use burn::tensor::{Tensor, activation::sigmoid};
use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, Outcome};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;
use crate::subject::{Subject, Target};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    /// Both slips of the appendix.
    PrintedGradient,
    /// Only `1 - 2p` for `2p - 1`.
    PrintedSelfTerm,
    /// `z + eps f'(z)`, as in the main text.
    PrintedMove,
}

mutant! {
    PaperMmd {}, samples = 1,
    id: "mutant-paper-mmd",
    families: &[FamilyKind::Bernoulli],
    bias: exact on "nothing: it is raw",
    needs: [Gradient],
    price: [1, 1],
    noise: Samples,
    layers: Unsupported,
}

/// The step and the bandwidth.
const STEP: f64 = 1.0;
const BANDWIDTH: f64 = 1.0;

impl Estimator for PaperMmd {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let z = noise.get(0);
        let (values, slope) = objective.value_and_gradient(z.clone(), law)?;
        let step = match self.config.mistake {
            Mistake::PrintedMove => -STEP,
            _ => STEP,
        };
        let y = z.clone() - slope * step;
        let kernel = |centre: f64| ((y.clone() - centre).square() * -0.5 / BANDWIDTH.powi(2)).exp();
        let cross = match self.config.mistake {
            // With the same centre twice, no sample is left in the mean over all pairs.
            Mistake::PrintedGradient => kernel(1.0).zeros_like(),
            _ => kernel(1.0) - kernel(0.0),
        };
        let p: Tensor<4> = sigmoid(law.natural()).inner().unsqueeze();
        let sign = match self.config.mistake {
            Mistake::PrintedGradient | Mistake::PrintedSelfTerm => -1.0,
            Mistake::None | Mistake::PrintedMove => 1.0,
        };
        let own = (p * 2.0 - 1.0) * sign * (1.0 - (-0.5 / BANDWIDTH.powi(2)).exp());
        let by_p = ((own - cross) * 2.0).mean_dim(0);
        let batch = law.dims()[0] as f64;
        // A scalar whose gradient with respect to p is the discrepancy's.
        let scalar = (law.mean().unsqueeze::<4>() * by_p).sum() / batch;
        Ok(Outcome::new(values, scalar, z))
    }
}

/// The reference of the flow is written for every family; this is its configuration here.
fn aimed(mistake: Mistake) -> Subject {
    let mut subject = subject(mistake);
    let config = serde_json::json!({
        "bandwidth": BANDWIDTH.to_string(), "cv": false, "gain": "raw", "kernel": "rbf",
        "projection": "mmd", "step": format!("fixed({STEP})"),
    });
    subject.target = Target::Reference { id: "pwgf", config };
    subject
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, mistake| Mutant {
        name,
        wrong,
        rejected_by: "expectation",
        subject: aimed(mistake),
        twin: aimed(Mistake::None),
    };
    vec![
        mutant(
            "printed-mmd-gradient",
            "the Bernoulli gradient as the paper's appendix prints it, with both slips",
            Mistake::PrintedGradient,
        ),
        mutant(
            "printed-mmd-self-term",
            "only the first slip of the appendix, 1 - 2p for 2p - 1",
            Mistake::PrintedSelfTerm,
        ),
        mutant(
            "printed-move",
            "samples moved to z + eps f' as in the paper's main text",
            Mistake::PrintedMove,
        ),
    ]
}
