//! The weights of burn layers from a key.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Tensor, TensorData};
use rand_distr::{Distribution as _, StandardNormal};

use super::Key;
use crate::ops::{leaf_like, to_host};

impl Key {
    /// The same module with weights from the key, so that a run is reproducible. burn's own
    /// initialisers draw from a generator of the whole process.
    ///
    /// Weights and biases are uniform on `±1/√inputs` of a unit, as those of burn's
    /// linear and convolutional layers are by default; embeddings are standard normal. Parameters
    /// that start as constants (zeros, the ones of a normalisation, numbers alone that are neither
    /// weight nor bias) stay as they are, and so does what a
    /// [`Sampler`](crate::estimator::Sampler) learns, which has its weights from a key already.
    ///
    /// ```
    /// use burn::nn::LinearConfig;
    /// use burn::tensor::Device;
    /// use straightflow::prelude::*;
    ///
    /// let device = Device::flex();
    /// let layer = || Key::new(1).init(LinearConfig::new(3, 2).init(&device));
    /// assert_eq!(layer().weight.val().to_data(), layer().weight.val().to_data());
    /// ```
    pub fn init<M: Module>(self, module: M) -> M {
        module.map(&mut Redraw {
            key: self,
            next: 0,
            path: Vec::new(),
            inputs: None,
        })
    }
}

struct Redraw {
    key: Key,
    next: u64,
    /// The fields on the way to a parameter, each with the type that it is a field of.
    path: Vec<(String, String)>,
    /// The inputs of a unit of the layer whose weight came last.
    inputs: Option<usize>,
}

impl ModuleMapper for Redraw {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.push((name.to_owned(), container_type.to_owned()));
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // Every parameter takes a key, so that one that stays does not move the others.
        let key = self.key.child(self.next);
        self.next += 1;
        let (name, layer) = match self.path.last() {
            Some((name, layer)) => (name.as_str(), layer.as_str()),
            None => ("", ""),
        };
        let dims = param.lazy_shape();
        if name == "weight" {
            // Linear layers have [inputs, outputs], convolutions [outputs, inputs, ..].
            self.inputs = Some(match D {
                0 | 1 => 1,
                2 => dims[0],
                _ => dims[1..].iter().product(),
            });
        }
        let learned = self.path.iter().any(|(_, of)| of == "Struct:Sampler");
        if learned || is_constant(&param.val(), name) {
            return param;
        }
        let inputs = self.inputs.unwrap_or(1).max(1);
        param.map(|old| {
            let new = match layer {
                "Struct:Embedding" => normal(key, &old),
                _ => {
                    let uniform = key.uniform::<D>(old.dims(), &old.device(), old.dtype());
                    (uniform * 2.0 - 1.0) * (inputs as f64).sqrt().recip()
                }
            };
            match (old.is_require_grad(), old.is_autodiff()) {
                (true, _) => leaf_like(new, &old),
                (false, true) => Tensor::from_inner(new),
                (false, false) => new,
            }
        })
    }
}

/// Whether an initialiser that is not random made it. One number alone cannot show it.
fn is_constant<const D: usize>(values: &Tensor<D>, name: &str) -> bool {
    let values: Vec<f64> = to_host(values.clone());
    let same = values.iter().all(|x| *x == values[0]);
    let drawn_alone = values.len() == 1
        && ["weight", "bias"].contains(&name)
        && values[0] != 0.0
        && values[0] != 1.0;
    same && !drawn_alone
}

fn normal<const D: usize>(key: Key, like: &Tensor<D>) -> Tensor<D> {
    let mut values = vec![0.0f64; like.dims().iter().product()];
    key.fill_elements(&mut values, |_, rng| StandardNormal.sample(rng));
    let data = TensorData::new(values, like.dims());
    Tensor::from_data(data, (&like.device().inner(), like.dtype()))
}
