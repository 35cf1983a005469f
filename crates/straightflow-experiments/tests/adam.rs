//! The fused Adam against burn's own and against its formula.

use std::sync::{Arc, Mutex};

use burn::backend::Flex;
use burn::module::{Module, Param};
use burn::optim::{self, GradientsParams, LearningRate, ModuleOptimizer, Optimizer};
use burn::tensor::{DType, Device, Tensor, TensorData};
use straightflow_experiments::adam::{Adam, AdamConfig};

fn tensor<const D: usize>(values: &[f64], shape: [usize; D], dtype: DType) -> Tensor<D> {
    let data = TensorData::new(values.to_vec(), shape);
    Tensor::from_data(data, (&Device::flex(), dtype))
}

fn values<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    let data = x.inner().into_data_dtype(DType::F64);
    data.try_into_vec().expect("f64 values")
}

/// The largest difference, relative to the larger of 1 and the largest entry.
fn assert_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    let size = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let gaps = got.iter().zip(want).map(|(a, b)| (a - b).abs() / size);
    let error = gaps.fold(0.0, |m: f64, gap| if gap <= m { m } else { gap });
    assert!(
        error <= tolerance,
        "{what}: error {error:.2e}, {got:?}, {want:?}"
    );
}

#[derive(Module, Debug)]
struct Model {
    bias: Param<Tensor<1>>,
    weight: Param<Tensor<2>>,
    block: Param<Tensor<3>>,
}

impl Model {
    fn new(dtype: DType) -> Self {
        fn parameter<const D: usize>(shape: [usize; D], dtype: DType) -> Param<Tensor<D>> {
            let count = shape.iter().product::<usize>();
            let start: Vec<f64> = (0..count).map(|i| (0.7 * i as f64 + 0.2).sin()).collect();
            Param::from_tensor(Tensor::from_inner(tensor(&start, shape, dtype)))
        }
        Self {
            bias: parameter([1], dtype),
            weight: parameter([7, 5], dtype),
            block: parameter([2, 3, 8], dtype),
        }
    }

    /// Gradients of several sizes that change their signs on the way.
    fn loss(&self, step: usize) -> Tensor<1> {
        let phase = step as f64;
        let weight = self.weight.val().transpose();
        (self.bias.val() * (phase + 0.1)).sin().sum()
            + (weight.clone() * weight * 3.0 + phase).cos().sum()
            + (self.block.val() * 1e-3).square().sum()
    }

    fn values(&self) -> Vec<f64> {
        [
            values(self.bias.val()),
            values(self.weight.val()),
            values(self.block.val()),
        ]
        .concat()
    }
}

fn train(
    optimizer: &mut ModuleOptimizer,
    mut model: Model,
    steps: std::ops::Range<usize>,
) -> Model {
    for step in steps {
        let grads = GradientsParams::from_grads(model.loss(step).backward(), &model);
        model = optimizer.step(1e-2, model, grads);
    }
    model
}

fn burns() -> ModuleOptimizer {
    optim::AdamConfig::new().with_epsilon(1e-8).init()
}

fn ours() -> ModuleOptimizer {
    AdamConfig::default().init()
}

#[test]
fn it_is_burns_adam() {
    let start = Model::new(DType::F32);
    let got = train(&mut ours(), start.clone(), 0..20).values();
    let want = train(&mut burns(), start, 0..20).values();
    // burn's corrections are in single precision: 1 - 0.999^t has lost three digits or more.
    assert_close("20 steps", &got, &want, 2e-6);
}

/// burn keeps the decays of `f64` parameters in single precision, so this is the formula itself.
#[test]
fn double_precision_follows_the_formula() {
    let adam = AdamConfig::default().build();
    let (rate, count) = (0.03, 37);
    let gradient = |step: i32, i: usize| {
        (0.9 * i as f64 + f64::from(step)).sin() * 10f64.powi(i as i32 / 4 - 5)
    };
    let mut p: Vec<f64> = (0..count).map(|i| (1.3 * i as f64).cos()).collect();
    let (mut m, mut v) = (vec![0.0; count], vec![0.0; count]);
    let mut parameter = tensor::<1>(&p, [count], DType::F64);
    let mut state = None;
    for t in 1..=20 {
        let g: Vec<f64> = (0..count).map(|i| gradient(t, i)).collect();
        (parameter, state) = adam.step(rate, parameter, tensor(&g, [count], DType::F64), state);
        for i in 0..count {
            m[i] = 0.9 * m[i] + (1.0 - 0.9) * g[i];
            v[i] = 0.999 * v[i] + (1.0 - 0.999) * g[i] * g[i];
            let mean = m[i] / (1.0 - 0.9f64.powi(t));
            let square = v[i] / (1.0 - 0.999f64.powi(t));
            p[i] -= rate * mean / (square.sqrt() + 1e-8);
        }
    }
    assert_close("parameters", &values(parameter), &p, 1e-12);
    let momentum = state.expect("a state").momentum;
    assert_eq!(momentum.time, 20);
    assert_close("first moment", &values(momentum.moment_1), &m, 1e-14);
    assert_close("second moment", &values(momentum.moment_2), &v, 1e-14);

    let start = Model::new(DType::F64);
    let got = train(&mut ours(), start.clone(), 0..20).values();
    let want = train(&mut burns(), start, 0..20).values();
    assert_close("burn's", &got, &want, 2e-6);
}

#[test]
fn records_continue_either_way() {
    let start = Model::new(DType::F32);
    let want = train(&mut burns(), start.clone(), 0..12).values();
    for (mut first, second) in [(burns(), ours()), (ours(), burns()), (ours(), ours())] {
        let halfway = train(&mut first, start.clone(), 0..5);
        let record = first.into_bytes().expect("a record");
        let mut second = second.from_bytes(record).expect("a state");
        let got = train(&mut second, halfway, 5..12).values();
        assert_close("continued", &got, &want, 2e-6);
    }
}

/// Half precision has no kernel.
#[test]
fn other_types_are_composed() {
    let adam = AdamConfig::default().build();
    let run = |dtype: DType| {
        let mut parameter = tensor::<1>(&[1.0, -2.0], [2], dtype);
        let mut state = None;
        for step in 0..3 {
            let g = tensor(&[0.5, -1.0 - f64::from(step)], [2], dtype);
            (parameter, state) = adam.step(0.25, parameter, g, state);
        }
        values(parameter)
    };
    for dtype in [DType::F16, DType::BF16] {
        assert_close("half", &run(dtype), &run(DType::F64), 2e-2);
    }
}

/// The addresses of the parameter and of both moments, before and after each step.
type Addresses = Arc<Mutex<Vec<[[usize; 3]; 2]>>>;

#[derive(Clone)]
struct Watched {
    adam: Adam,
    addresses: Addresses,
}

fn address<const D: usize>(x: &Tensor<D>) -> usize {
    let primitive = x.clone().try_into_primitive::<Flex>().expect("plain flex");
    primitive.bytes().as_ptr().addr()
}

impl Optimizer for Watched {
    type State<const D: usize> = <Adam as Optimizer>::State<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let addresses = |parameter: &Tensor<D>, state: &Option<Self::State<D>>| {
            let moments = state.as_ref().map(|state| &state.momentum);
            let [m, v] = match moments {
                Some(moments) => [&moments.moment_1, &moments.moment_2].map(address),
                None => [0, 0],
            };
            [address(parameter), m, v]
        };
        let before = addresses(&tensor, &state);
        let (tensor, state) = self.adam.step(lr, tensor, grad, state);
        let after = addresses(&tensor, &state);
        self.addresses.lock().expect("a lock").push([before, after]);
        (tensor, state)
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        Adam::to_device(state, device)
    }
}

#[test]
fn nothing_is_copied_in_training() {
    let watched = Watched {
        adam: AdamConfig::default().build(),
        addresses: Addresses::default(),
    };
    let addresses = watched.addresses.clone();
    let mut optimizer = ModuleOptimizer::from(watched);
    let model = train(&mut optimizer, Model::new(DType::F32), 0..1);
    addresses.lock().expect("a lock").clear();
    let model = train(&mut optimizer, model, 1..4);
    let seen: Vec<_> = addresses.lock().expect("a lock").drain(..).collect();
    assert_eq!(seen.len(), 9);
    for [before, after] in &seen {
        assert_eq!(before, after);
    }

    // A clone of the model keeps its values.
    let clone = model.clone();
    let kept = clone.values();
    train(&mut optimizer, model, 4..5);
    assert_eq!(clone.values(), kept);
    let [before, after] = addresses.lock().expect("a lock")[0];
    assert_ne!(before[0], after[0]);
}

#[test]
#[should_panic(expected = "Adam's decays are in [0, 1), not 0.9 and 1")]
fn decays_out_of_range_are_refused() {
    AdamConfig {
        beta_2: 1.0,
        ..AdamConfig::default()
    }
    .init();
}
