//! The state of an estimator: its gradients, that nothing leaks, that it can be saved, what it gains.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{DType, Device, Tensor};
use straightflow::Error;
use straightflow::prelude::*;

use crate::scalar::{build, sigmoid};
use crate::support::{assert_close, leaf, tensor, values};

const BATCH: usize = 3;
const FEATURES: usize = 2;
const HIDDEN: usize = 4;
const LOGITS: [f64; 6] = [0.3, -1.2, 0.8, 0.1, -0.5, 1.4];
const INPUT: [f64; 6] = [0.4, -0.7, 1.1, 0.2, -0.3, 0.9];
/// Two draws of two bits for three batch elements.
const DRAWS: [f64; 12] = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];

fn learned() -> Box<dyn Estimator> {
    build(&format!(
        "reinforce:baseline=learned,hidden={HIDDEN},samples=2"
    ))
}

fn state(estimator: &dyn Estimator, seed: u64, features: usize, dtype: DType) -> State {
    let shape = StateShape {
        features,
        below: 0,
        d: 2,
        k: 1,
        dtype,
    };
    let state = estimator.init_state(Key::new(seed), shape, &Device::flex().autodiff());
    state.expect("it has state")
}

fn input(dtype: DType) -> Tensor<2> {
    tensor(&INPUT, [BATCH, FEATURES], dtype)
}

fn cost(z: Tensor<3>) -> Tensor<2> {
    let [a, b] = [0, 1].map(|j| z.clone().narrow(2, j, 1).squeeze_dim::<2>(2));
    a.clone() * 1.7 + b.clone() * 0.4 - a * b * 0.9 + 2.0
}

fn cost_at(z: &[f64]) -> f64 {
    1.7 * z[0] + 0.4 * z[1] - 0.9 * z[0] * z[1] + 2.0
}

/// All parameters in the order of the module, or their gradients.
struct Flatten<'a> {
    grads: Option<&'a GradientsParams>,
    values: Vec<f64>,
}

impl ModuleVisitor for Flatten<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.values.extend(match self.grads {
            None => values(param.val()),
            Some(grads) => values(grads.get::<D>(param.id).expect("a gradient")),
        });
    }
}

fn flatten(state: &State, grads: Option<&GradientsParams>) -> Vec<f64> {
    let values = Vec::new();
    let mut visitor = Flatten { grads, values };
    state.visit(&mut visitor);
    visitor.values
}

fn bits(state: &State) -> Vec<u64> {
    flatten(state, None).into_iter().map(f64::to_bits).collect()
}

/// Adds a number to each parameter, so that zero biases do not hide anything.
struct Shift;

impl ModuleMapper for Shift {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|x| Tensor::from_inner(x.inner() + 0.13).require_grad())
    }
}

/// The network by hand: `tanh(x W + b) v + c`, from weights in the order of the module.
fn network(weights: &[f64], x: &[f64]) -> f64 {
    let (w, rest) = weights.split_at(FEATURES * HIDDEN);
    let (b, rest) = rest.split_at(HIDDEN);
    let (v, c) = rest.split_at(HIDDEN);
    let unit = |h: usize| {
        let sum: f64 = (0..FEATURES).map(|i| x[i] * w[i * HIDDEN + h]).sum();
        (sum + b[h]).tanh() * v[h]
    };
    (0..HIDDEN).map(unit).sum::<f64>() + c[0]
}

/// The gradient of the network is that of its squared error, that of the model is
/// `(f - b) score`, and neither is in the other, even if the input is on the model's tape.
#[test]
fn the_network_learns_its_squared_error_and_nothing_leaks() {
    let estimator = learned();
    let state = state(&*estimator, 1, FEATURES, DType::F64).map(&mut Shift);
    let weights = flatten(&state, None);
    assert_eq!(weights.len(), FEATURES * HIDDEN + 2 * HIDDEN + 1);
    // One leaf makes the logits and is the conditioning input.
    let x = leaf::<2>(&INPUT, [BATCH, FEATURES], DType::F64);
    let offset = tensor::<2>(&LOGITS, [BATCH, 2], DType::F64);
    let q = Bernoulli::from_logits(x.clone() * 0.5 + offset).expect("valid");
    let scale = leaf::<1>(&[1.0], [1], DType::F64);
    let noise = vec![tensor(&DRAWS, [2, BATCH, 2, 1], DType::F64)];
    let bound = estimator.bind(&state, Some(x.clone())).expect("its own");
    let estimate = bound.estimate(noise, &q, |z| cost(z) * scale.clone().unsqueeze::<2>());
    let estimate = estimate.expect("valid");
    let f = |n: usize, b: usize| cost_at(&DRAWS[(n * BATCH + b) * 2..][..2]);
    let mean_cost = (0..2 * BATCH).map(|i| f(i / BATCH, i % BATCH)).sum::<f64>() / 6.0;
    let surrogate = values(estimate.surrogate.clone());
    assert_close("value", &surrogate, &[mean_cost], 1e-14);

    let mut grads = estimate.surrogate.backward();
    let own = values(scale.grad(&grads).expect("gradient"));
    assert_close("model", &own, &[mean_cost], 1e-12);
    let by_input = values(x.grad(&grads).expect("gradient"));
    let want: Vec<f64> = (0..BATCH * 2)
        .map(|i| {
            let (b, p) = (i / 2, sigmoid(0.5 * INPUT[i] + LOGITS[i]));
            let baseline = network(&weights, &INPUT[b * FEATURES..]);
            let draw = |n| (f(n, b) - baseline) * (DRAWS[n * BATCH * 2 + i] - p);
            0.5 * (draw(0) + draw(1)) / (2 * BATCH) as f64
        })
        .collect();
    assert_close("encoder", &by_input, &want, 1e-12);

    let loss = |weights: &[f64]| {
        let error = |i: usize| f(i / BATCH, i % BATCH) - network(weights, &INPUT[i % BATCH * 2..]);
        (0..2 * BATCH).map(|i| error(i).powi(2)).sum::<f64>() / (2 * BATCH) as f64
    };
    let differences: Vec<f64> = (0..weights.len())
        .map(|i| {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[i] += by;
                loss(&weights)
            };
            (moved(1e-5) - moved(-1e-5)) / 2e-5
        })
        .collect();
    let got = flatten(
        &state,
        Some(&GradientsParams::from_module(&mut grads, &state)),
    );
    assert!(differences.iter().any(|x| x.abs() > 0.1));
    // The error of the central difference, not of the gradient.
    assert_close("network", &got, &differences, 1e-8);
}

/// `s / w` from the first cost on; the estimate subtracts it; an update is explicit.
#[test]
fn the_moving_average_is_the_stated_one() {
    let estimator = build("reinforce:baseline=moving-average,decay=0.8,samples=2");
    let mut state = state(&*estimator, 1, 0, DType::F64);
    let q = Bernoulli::from_logits(tensor(&LOGITS, [BATCH, 2], DType::F64)).expect("valid");
    let (mut sum, mut weight) = (0.0, 0.0);
    for step in 0..4 {
        let factor = f64::from(step) - 1.4;
        let noise = vec![tensor(&DRAWS, [2, BATCH, 2, 1], DType::F64)];
        let bound = estimator.bind(&state, None).expect("its own");
        let scaled = |z: Tensor<3>| cost(z) * factor;
        let gradient = bound.gradient(noise.clone(), &q, scaled).expect("valid");
        let average = if step == 0 { 0.0 } else { sum / weight };
        let want: Vec<f64> = (0..BATCH * 2)
            .map(|i| {
                let draw = |n: usize| {
                    let f = factor * cost_at(&DRAWS[(n * BATCH + i / 2) * 2..][..2]);
                    (f - average) * (DRAWS[n * BATCH * 2 + i] - sigmoid(LOGITS[i]))
                };
                (draw(0) + draw(1)) / 2.0
            })
            .collect();
        assert_close(&format!("step {step}"), &values(gradient), &want, 1e-12);
        let estimate = bound.estimate(noise, &q, scaled).expect("valid");
        state.update(&estimate);
        sum = 0.8 * sum + 0.2 * values(estimate.values.mean())[0];
        weight = 0.8 * weight + 0.2;
        let value = state.layers[0].average.as_ref().expect("a part").value();
        assert_close("average", &values(value), &[sum / weight], 1e-14);
    }
}

/// A training step: the bits of the state after it are what is compared.
fn step(
    estimator: &dyn Estimator,
    mut state: State,
    optimiser: &mut ModuleOptimizer,
    number: u64,
) -> State {
    let bound = estimator
        .bind(&state, Some(input(DType::F32)))
        .expect("its own");
    let logits = leaf::<2>(&LOGITS, [BATCH, 2], DType::F32);
    let q = Bernoulli::from_logits(logits).expect("valid");
    let estimate = bound
        .estimate(Key::new(7).child(number), &q, cost)
        .expect("valid");
    let mut grads = estimate.surrogate.backward();
    let grads = GradientsParams::from_module(&mut grads, &state);
    state = optimiser.step(1e-2, state, grads);
    state.update(&estimate);
    state
}

#[test]
fn save_load_and_continue_is_bit_equal() {
    for spec in [
        "reinforce:baseline=learned,hidden=8,samples=2",
        "reinforce:baseline=moving-average,samples=2",
        "muprop:baseline=learned,coefficients=learned,hidden=8",
        "double-cv",
        "rebar:baseline=learned,hidden=8",
        "relax:hidden=8",
        "relax:control=sum,hidden=8",
    ] {
        let estimator = build(spec);
        let mut optimiser = AdamConfig::new().init();
        let mut trained = state(&*estimator, 5, FEATURES, DType::F32);
        let start = bits(&trained);
        for number in 0..5 {
            trained = step(&*estimator, trained, &mut optimiser, number);
        }
        assert_ne!(start, bits(&trained), "{spec}");

        let saved = trained
            .clone()
            .into_record()
            .into_bytes()
            .expect("a record");
        let mut resumed = AdamConfig::new().init().load_record(optimiser.to_record());
        let record = ModuleRecord::from_bytes(saved).expect("a record");
        let mut loaded = state(&*estimator, 6, FEATURES, DType::F32).load_record(record);
        assert_eq!(bits(&loaded), bits(&trained), "{spec}");
        for number in 5..10 {
            trained = step(&*estimator, trained, &mut optimiser, number);
            loaded = step(&*estimator, loaded, &mut resumed, number);
            assert_eq!(bits(&loaded), bits(&trained), "{spec}: step {number}");
        }
    }
}

/// Costs that differ from one input to the next by far more than from one sample to the next.
#[test]
fn training_takes_variance_away() {
    const ELEMENTS: usize = 64;
    let x: Vec<f64> = (0..ELEMENTS).map(|b| (b as f64 * 0.37).sin()).collect();
    let x = tensor::<2>(&x, [ELEMENTS, 1], DType::F32);
    let logits = leaf::<2>(&[0.0; ELEMENTS * 3], [ELEMENTS, 3], DType::F32);
    let q = || Bernoulli::from_logits(logits.clone()).expect("valid");
    let cost =
        |z: Tensor<3>| z.sum_dim(2).squeeze_dim::<2>(2) * 0.2 + (x.clone() * 3.0 + 1.0).transpose();
    let variance = |estimator: &dyn Estimator| {
        let draws: Vec<Vec<f64>> = (0..200)
            .map(|i| {
                values(
                    estimator
                        .gradient(Key::new(11).child(i), &q(), cost)
                        .expect("valid"),
                )
            })
            .collect();
        let total = |j: usize| {
            let mean = draws.iter().map(|g| g[j]).sum::<f64>() / 200.0;
            draws.iter().map(|g| (g[j] - mean).powi(2)).sum::<f64>() / 199.0
        };
        (0..ELEMENTS * 3).map(total).sum::<f64>()
    };
    let plain = variance(&*build("reinforce"));
    let train = |spec: &str, features: usize, steps: u64| {
        let estimator = build(spec);
        let mut state = state(&*estimator, 8, features, DType::F32);
        let mut optimiser = AdamConfig::new().init();
        let input = (features > 0).then(|| x.clone());
        for step in 0..steps {
            let bound = estimator.bind(&state, input.clone()).expect("its own");
            let estimate = bound
                .estimate(Key::new(9).child(step), &q(), cost)
                .expect("valid");
            let mut grads = estimate.surrogate.backward();
            let grads = GradientsParams::from_module(&mut grads, &state);
            state = optimiser.step(2e-2, state, grads);
            state.update(&estimate);
        }
        variance(&*estimator.bind(&state, input).expect("its own"))
    };
    let network = train("reinforce:baseline=learned,hidden=20", 1, 300);
    let constant = train("reinforce:baseline=learned,hidden=20", 0, 300);
    let average = train("reinforce:baseline=moving-average", 0, 50);
    println!("plain {plain:.3} network {network:.3} constant {constant:.3} average {average:.3}");
    assert!(network < plain / 20.0, "{network} {plain}");
    // What does not see the input removes the common part only: of 1.3^2 + 4.5 about 4.5 is left.
    for common in [constant, average] {
        assert!(
            common < plain / 1.2 && common > 5.0 * network,
            "{common} {plain}"
        );
    }
}

#[test]
fn weights_come_from_the_key() {
    let estimator = learned();
    let of = |seed| bits(&state(&*estimator, seed, FEATURES, DType::F32));
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn state_that_does_not_fit_is_named() {
    let q = |dtype| Bernoulli::from_logits(tensor(&LOGITS, [BATCH, 2], dtype)).expect("valid");
    let estimate = |estimator: &dyn Estimator, dtype| {
        let estimate = estimator.estimate(Key::new(1), &q(dtype), cost);
        estimate.map(|_| ()).expect_err("does not fit")
    };
    let average = build("reinforce:baseline=moving-average");
    let learned = learned();
    let id = "reinforce";
    for estimator in [&average, &learned] {
        let error = estimate(&**estimator, DType::F32);
        assert_eq!(error, Error::MissingState { estimator: id });
        assert!(error.to_string().contains("through a `Sampler`"), "{error}");
    }
    let network = state(&*learned, 1, FEATURES, DType::F32);
    let foreign = average.bind(&network, None).map(|_| ());
    let part = "moving average";
    assert_eq!(
        foreign,
        Err(Error::ForeignState {
            estimator: id,
            part
        })
    );
    for spec in ["reinforce", "straight-through"] {
        let refused = build(spec).bind(&network, None).map(|_| ());
        let estimator = build(spec).entry().id;
        assert_eq!(refused, Err(Error::NoState { estimator }), "{spec}");
    }
    let bind = |input| learned.bind(&network, input).expect("its own");
    let shape = |got| Error::InputShape {
        expected: [BATCH, FEATURES],
        got,
    };
    assert_eq!(estimate(&*bind(None), DType::F32), shape([BATCH, 0]));
    let long = input(DType::F32).repeat_dim(0, 2);
    assert_eq!(
        estimate(&*bind(Some(long)), DType::F32),
        shape([2 * BATCH, FEATURES])
    );
    let (state, parameters) = (DType::F32, DType::F64);
    assert_eq!(
        estimate(&*bind(Some(input(DType::F64))), DType::F64),
        Error::StateDType { state, parameters }
    );
}
