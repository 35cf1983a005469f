//! How fast a training step could be: the time of the parts that no step can do without, each alone.

use std::hint::black_box;
use std::time::Instant;

use burn::optim::Optimizer;
use burn::tensor::{DType, Device, Tensor};
use straightflow::Key;
use straightflow::distribution::{Family, Law};
use straightflow::fused::{affine, bernoulli_log_prob, bit_affine};

use super::images::Batch;
use super::trainer::Trainer;
use crate::adam::AdamConfig;

/// Lower bounds of the time of one step of straight-through, in milliseconds, as measured on the spot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// All matrix products, as dense ones, each layer there and back.
    pub dense_ms: f64,
    /// The products, those with images as sums over their ones, the likelihood of the pixels, the
    /// samples, and one pass of Adam over all parameters: everything but what holds it together.
    pub practical_ms: f64,
}

impl Trainer<'_> {
    /// The floor of a step on the first batch of an epoch.
    pub fn floor(&self) -> Floor {
        let order = self.images.batches(self.config.batch).epoch(0);
        let batch = self.images.training(0, order.batch(0));
        let rows = batch.x.dims()[0];
        let layers: Vec<[usize; 2]> = self.model.layer_shapes();
        let sparse = first_layer(&batch, layers[0]);
        let dense: Vec<f64> = layers
            .iter()
            .enumerate()
            .map(|(index, shape)| products(rows, *shape, index > 0))
            .collect();
        let parameters = layers
            .iter()
            .map(|[inputs, outputs]| (inputs + 1) * outputs);
        let rest = adam(parameters.sum()) + likelihood(&batch) + self.sampling(rows);
        Floor {
            dense_ms: dense.iter().sum(),
            practical_ms: sparse + dense[1..].iter().sum::<f64>() + rest,
        }
    }

    fn sampling(&self, rows: usize) -> f64 {
        let [d, k] = self.config.dims();
        let logits = uniform::<3>([rows, d, k]);
        let law = Law::new(Family::Bernoulli, logits).expect("a valid shape");
        least(|| {
            black_box(law.sample(Key::new(1), 1));
        })
    }
}

/// The least time of a few, in milliseconds.
fn least(mut work: impl FnMut()) -> f64 {
    const ROUNDS: usize = 15;
    const TIMES: u32 = 10;
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..TIMES {
            work();
        }
        least = least.min(start.elapsed().as_secs_f64() / f64::from(TIMES));
    }
    1e3 * least
}

fn uniform<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Key::new(1).uniform::<D>(shape, &Device::flex(), DType::F32) - 0.5
}

/// A layer there and back: its product, that of the gradient of its weight and, unless its input is
/// data, that of its input.
fn products(rows: usize, [inputs, outputs]: [usize; 2], inner: bool) -> f64 {
    let x = Tensor::from_inner(uniform::<2>([rows, inputs])).set_require_grad(inner);
    let weight = Tensor::from_inner(uniform::<2>([inputs, outputs])).require_grad();
    let bias = Tensor::from_inner(uniform::<1>([outputs])).require_grad();
    least(|| {
        let y = affine(x.clone(), weight.clone(), bias.clone(), None);
        black_box(y.backward());
    })
}

/// The layer that sees the images, there and back.
fn first_layer(batch: &Batch, [inputs, outputs]: [usize; 2]) -> f64 {
    let Some(bits) = batch.input.bits() else {
        return products(batch.x.dims()[0], [inputs, outputs], false);
    };
    let weight = Tensor::from_inner(uniform::<2>([inputs, outputs])).require_grad();
    let bias = Tensor::from_inner(uniform::<1>([outputs])).require_grad();
    least(|| {
        let y = bit_affine(bits, weight.clone(), bias.clone(), None);
        black_box(y.backward());
    })
}

fn likelihood(batch: &Batch) -> f64 {
    let logits = Tensor::from_inner(uniform::<2>(batch.x.dims())).require_grad();
    least(|| {
        let log_prob = bernoulli_log_prob(logits.clone(), batch.x.clone());
        black_box(log_prob.backward());
    })
}

fn adam(parameters: usize) -> f64 {
    let adam = AdamConfig::default().build();
    let grad = uniform::<1>([parameters]);
    let mut now = Some((uniform::<1>([parameters]), None));
    least(|| {
        let (parameter, state) = now.take().expect("the parameters are always put back");
        now = Some(adam.step(1e-4, parameter, grad.clone(), state));
    })
}
