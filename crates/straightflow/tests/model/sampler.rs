//! A method and what it learns as a field of a model.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer, OptimizerRecord};
use burn::store::ModuleRecord;
use burn::tensor::{DType, Device, Tensor};
use straightflow::estimator::REGISTRY;
use straightflow::prelude::*;

use crate::numbers;
use crate::support::values;

#[derive(Module, Debug)]
struct Model {
    encoder: Linear,
    code: Sampler,
    keys: KeyStream,
    decoder: Linear,
}

impl Model {
    fn loss(&self, x: Tensor<2>) -> Result<Tensor<1>> {
        let q = Bernoulli::from_logits(self.encoder.forward(x.clone()))?;
        let estimate =
            self.code
                .seeing(x.clone())
                .estimate_with(self.keys.next(), &q, x, |z, _, x| {
                    (self.decoder.forward(z) - x.unsqueeze())
                        .square()
                        .sum_dim(2)
                })?;
        Ok(estimate.surrogate)
    }
}

fn model(seed: u64, spec: &str) -> Model {
    let device = Device::flex().autodiff();
    let [layers, code, noise] = Key::new(seed).split();
    let q = Bernoulli::from_logits(Tensor::<2>::zeros([1, 4], &device)).expect("valid");
    let config = SamplerConfig::new(spec).with_features(6);
    layers.init(Model {
        encoder: LinearConfig::new(6, 4).init(&device),
        code: config.init_for(code, &q).expect("known"),
        keys: KeyStream::new(noise),
        decoder: LinearConfig::new(4, 6).init(&device),
    })
}

fn data() -> Tensor<2> {
    let device = Device::flex().autodiff();
    Tensor::from_inner(Key::new(77).uniform([8, 6], &device, DType::F32))
}

fn train(mut model: Model, optimiser: &mut ModuleOptimizer, steps: usize) -> Model {
    for _ in 0..steps {
        let loss = model.loss(data()).expect("a loss");
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimiser.step(1e-2, model, gradients);
    }
    model
}

fn record(model: &Model) -> Vec<u8> {
    let bytes = model.clone().into_record().into_bytes();
    bytes.expect("a record").to_vec()
}

/// Saved and loaded in the middle of training, methods that learn in every way go on to the same
/// bits: by gradients, by averages, by what backward passes teach.
#[test]
fn a_loaded_model_trains_on_to_the_same_bits() {
    for spec in [
        "relax",
        "relax:control=sum",
        "rebar",
        "debiased-st",
        "reinforce:baseline=moving-average",
        "reinforce:baseline=learned",
        "muprop:coefficients=learned",
        "double-cv",
        "gumbel-softmax:temperature=1>0.1@0.1",
        "arm",
    ] {
        let mut optimiser = AdamConfig::new().init();
        let half = train(model(1, spec), &mut optimiser, 4);
        let saved = half.clone().into_record().into_bytes().expect("a record");
        let state = optimiser.to_record().into_bytes().expect("a record");
        let whole = train(half, &mut optimiser, 4);

        let loaded = ModuleRecord::from_bytes(saved).expect("its own");
        let loaded = model(2, spec).load_record(loaded);
        let state = OptimizerRecord::from_bytes(state).expect("its own");
        let mut optimiser = AdamConfig::new().init().load_record(state);
        let resumed = train(loaded, &mut optimiser, 4);
        assert_eq!(resumed.code.step(), 8, "{spec}");
        assert!(record(&whole) == record(&resumed), "{spec}");
    }
}

/// The same as binding the state, stepping an optimiser and updating the state by hand.
#[test]
fn a_sampler_is_its_method_with_state_by_hand() {
    for spec in [
        "reinforce:baseline=moving-average",
        "debiased-st",
        "relax",
        "rebar",
    ] {
        let device = Device::flex().autodiff();
        let logits = Tensor::<2>::from_floats([[0.3, -0.8, 1.1]; 4], &device).require_grad();
        let q = || Bernoulli::from_logits(logits.clone() * 1.0).expect("valid");
        let cost = |z: Tensor<3>| (z * 0.9 - 0.3).sum_dim(2).sin();
        let method = estimator(spec).expect("known");
        let shape = StateShape::of(q().law(), 0);
        let mut state = method
            .init_state(Key::new(1), shape, &device)
            .expect("it learns");
        let mut sampler = SamplerConfig::new(spec)
            .init_for(Key::new(1), &q())
            .expect("known");
        let (mut by_hand, mut of_layer) = (AdamConfig::new().init(), AdamConfig::new().init());
        for step in 0..4 {
            let key = Key::new(2).child(step);
            let bound = method
                .at_step(step)
                .and_then(|method| method.bind(&state, None));
            let want = bound
                .and_then(|bound| bound.estimate(key, &q(), cost))
                .expect(spec);
            let mut grads = want.surrogate.backward();
            let expected = logits.grad(&grads).expect("a gradient");
            let own = GradientsParams::from_module(&mut grads, &state);
            state = by_hand.step(1e-2, state, own);
            state.update(&want);

            let got = sampler.estimate(key, &q(), cost).expect(spec);
            // Looking at a model before its backward pass takes nothing away.
            let _ = (sampler.num_params(), sampler.clone(), sampler.to_string());
            let mut grads = got.surrogate.backward();
            let gradient = logits.grad(&grads).expect("a gradient");
            assert_eq!(values(gradient), values(expected), "{spec} {step}");
            let own = GradientsParams::from_module(&mut grads, &sampler);
            sampler = of_layer.step(1e-2, sampler, own);
        }
        assert_eq!(numbers(&sampler.state()), numbers(&state), "{spec}");
    }
}

/// Every method works in a model by `estimate`; those with samples on the tape draw, the others say
/// so.
#[test]
fn every_method_estimates_and_draws_or_says_why_not() {
    let device = Device::flex().autodiff();
    let logits = Tensor::<2>::zeros([2, 3], &device).require_grad();
    for entry in REGISTRY {
        if !entry
            .families
            .contains(&straightflow::distribution::FamilyKind::Bernoulli)
        {
            continue;
        }
        let q = Bernoulli::from_logits(logits.clone() * 1.0).expect("valid");
        let config = SamplerConfig::new(entry.id);
        let sampler = config.init_for(Key::new(1), &q).expect(entry.id);
        let single = Single::new(&q, (), |z: Tensor<3>, _, ()| (z * 0.7).sin().sum_dim(2));
        let estimate = sampler.estimate_objective(Key::new(2), &single.of_kind(entry.objective));
        let grads = estimate.expect(entry.id).surrogate.backward();
        assert!(logits.grad(&grads).is_some(), "{}", entry.id);
        assert_eq!(sampler.step(), 1, "{}", entry.id);
        let q = Bernoulli::from_logits(logits.clone() * 1.0).expect("valid");
        match sampler.draw(Key::new(3), &q) {
            Ok(z) => assert_eq!(z.dims(), [2, 3]),
            Err(Error::NoDropIn { drop_ins, .. }) => assert!(drop_ins.contains(&"reinmax")),
            Err(error) => panic!("{}: {error}", entry.id),
        }
    }
}

/// A schedule advances by draws and estimates on a tape, and by nothing else.
#[test]
fn schedules_advance_with_training() {
    let spec = "gumbel-softmax:temperature=1>0.1@0.5";
    let device = Device::flex().autodiff();
    let q = |device: &Device| {
        let logits = Tensor::<2>::from_floats([[0.4, -0.2]], device);
        let logits = match device.is_autodiff() {
            true => logits.require_grad(),
            false => logits,
        };
        Bernoulli::from_logits(logits).expect("valid")
    };
    let sampler = SamplerConfig::new(spec).init_for(Key::new(1), &q(&device));
    let sampler = sampler.expect("known");
    let method = estimator(spec).expect("known");
    for step in 0..6 {
        let key = Key::new(2).child(step);
        let want = method
            .at_step(step)
            .and_then(|method| method.draw(key, &q(&device)));
        let got = sampler.draw(key, &q(&device)).expect("a drop-in");
        assert_eq!(values(got), values(want.expect("a drop-in")), "{step}");
        sampler
            .draw(key, &q(&Device::flex()))
            .expect("without a tape");
    }
    assert_eq!(sampler.step(), 6);
    assert_eq!(sampler.valid().step(), 6);
}

/// Shapes are those of the example; a law of another size is refused, and changes nothing.
#[test]
fn shapes_are_never_changed_by_use() {
    let device = Device::flex().autodiff();
    let q = |d: usize| {
        let logits = Tensor::<2>::zeros([2, d], &device).require_grad();
        Bernoulli::from_logits(logits).expect("valid")
    };
    let sampler = SamplerConfig::new("relax").init_for(Key::new(1), &q(3));
    let sampler = sampler.expect("known");
    let refused = sampler.estimate(Key::new(2), &q(4), |z| z.sum_dim(2));
    assert!(matches!(refused, Err(Error::ControlWidth { .. })));
    assert_eq!(sampler.step(), 0);
    sampler
        .estimate(Key::new(2), &q(3), |z| z.sum_dim(2))
        .expect("its own shape");
    let unknown = SamplerConfig::new("relacks").init_for(Key::new(1), &q(3));
    assert!(matches!(unknown, Err(Error::UnknownEstimator { .. })));
}
