//! RELAX with the control variate `c(z) = w (sum_i tanh z_i + sum x)` of a learned number `w` and a
//! conditioning input `x`, wrong in two ways.

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData, activation::sigmoid};
use serde::{Deserialize, Serialize};
use straightflow::distribution::{FamilyKind, Law};
use straightflow::estimator::{Estimator, LayerState, Noise, Outcome, State, StateShape};
use straightflow::objective::CountedObjective;
use straightflow::{Error, Key, Result};

use super::Mutant;
use super::entry::mutant;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mistake {
    #[default]
    None,
    /// The conditioning input is not stopped.
    Input,
    /// The parameters are not stopped in the variance that the state learns.
    Variance,
}

mutant! {
    Relax { attached: Option<(LayerState, Option<Tensor<2>>)> }, samples = 1,
    id: "mutant-relax",
    families: &[FamilyKind::Bernoulli],
    bias: none,
    needs: [Value],
    price: [1, 0],
    noise: Uniform,
    layers: Unsupported,
    learns: own,
}

impl Relax {
    fn with_state(&self, state: &State, input: Option<Tensor<2>>) -> Result<Self> {
        Ok(Self {
            config: self.config.clone(),
            attached: state.layers.first().map(|layer| (layer.clone(), input)),
        })
    }
}

impl Estimator for Relax {
    fn outcome(&self, noise: &Noise, law: &Law, objective: &CountedObjective) -> Result<Outcome> {
        let missing = Error::MissingState {
            estimator: ENTRY.id,
        };
        let (state, input) = self.attached.as_ref().ok_or(missing)?;
        let w = state.coefficients.as_ref().expect("a number").val();
        let u = noise.get(0);
        let shape = u.dims();
        let phi: Tensor<4> = law.natural().inner().unsqueeze::<4>().expand(shape);
        let z = phi.clone() + u.clone().log() - (-u.clone() + 1.0).log();
        let b = z.clone().greater_elem(0.0).float().cast(phi.dtype());
        let rest = -b.clone() + 1.0;
        // 1 - dz~/dphi, given b.
        let residual = b.clone() * sigmoid(-phi.clone()) / u.clone()
            + rest * sigmoid(phi.clone()) / (-u + 1.0);
        let bend = z.clone().tanh();
        let slope = -bend.clone().square() + 1.0;
        let sum = bend.sum_dims(&[2, 3]).squeeze_dims::<2>(&[2, 3]);
        let sum = match input {
            Some(x) => {
                let x = match self.config.mistake {
                    Mistake::Input => x.clone(),
                    _ => x.clone().inner(),
                };
                sum + x.sum_dim(1).transpose()
            }
            None => sum,
        };
        let cost = objective.evaluate(b.clone(), law)?;
        let values = cost.clone().inner();
        // Of the model: w is a number; of the state: everything else is.
        let model = values.clone() - sum.clone() * w.clone().inner().unsqueeze::<2>();
        let model = match self.config.mistake {
            Mistake::Input => model,
            _ => model.inner(),
        };
        let correction = slope * residual;
        let by_natural = correction.clone() * w.clone().inner().unsqueeze::<4>();
        let batch = (shape[0] * shape[1]) as f64;
        let along = by_natural.sum_dim(0).squeeze_dim::<3>(0) * batch.recip();
        let score = (law.log_prob(b.clone()) * model).mean();
        let learned = values - sum.inner() * w.clone().unsqueeze::<2>();
        let natural = match self.config.mistake {
            Mistake::Variance => law.natural(),
            _ => law.natural().inner(),
        };
        let each = learned.unsqueeze_dims::<4>(&[2, 3])
            * (b.clone() - sigmoid(natural.unsqueeze::<4>()))
            + correction * w.unsqueeze::<4>();
        let scalar = score + (law.natural() * along).sum() + each.square().mean();
        Ok(Outcome::new(cost, scalar, b))
    }

    fn init_layer(&self, _key: Key, shape: StateShape, device: &Device) -> Option<LayerState> {
        let mut state = LayerState::default();
        let number = TensorData::new(vec![0.8], [1]);
        let number = Tensor::from_data(number, (device, shape.dtype));
        state.coefficients = Some(Param::from_tensor(number));
        Some(state)
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
    vec![
        mutant(
            "relax-leak-variance",
            "the variance that RELAX's control variate learns from flows into the logits",
            "expectation",
            Mistake::Variance,
        ),
        mutant(
            "relax-leak-input",
            "RELAX's control variate flows past the logits into what made its conditioning input",
            "state",
            Mistake::Input,
        ),
    ]
}
