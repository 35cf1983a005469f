//! Debiased straight-through of bits with one flip, wrong in four ways.
//!
//! ```text
//! g_j = v_j (d_j f(z) + h_j) + 1[i = j] / pi_j (v_j (1 - 2 z_j) (f(flipped) - f(z)) - v_j (d_j f(z) + h_j))
//! ```
//!
//! with `v = p (1 - p)` and `i` chosen with probability `pi = v / sum v`. It is unbiased for every `h`
//! that does not know the draw and the choice.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};
use straightflow::Result;
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, Noise, NoiseSpec, Outcome};
use straightflow::objective::CountedObjective;

use super::Mutant;
use super::entry::mutant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    CurvatureFirst,
    Undivided,
    OtherGradient,
    BaseAfterFlip,
}

mutant! {
    DebiasedSt {}, samples = 1,
    id: "mutant-debiased-st",
    families: &[FamilyKind::Bernoulli],
    bias: none,
    needs: [Value, Gradient],
    price: [5, 3],
    noise: Samples,
    layers: Unsupported,
}

impl Estimator for DebiasedSt {
    fn noise(&self, law: &Law, n: usize) -> Vec<NoiseSpec> {
        let [_, batch, ..] = law.sample_dims(n);
        let samples = NoiseSpec::samples(law, n);
        vec![
            samples,
            NoiseSpec::uniform("choice", [n, batch, 1, 1]),
            samples,
        ]
    }

    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let (z, other) = (noise.get(0), noise.get(2));
        let v = law.constant().variance().unsqueeze::<4>();
        let total = v.clone().sum_dim(2);
        let end = (v.clone() / total.clone()).cumsum(2);
        let start = end.clone() - v.clone() / total.clone();
        let u = noise.get(1).expand(z.dims());
        let chosen = start.expand(z.dims()).lower_equal(u.clone());
        let chosen = chosen.bool_and(u.lower(end.expand(z.dims())));
        let chosen = chosen.float().cast(z.dtype());
        let sign = z.clone() * -2.0 + 1.0;
        let flipped = z.clone() + chosen.clone() * sign.clone();

        let (here, slope) = objective.value_and_gradient(z.clone(), law)?;
        let (there, after) = objective.value_and_gradient(flipped, law)?;
        let (_, elsewhere) = objective.value_and_gradient(other, law)?;
        // Only to be paid for like the correct one.
        objective.value(z.clone(), law)?;
        let cost = objective.evaluate(z.clone(), law)?;

        let difference = (there - here).unsqueeze_dims::<4>(&[2, 3]) * sign;
        let base = match self.config.mistake {
            Mistake::BaseAfterFlip => after,
            _ => slope.clone(),
        };
        let taken = match self.config.mistake {
            Mistake::OtherGradient => elsewhere,
            _ => slope.clone(),
        };
        let curvature = match self.config.mistake {
            Mistake::CurvatureFirst => (difference.clone() - slope) * 0.5 * chosen.clone(),
            _ => z.zeros_like(),
        };
        let factor = match self.config.mistake {
            Mistake::Undivided => v.clone().expand(z.dims()),
            _ => total.expand(z.dims()),
        };
        let gradient =
            v * (base + curvature.clone()) + chosen * factor * (difference - taken - curvature);
        let [n, batch, ..] = z.dims();
        let gradient: Tensor<3> = gradient.sum_dim(0).squeeze_dim(0);
        let carrier = (law.natural() * gradient).sum() * (1.0 / (n * batch) as f64);
        Ok(Outcome::new(cost, carrier, z))
    }
}

pub fn mutants() -> Vec<Mutant> {
    let mutant = |name, wrong, rejected_by, mistake| Mutant {
        name,
        wrong,
        rejected_by,
        subject: subject(mistake),
        twin: subject(Mistake::None),
    };
    let mut other = mutant(
        "debiased-other-gradient",
        "the correction takes off the gradient at another draw than the base has (still unbiased)",
        "variance",
        Mistake::OtherGradient,
    );
    // The only bit of a problem is chosen in any case, and its difference does not depend on the draw.
    other.subject.variance = Some(|problem| vec![0.0; problem.natural.len()]);
    vec![
        mutant(
            "debiased-curvature-first",
            "debiased straight-through with a curvature that has seen the draw it is used for",
            "statistical",
            Mistake::CurvatureFirst,
        ),
        mutant(
            "debiased-undivided",
            "the correction is not divided by the probability of choosing its coordinate",
            "statistical",
            Mistake::Undivided,
        ),
        other,
        mutant(
            "debiased-base-after-flip",
            "the base differentiates the cost at the flipped sample",
            "expectation",
            Mistake::BaseAfterFlip,
        ),
    ]
}
