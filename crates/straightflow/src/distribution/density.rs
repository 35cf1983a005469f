//! Log-probabilities of counts as tensors.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::CountLaw;
use super::formulas::Formulas;
use crate::ops::{Rule, custom_grad, map_host};

/// Single precision loses all digits of `z ln m - m - ln z!` at large rates, so the value comes
/// from the host in double precision and the derivatives from rules.
pub(super) fn log_prob_of_counts<F: Formulas>(
    formulas: F,
    natural: Tensor<3>,
    z: Tensor<4>,
) -> Tensor<4> {
    let constant = natural.clone().inner();
    let values = z.clone().inner();
    let log_prob = map_host(constant.clone(), values.clone(), |natural, z| {
        count_law(formulas, natural).ln_pmf(z)
    });
    let score = ScoreRule {
        formulas,
        z: values,
    };
    let by_parameter = custom_grad(natural, log_prob.clone(), Arc::new(score));
    if !z.is_tracked() {
        return by_parameter;
    }
    let slope = SlopeRule {
        formulas,
        natural: constant,
    };
    by_parameter + custom_grad(z, log_prob.zeros_like(), Arc::new(slope))
}

fn count_law(formulas: impl Formulas, natural: f64) -> CountLaw {
    let law = formulas.count_law(natural);
    law.expect("a family of counts")
}

/// `d log q(z) / d natural` for counts.
#[derive(Debug)]
struct ScoreRule<F> {
    formulas: F,
    z: Tensor<4>,
}

impl<F: Formulas> Rule for ScoreRule<F> {
    fn backward(&self, natural: Tensor<3>, _log_prob: Tensor<4>, grad: Tensor<4>) -> Tensor<3> {
        let score = self
            .formulas
            .score(natural.unsqueeze::<4>(), self.z.clone());
        (score * grad).sum_dim(0).squeeze_dim(0)
    }
}

/// `d log q(z) / d z` for relaxed counts.
#[derive(Debug)]
struct SlopeRule<F> {
    formulas: F,
    natural: Tensor<3>,
}

impl<F: Formulas> Rule<4, 4> for SlopeRule<F> {
    fn backward(&self, z: Tensor<4>, _zeros: Tensor<4>, grad: Tensor<4>) -> Tensor<4> {
        let slope = map_host(self.natural.clone(), z, |natural, z| {
            count_law(self.formulas, natural).ln_pmf_slope(z)
        });
        slope * grad
    }
}
