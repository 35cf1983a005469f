//! `LearnedStep` against the formulas of LSQ for one number.

use burn::module::Module;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{DType, Device, Tensor};
use straightflow::nn::{LearnedStep, LearnedStepConfig};

use crate::support::{assert_close, leaf, pull_back, refused, reload, tensor, values};

const GOLDEN: [f64; 5] = [-1.9, -0.62, 0.13, 0.4, 2.2];

fn layer(config: LearnedStepConfig, dtype: DType) -> LearnedStep {
    let device = Device::flex().autodiff();
    config.init((&device, dtype)).expect("valid")
}

/// Output, derivative with respect to the input and the step, for one number.
fn scalar(v: f64, s: f64, below: f64, above: f64) -> [f64; 3] {
    let scaled = v / s;
    if scaled <= -below {
        [-below * s, 0.0, -below]
    } else if scaled >= above {
        [above * s, 0.0, above]
    } else {
        let level = scaled.round_ties_even();
        [level * s, 1.0, level - scaled]
    }
}

#[test]
fn golden_numbers() {
    let config = LearnedStepConfig::new(3).with_step(0.3);
    let quantiser = layer(config.clone(), DType::F64);
    let v = leaf::<1>(&GOLDEN, [5], DType::F64);
    let out = quantiser.forward(v.clone());
    let want = [-1.2, -0.6, 0.0, 0.3, 0.9];
    assert_close("output", &values(out.clone()), &want, 1e-15);
    let grads = out.sum().backward();
    let ds = values(quantiser.step.val().grad(&grads).expect("a gradient"));
    assert_close("step", &ds, &[-1.7 * 0.258198889747], 1e-12);
    let dv = values(v.grad(&grads).expect("a gradient"));
    assert_eq!(dv, [0.0, 1.0, 1.0, 1.0, 0.0]);

    let calibrated = quantiser.calibrate(v).expect("good values");
    let start = values(calibrated.step.val());
    assert_close("start", &start, &[1.212435565298], 5e-13);
}

/// All bits, with and without sign, values on ties and on the bounds.
#[test]
fn it_is_the_scalar_formula() {
    let weights: Vec<f64> = (0..160).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for (bits, signed) in [(2, true), (4, true), (8, true), (1, false), (4, false)] {
        let (below, above) = match signed {
            true => (2f64.powi(bits - 1), 2f64.powi(bits - 1) - 1.0),
            false => (0.0, 2f64.powi(bits) - 1.0),
        };
        // A step that is a power of 2: ties and bounds are exact. A spacing of a quarter step.
        let s = 0.125;
        let spacing = if bits == 8 { 2.0 } else { 0.25 };
        let v: Vec<f64> = (0..160)
            .map(|i| (f64::from(i) - 80.0) * spacing * s)
            .collect();
        let config = LearnedStepConfig::new(bits as u32).with_signed(signed);
        let want: Vec<[f64; 3]> = v.iter().map(|&v| scalar(v, s, below, above)).collect();
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-13)] {
            for elements in [None, Some(16)] {
                let config = config.clone().with_step(s).with_elements(elements);
                let quantiser = layer(config, dtype);
                let input = leaf::<4>(&v, [2, 4, 4, 5], dtype);
                let out = quantiser.forward(input.clone());
                let outputs: Vec<f64> = want.iter().map(|w| w[0]).collect();
                assert_eq!(values(out.clone()), outputs);

                let loss = out * tensor(&weights, [2, 4, 4, 5], dtype);
                let grads = loss.sum().backward();
                let dv: Vec<f64> = want.iter().zip(&weights).map(|(w, g)| w[1] * g).collect();
                let got = values(input.grad(&grads).expect("a gradient"));
                assert_close("input", &got, &dv, 1e-7);
                let factor = 1.0 / (elements.unwrap_or(160) as f64 * above).sqrt();
                let ds: f64 = want.iter().zip(&weights).map(|(w, g)| w[2] * g).sum();
                let got = values(quantiser.step.val().grad(&grads).expect("a gradient"));
                assert_close("step", &got, &[ds * factor], tolerance);
            }
        }
    }
}

/// A step that training has driven to zero or below does no harm, and can come back.
#[test]
fn extreme_inputs_and_steps_stay_finite() {
    for dtype in [DType::F32, DType::F64] {
        for step in [0.0, -3.0, 1e-30, 1e-8, 1e30] {
            let mut quantiser = layer(LearnedStepConfig::new(4), dtype);
            let (id, old, mapper) = quantiser.step.consume();
            let new = old.full_like(step).require_grad();
            quantiser.step = burn::module::Param::from_mapped_value(id, new, mapper);
            let v = leaf::<1>(&[1e30, -1e30, 0.0, -0.0, 1e-30, 0.5, -7.0], [7], dtype);
            let out = quantiser.forward(v.clone());
            assert!(values(out.clone()).iter().all(|x| x.is_finite()));
            let grads = out.sum().backward();
            for gradient in [v.grad(&grads), quantiser.step.val().grad(&grads)] {
                let gradient = values(gradient.expect("a gradient"));
                assert!(gradient.iter().all(|g| g.is_finite()), "{gradient:?}");
            }
        }
    }
}

/// A frozen step keeps the gradient of the input, and evaluation has no tape.
#[test]
fn the_step_may_be_frozen() {
    let quantiser = layer(LearnedStepConfig::new(4).with_step(0.5), DType::F64);
    let v = leaf::<2>(&[0.3, 9.0], [1, 2], DType::F64);
    let out = quantiser.clone().no_grad().forward(v.clone());
    assert_eq!(pull_back(&v, out, &[2.0, 2.0]), [2.0, 0.0]);
    let plain = quantiser.valid().forward(v.inner());
    assert!(!plain.is_autodiff());
    assert_eq!(values(plain), [0.5, 3.5]);
}

/// Descent on the squared error finds a step that is better than the one it began with.
#[test]
fn the_step_learns_the_scale_of_the_data() {
    let v: Vec<f64> = (0..64).map(|i| (f64::from(i) * 0.61).sin()).collect();
    let v = tensor::<2>(&v, [8, 8], DType::F32);
    let error =
        |quantiser: &LearnedStep| (quantiser.forward(v.clone()) - v.clone()).square().mean();
    let mut quantiser = layer(LearnedStepConfig::new(3).with_step(1.0), DType::F32);
    let start = values(error(&quantiser))[0];
    let mut optimiser = SgdConfig::new().init();
    for _ in 0..300 {
        let grads = GradientsParams::from_grads(error(&quantiser).backward(), &quantiser);
        quantiser = optimiser.step(1.0, quantiser, grads);
    }
    let (step, end) = (
        values(quantiser.step.val())[0],
        values(error(&quantiser))[0],
    );
    assert!((0.2..0.4).contains(&step), "{step}");
    assert!(end < start / 5.0, "{start} {end}");
}

#[test]
fn calibration_refuses_values_without_a_scale() {
    let quantiser = layer(LearnedStepConfig::new(4), DType::F32);
    for bad in [
        [0.0, 0.0],
        [f64::NAN, 1.0],
        [f64::INFINITY, 1.0],
        [1e-12, 0.0],
    ] {
        let values = tensor::<1>(&bad, [2], DType::F32);
        let outcome = quantiser.clone().calibrate(values);
        assert_eq!(refused(outcome), ("LearnedStep", "values"));
    }
    let none = Tensor::<1>::zeros([0], &Device::flex());
    let outcome = quantiser.clone().calibrate(none);
    assert_eq!(refused(outcome), ("LearnedStep", "values"));
    // The parameter keeps its identity, so that an optimiser knows it.
    let good = tensor::<1>(&[0.5, -1.0], [2], DType::F32);
    let calibrated = quantiser.clone().calibrate(good).expect("good values");
    assert_eq!(calibrated.step.id, quantiser.step.id);
    assert!(calibrated.step.val().is_require_grad());
}

#[test]
fn impossible_configurations_are_refused() {
    let of = |config: LearnedStepConfig| refused(config.init(&Device::flex()));
    for (bits, signed) in [(0, false), (1, true), (17, true), (17, false), (0, true)] {
        let config = LearnedStepConfig::new(bits).with_signed(signed);
        assert_eq!(of(config), ("LearnedStep", "bits"));
    }
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let config = LearnedStepConfig::new(4).with_step(step);
        assert_eq!(of(config), ("LearnedStep", "step"));
    }
    let config = LearnedStepConfig::new(4).with_elements(Some(0));
    assert_eq!(of(config), ("LearnedStep", "elements"));
}

#[test]
fn a_record_gives_the_same_output() {
    let config = LearnedStepConfig::new(4);
    let v = tensor::<2>(&[0.3, -0.8, 2.0, 0.25], [2, 2], DType::F32);
    let original = layer(config.clone(), DType::F32);
    let original = original.calibrate(v.clone()).expect("good values");
    let fresh = layer(config, DType::F32);
    assert_ne!(
        values(fresh.forward(v.clone())),
        values(original.forward(v.clone()))
    );
    let loaded = reload(&original, fresh);
    assert_eq!(
        values(loaded.forward(v.clone())),
        values(original.forward(v))
    );
}
