//! The negative evidence lower bound, written once for all architectures, families and estimators.

use std::cell::OnceCell;

use burn::module::Module;
use burn::tensor::Tensor;
use straightflow::distribution::Law;
use straightflow::estimator::{Estimator, layers_log_prob};
use straightflow::fused::bernoulli_log_prob;
use straightflow::objective::{Objective, ObjectiveKind};

use super::config::Direct;
use super::input::Input;
use super::model::Vae;

/// What fits an estimator: the direct term is zero in expectation, and only noise, if the cost is
/// evaluated at hard samples and averaged.
pub(super) fn fitting(estimator: &dyn Estimator) -> Direct {
    let averaged = estimator.entry().objective == ObjectiveKind::Expectation;
    match averaged && estimator.hard_samples() {
        true => Direct::Dropped,
        false => Direct::Kept,
    }
}

/// A batch of images and the model that explains them: the cost
/// `f(z) = log q(z | x) - log p(z) - log p(x | z)`.
#[derive(Debug)]
pub struct Elbo<'a> {
    model: &'a Vae,
    /// The model with constant parameters, once somebody asks for it.
    frozen: OnceCell<Vae>,
    /// Binary images `[batch, pixels]`.
    x: Tensor<2>,
    /// The same as the encoder sees them.
    input: Input,
    direct: Direct,
    kind: ObjectiveKind,
}

impl<'a> Elbo<'a> {
    /// The cost of binary images `[batch, pixels]`, which the encoder sees as `input`.
    pub fn new(model: &'a Vae, x: Tensor<2>, input: impl Into<Input>, direct: Direct) -> Self {
        Self {
            model,
            frozen: OnceCell::new(),
            x,
            input: input.into(),
            direct,
            kind: ObjectiveKind::Expectation,
        }
    }

    /// The same cost for another kind of objective.
    #[must_use]
    pub fn of_kind(mut self, kind: ObjectiveKind) -> Self {
        self.kind = kind;
        self
    }

    /// What the encoder sees of the images, `[batch, pixels]`.
    pub fn input(&self) -> Tensor<2> {
        self.input.tensor()
    }

    /// The cost `[n, batch]` of samples `[n, batch, d, k]` of all layers.
    fn negative(&self, model: &Vae, direct: Direct, z: &[Tensor<4>], q: &[Law]) -> Tensor<2> {
        let [n, batch, ..] = z[0].dims();
        let log_q = match direct {
            Direct::Kept => layers_log_prob(q, z),
            // Also what the samples below contribute through the laws above: at hard samples its
            // expected gradient is zero as well, for rules that are linear in it.
            Direct::Dropped => {
                let q: Vec<Law> = q.iter().map(Law::constant).collect();
                layers_log_prob(&q, z)
            }
        };
        let log_prior = model.log_prior(z).expect("laws of the model's own shape");
        let log_likelihood = bernoulli_log_prob(model.pixels(z[0].clone()), self.x.clone());
        log_q - log_prior - log_likelihood.reshape([n, batch])
    }

    fn frozen(&self) -> &Vae {
        self.frozen.get_or_init(|| self.model.valid())
    }
}

// A frozen cost is asked for on the side, by control variates that need the true gradient with
// respect to the samples, also between the hard ones. So nothing is dropped there: what is to be
// constant is passed as a constant.
impl Objective<Law> for Elbo<'_> {
    fn layers(&self) -> usize {
        self.model.layers()
    }

    fn layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        self.model.posterior(&self.input, below)
    }

    fn frozen_layer(&self, below: &[Tensor<4>]) -> straightflow::Result<Law> {
        self.frozen().posterior(&self.input, below)
    }

    fn cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
        Ok(self.negative(self.model, self.direct, z, q))
    }

    fn kind(&self) -> ObjectiveKind {
        self.kind
    }

    fn frozen_cost(&self, z: &[Tensor<4>], q: &[Law]) -> straightflow::Result<Tensor<2>> {
        Ok(self.negative(self.frozen(), Direct::Kept, z, q))
    }
}
