//! What a burn model holds: parameters of any rank, samplers, streams of keys, and layers with weights from a key.

mod init;
mod keys;
mod ranks;
mod sampler;
#[path = "../library/support.rs"]
#[allow(dead_code)]
mod support;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

/// All numbers of a module, without the identities of its parameters.
fn numbers(module: &impl Module) -> Vec<f64> {
    struct Numbers(Vec<f64>);

    impl ModuleVisitor for Numbers {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(support::values(param.val()));
        }
    }

    let mut all = Numbers(Vec::new());
    module.visit(&mut all);
    all.0
}
