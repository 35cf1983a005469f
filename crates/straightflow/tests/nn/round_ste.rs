//! `RoundSte` against rounding of one number at a time.

use burn::tensor::{DType, Tensor};
use straightflow::Key;
use straightflow::nn::{RoundSte, RoundSteConfig};

use crate::support::{assert_close, leaf, pull_back, refused, reload, tensor, values};

fn layer(step: f64, min: Option<f64>, max: Option<f64>) -> RoundSte {
    let config = RoundSteConfig::new().with_step(step);
    config.with_min(min).with_max(max).init().expect("valid")
}

#[test]
fn a_half_goes_to_the_even_neighbour() {
    for dtype in [DType::F32, DType::F64] {
        let x = [-2.5, -1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 3.49];
        let z = layer(1.0, None, None).forward(tensor(&x, [2, 2, 2], dtype));
        assert_eq!(values(z), [-2.0, -2.0, 0.0, 0.0, 0.0, 2.0, 2.0, 3.0]);
        let z = layer(0.25, None, None).forward(tensor(&[0.125, 0.375, -0.625], [3], dtype));
        assert_eq!(values(z), [0.0, 0.5, -0.5]);
    }
}

/// Rounding, clamping and the mask of the gradient, one number at a time.
#[test]
fn nearest_is_the_scalar_formula() {
    let x: Vec<f64> = (0..240).map(|i| f64::from(i) * 0.0237 - 2.8).collect();
    let weights: Vec<f64> = (0..240).map(|i| (f64::from(i) * 0.7).sin()).collect();
    for (min, max) in [
        (None, None),
        (Some(-0.9), Some(1.5)),
        (Some(0.0), None),
        (None, Some(-0.3)),
    ] {
        let (low, high) = (min.unwrap_or(-1e9), max.unwrap_or(1e9));
        let input = leaf::<4>(&x, [2, 3, 4, 10], DType::F64);
        let z = layer(0.3, min, max).forward(input.clone());
        let want: Vec<f64> = x
            .iter()
            .map(|x| 0.3 * (x.clamp(low, high) / 0.3).round_ties_even())
            .collect();
        assert_close("value", &values(z.clone()), &want, 1e-15);
        let want: Vec<f64> = x
            .iter()
            .zip(&weights)
            .map(|(&x, &w)| if x < low || x > high { 0.0 } else { w })
            .collect();
        assert_eq!(pull_back(&input, z, &weights), want);
    }
}

#[test]
fn the_bounds_themselves_have_a_gradient() {
    for dtype in [DType::F32, DType::F64] {
        let x = [-1.0, 1.5, -1.001, 1.501];
        let input = leaf::<1>(&x, [4], dtype);
        let layer = layer(0.5, Some(-1.0), Some(1.5));
        for stochastic in [false, true] {
            let z = match stochastic {
                false => layer.forward(input.clone()),
                true => layer.forward_stochastic(Key::new(3), input.clone()),
            };
            assert_eq!(values(z.clone()), [-1.0, 1.5, -1.0, 1.5]);
            let gradient = pull_back(&input, z, &[1.0, 2.0, 3.0, 4.0]);
            assert_eq!(gradient, [1.0, 2.0, 0.0, 0.0]);
        }
    }
}

/// Each draw is the neighbour that its uniform number asks for.
#[test]
fn stochastic_is_the_scalar_formula() {
    let x: Vec<f64> = (0..200).map(|i| f64::from(i) * 0.031 - 3.0).collect();
    let (key, step) = (Key::new(7), 0.4);
    for (dtype, tolerance) in [(DType::F32, 1e-6), (DType::F64, 1e-14)] {
        let input = tensor::<2>(&x, [20, 10], dtype);
        let uniform = values(key.uniform::<2>([20, 10], &input.device(), dtype));
        let z = layer(step, Some(-2.0), Some(2.0)).forward_stochastic(key, input.clone());
        let want: Vec<f64> = values(input)
            .iter()
            .zip(&uniform)
            .map(|(x, &u)| {
                let level = (x / step).clamp(-5.0, 5.0);
                step * (level.floor() + f64::from(u < level - level.floor()))
            })
            .collect();
        assert_close("draws", &values(z), &want, tolerance);
    }
}

/// The share of draws that go up is the position in the cell; alpha = 6e-7 (5 standard errors).
#[test]
fn the_mean_is_the_input() {
    const N: usize = 1 << 20;
    let x = Tensor::<1>::full([N], 0.83, (&burn::tensor::Device::flex(), DType::F64));
    let z = values(layer(0.5, None, None).forward_stochastic(Key::new(9), x));
    assert!(z.iter().all(|&z| z == 0.5 || z == 1.0));
    let up = z.iter().filter(|&&z| z == 1.0).count() as f64 / N as f64;
    let (r, n) = (0.66, N as f64);
    assert!((up - r).abs() < 5.0 * (r * (1.0 - r) / n).sqrt(), "{up}");
}

/// f = cos(1.3 z + 0.4) + 0.2 z^2 at x = 0.8 with step 0.5: the expectation, and straight-through's
/// mean over the two outcomes.
#[test]
fn golden_numbers_of_one_cell() {
    let layer = layer(0.5, None, None);
    let (mut cost, mut gradient) = ([f64::NAN; 2], [f64::NAN; 2]);
    for seed in 0..64 {
        let x = leaf::<1>(&[0.8], [1], DType::F64);
        let z = layer.forward_stochastic(Key::new(seed), x.clone());
        let outcome = usize::from(values(z.clone())[0] == 1.0);
        let f = (z.clone() * 1.3 + 0.4).cos() + z.square() * 0.2;
        cost[outcome] = values(f.clone())[0];
        gradient[outcome] = pull_back(&x, f, &[1.0])[0];
    }
    let mean = |pair: [f64; 2]| 0.4 * pair[0] + 0.6 * pair[1];
    assert_close("cost", &[mean(cost)], &[0.261721722579], 1e-12);
    assert_close("gradient", &[mean(gradient)], &[-0.904558629462], 1e-12);
    // The exact gradient and the mean of both ends, from the same two evaluations.
    let exact = (cost[1] - cost[0]) / 0.5;
    assert_close("exact", &[exact], &[-0.952831084375], 1e-12);
    let trapezoid = (gradient[0] + gradient[1]) / 2.0;
    assert_close("trapezoid", &[trapezoid], &[-0.908407223430], 1e-12);
}

#[test]
fn extreme_inputs_stay_finite_and_on_the_lattice() {
    let x = [1e30, -1e30, 1e-30, -1e-30, 0.0, 3e7];
    for dtype in [DType::F32, DType::F64] {
        for (min, max) in [(None, None), (Some(-1.0), Some(1.0))] {
            let layer = layer(0.5, min, max);
            let input = leaf::<1>(&x, [6], dtype);
            let near = layer.forward(input.clone());
            let random = layer.forward_stochastic(Key::new(1), input.clone());
            let both = Tensor::cat(vec![near, random], 0);
            assert!(values(both.clone()).iter().all(|z| z.is_finite()));
            let gradient = pull_back(&input, both, &[1.0; 12]);
            assert!(gradient.iter().all(|&g| g == 0.0 || g == 2.0));
        }
    }
}

#[test]
fn impossible_configurations_are_refused() {
    let of = |step, min, max| {
        let config = RoundSteConfig::new().with_step(step);
        refused(config.with_min(min).with_max(max).init())
    };
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(of(step, None, None), ("RoundSte", "step"));
    }
    assert_eq!(of(0.5, Some(0.3), None), ("RoundSte", "min"));
    assert_eq!(of(0.5, None, Some(f64::INFINITY)), ("RoundSte", "max"));
    assert_eq!(of(0.5, Some(1.0), Some(1.0)), ("RoundSte", "min"));
    layer(0.1, Some(-0.3), Some(0.7));
}

#[test]
fn a_record_gives_the_same_output() {
    let original = layer(0.5, Some(-1.0), Some(1.0));
    let loaded = reload(&original, layer(0.5, Some(-1.0), Some(1.0)));
    let x = tensor::<2>(&[0.3, -0.8, 2.0, 0.25], [2, 2], DType::F32);
    assert_eq!(
        values(loaded.forward(x.clone())),
        values(original.forward(x))
    );
}
