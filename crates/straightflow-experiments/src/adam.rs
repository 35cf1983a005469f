//! Adam in one pass over memory.

mod fused;

use burn::optim::{AdamState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

/// The configuration of [`Adam`].
///
/// The defaults are those of the paper (Kingma and Ba 2015, algorithm 1). burn's own Adam has
/// another `epsilon`, 1e-5.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// The decay of the mean gradient, in `[0, 1)`.
    pub beta_1: f64,
    /// The decay of the mean squared gradient, in `[0, 1)`.
    pub beta_2: f64,
    /// What is added to the root of the mean squared gradient, not negative.
    pub epsilon: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self {
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
        }
    }
}

impl AdamConfig {
    /// The optimiser of a module.
    ///
    /// # Panics
    ///
    /// If a number is out of its range.
    pub fn init(&self) -> ModuleOptimizer {
        self.build().into()
    }

    /// The optimiser of one parameter, for [`ModuleOptimizer::with_group`].
    ///
    /// # Panics
    ///
    /// If a number is out of its range.
    pub fn build(&self) -> Adam {
        let Self {
            beta_1,
            beta_2,
            epsilon,
        } = *self;
        assert!(
            (0.0..1.0).contains(&beta_1) && (0.0..1.0).contains(&beta_2),
            "Adam's decays are in [0, 1), not {beta_1} and {beta_2}"
        );
        assert!(
            epsilon >= 0.0 && epsilon.is_finite(),
            "Adam's epsilon is not negative and finite, not {epsilon}"
        );
        Adam(self.clone())
    }
}

/// Adam (Kingma and Ba 2015) for burn modules, in one pass over the memory of flex tensors, with the
/// SIMD instructions that the CPU turns out to have. For other backends it is composed of tensor
/// operations: the same values up to rounding.
///
/// ```text
/// m <- beta_1 m + (1 - beta_1) g        v <- beta_2 v + (1 - beta_2) g^2
/// p <- p - rate (m / (1 - beta_1^t)) / (sqrt(v / (1 - beta_2^t)) + epsilon)
/// ```
///
/// It is burn's Adam, up to rounding: burn computes the corrections `1 - beta^t` in single
/// precision, and this one in double precision. States are those of burn's Adam, so that each
/// continues from a record of the other; the maximum that AMSGrad keeps is dropped.
///
/// Parameters and moments are changed in place, unless something else holds on to their buffers: a
/// clone of the model, say, or a forward pass that was not followed by a backward pass.
///
/// ```
/// use burn::module::{Module, Param};
/// use burn::optim::GradientsParams;
/// use burn::tensor::{Device, Tensor};
/// use straightflow_experiments::adam::AdamConfig;
///
/// #[derive(Module, Debug)]
/// struct Point {
///     position: Param<Tensor<1>>,
/// }
///
/// let device = Device::flex().autodiff();
/// let start = Tensor::from_floats([3.0, -1.0], &device);
/// let mut point = Point { position: Param::from_tensor(start) };
/// let mut adam = AdamConfig::default().init();
/// for _ in 0..200 {
///     let grads = point.position.val().square().sum().backward();
///     let grads = GradientsParams::from_grads(grads, &point);
///     point = adam.step(0.05, point, grads);
/// }
/// let [x, y] = point.position.val().to_data().try_to_vec::<f32>().unwrap()[..] else { panic!() };
/// assert!(x.abs() < 0.1 && y.abs() < 0.1);
/// ```
#[derive(Clone, Debug)]
pub struct Adam(AdamConfig);

impl Optimizer for Adam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let state = state
            .map(|state| state.momentum)
            .unwrap_or_else(|| AdaptiveMomentumState::new(0, grad.zeros_like(), grad.zeros_like()));
        let time = state.time + 1;
        let tensors = Tensors {
            parameter: tensor,
            moment_1: state.moment_1,
            moment_2: state.moment_2,
        };
        let updated = tensors.update(&self.0, lr, time, grad);
        let state = AdaptiveMomentumState::new(time, updated.moment_1, updated.moment_2);
        (updated.parameter, Some(AdamState::new(state)))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        AdamState::new(state.momentum.to_device(device))
    }
}

/// What a step changes.
struct Tensors<const D: usize> {
    parameter: Tensor<D>,
    moment_1: Tensor<D>,
    moment_2: Tensor<D>,
}

impl<const D: usize> Tensors<D> {
    fn update(self, config: &AdamConfig, rate: f64, time: usize, grad: Tensor<D>) -> Self {
        if fused::fits(&self, &grad) {
            return fused::update(self, config, rate, time, grad);
        }
        self.composed(Step::new(config, rate, time), grad)
    }

    /// The update from tensor operations.
    fn composed(self, step: Step, grad: Tensor<D>) -> Self {
        let moment_1 = self.moment_1 * step.beta_1 + grad.clone() * (1.0 - step.beta_1);
        let moment_2 = self.moment_2 * step.beta_2 + grad.square() * (1.0 - step.beta_2);
        let root = moment_2.clone().sqrt() + step.epsilon;
        Self {
            parameter: self.parameter - moment_1.clone() * step.rate / root,
            moment_1,
            moment_2,
        }
    }
}

/// The numbers of one step. The bias corrections are moved from the moments to the rate and to
/// epsilon.
#[derive(Clone, Copy)]
struct Step {
    beta_1: f64,
    beta_2: f64,
    rate: f64,
    epsilon: f64,
}

impl Step {
    fn new(config: &AdamConfig, rate: f64, time: usize) -> Self {
        let AdamConfig { beta_1, beta_2, .. } = *config;
        let correction = |beta: f64| 1.0 - beta.powf(time as f64);
        let root = correction(beta_2).sqrt();
        Self {
            beta_1,
            beta_2,
            rate: rate * root / correction(beta_1),
            epsilon: config.epsilon * root,
        }
    }
}
