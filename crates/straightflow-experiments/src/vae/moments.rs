//! The running variance of the encoder's gradient.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Exponential moving averages of a gradient and of its square.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub mean: Vec<f32>,
    pub square: Vec<f32>,
    /// The sum of the weights, `1 - DECAY^updates`.
    pub weight: f64,
}

impl Moments {
    /// A gradient is looked at every so many steps: neighbours tell little new, and a look costs a pass
    /// over all parameters.
    pub const EVERY: u64 = 20;
    /// So the averages reach back about 100 looks, or 2,000 steps.
    const DECAY: f32 = 0.99;

    /// Takes note of the gradients of all parameters of a module.
    pub fn update<M: Module>(&mut self, module: &M, gradients: &GradientsParams) {
        let mut gather = Gather {
            gradients,
            values: Vec::with_capacity(self.mean.len()),
        };
        module.visit(&mut gather);
        let values = gather.values;
        self.mean.resize(values.len(), 0.0);
        self.square.resize(values.len(), 0.0);
        for ((mean, square), g) in self.mean.iter_mut().zip(&mut self.square).zip(values) {
            *mean = Self::DECAY * *mean + (1.0 - Self::DECAY) * g;
            *square = Self::DECAY * *square + (1.0 - Self::DECAY) * g * g;
        }
        let decay = f64::from(Self::DECAY);
        self.weight = decay * self.weight + (1.0 - decay);
    }

    /// The variance, summed over all parameters: the trace of the covariance. `None` before two looks.
    ///
    /// The mean of `updates` looks has a share of the variance itself, `(1 - DECAY) / (1 + DECAY)` in
    /// the long run, which is half a percent and is left alone.
    pub fn variance(&self) -> Option<f64> {
        if self.weight <= 1.0 - f64::from(Self::DECAY) {
            return None;
        }
        let pairs = self.mean.iter().zip(&self.square);
        let each = pairs.map(|(mean, square)| {
            let mean = f64::from(*mean) / self.weight;
            f64::from(*square) / self.weight - mean * mean
        });
        // Rounding must not make it negative.
        Some(each.sum::<f64>().max(0.0))
    }
}

struct Gather<'a> {
    gradients: &'a GradientsParams,
    values: Vec<f32>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        match self.gradients.get::<D>(param.id) {
            Some(gradient) => {
                let data = gradient.into_data();
                self.values
                    .extend_from_slice(data.as_slice::<f32>().expect("gradients of type f32"));
            }
            None => {
                let count = param.val().dims().iter().product::<usize>();
                self.values.resize(self.values.len() + count, 0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::nn::Linear;
    use burn::tensor::Device;
    use straightflow::Key;

    use super::*;

    /// After two looks the averages hold two hundredths of what they will: the mean counts in full.
    #[test]
    fn the_first_looks_are_weighted_as_the_later_ones() {
        let device = Device::flex().autodiff();
        let linear = Linear {
            weight: Param::from_tensor(Tensor::zeros([1, 1], &device)),
            bias: None,
        };
        let mut moments = Moments::default();
        for gradient in [10.0f32, 12.0] {
            let mut gradients = GradientsParams::new();
            let gradient = Tensor::<2>::full([1, 1], gradient, &Device::flex());
            gradients.register(linear.weight.id, gradient);
            moments.update(&linear, &gradients);
        }
        // Weights 0.99 and 1 of the two: p (1 - p) of a difference of 2.
        let p = 0.99 / 1.99;
        let expected = 4.0 * p * (1.0 - p);
        let variance = moments.variance().expect("two looks");
        assert!((variance - expected).abs() < 1e-3, "{variance}");
    }

    #[test]
    fn the_running_variance_is_that_of_the_gradients() {
        let device = Device::flex().autodiff();
        let linear = Linear {
            weight: Param::from_tensor(Tensor::zeros([2, 3], &device)),
            bias: None,
        };
        let mut moments = Moments::default();
        assert_eq!(moments.variance(), None);
        let mut u = vec![0.0f32; 6 * 5000];
        Key::new(1).fill_uniform_f32(&mut u);
        for row in u.chunks_exact(6) {
            let gradient = Tensor::<1>::from_floats(row, &Device::flex()).reshape([2, 3]);
            let mut gradients = GradientsParams::new();
            // Means of one half up to 2.5, which must not count.
            let shift = Tensor::<1>::from_floats([0.0, 1.0, 2.0, 0.0, 1.0, 2.0], &Device::flex());
            gradients.register(linear.weight.id, gradient + shift.reshape([2, 3]));
            moments.update(&linear, &gradients);
        }
        // A window of 200 looks for each of 6 uniform variables of variance 1/12.
        let variance = moments.variance().expect("many looks");
        assert!((variance - 0.5).abs() < 0.08, "{variance}");
    }
}
