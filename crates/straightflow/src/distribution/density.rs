//! Log-probabilities of counts as tensors.

use burn::tensor::Tensor;

use super::CountLaw;
use super::formulas::Formulas;
use crate::gradient::with_gradient;
use crate::ops::map_host;

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
    let by_parameter = with_score(formulas, natural, values, log_prob.clone());
    if !z.is_tracked() {
        return by_parameter;
    }
    let by_sample = with_gradient(z, log_prob.zeros_like(), move |z, _, grad| {
        let slope = map_host(constant.clone(), z, |natural, z| {
            count_law(formulas, natural).ln_pmf_slope(z)
        });
        slope * grad
    });
    by_parameter + by_sample
}

/// The log-probabilities of samples `z`, with the score as their gradient.
pub(super) fn with_score<F: Formulas>(
    formulas: F,
    natural: Tensor<3>,
    z: Tensor<4>,
    log_prob: Tensor<4>,
) -> Tensor<4> {
    with_gradient(natural, log_prob, move |natural, _, grad| {
        let score = formulas.score(natural.unsqueeze::<4>(), z.clone());
        (score * grad).sum_dim(0).squeeze_dim(0)
    })
}

fn count_law(formulas: impl Formulas, natural: f64) -> CountLaw {
    let law = formulas.count_law(natural);
    law.expect("a family of counts")
}
