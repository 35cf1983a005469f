//! Kernels against burn's operations in double precision.

use burn::tensor::{Device, TensorData};

use super::*;

fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex())
}

fn double<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    x.cast(DType::F64)
}

/// Values in double precision.
fn values<const D: usize>(x: Tensor<D>) -> Vec<f64> {
    double(x).to_data().try_to_vec().expect("numbers")
}

fn assert_relative(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let allowed = tolerance * want.abs() + f64::from(f32::MIN_POSITIVE);
        assert!(
            (got - want).abs() <= allowed,
            "{what} {i}: {got}, not {want}"
        );
    }
}

/// Numbers of all sizes and both signs.
fn numbers() -> Vec<f32> {
    let sizes = (-40..=6).flat_map(|k| [1.0, 1.3, 1.7].map(|x: f32| x * 2f32.powi(k)));
    sizes.flat_map(|x| [x, -x]).collect()
}

#[test]
fn tanh_has_full_relative_precision() {
    let x = tensor(&numbers(), [numbers().len()]);
    let want = values(double(x.clone()).tanh());
    assert_relative("tanh", &values(tanh(x)), &want, 3e-7);
}

#[test]
fn tanh_has_its_derivative() {
    let device = Device::flex().autodiff();
    let x = Tensor::<1>::from_floats([-0.9, -0.2, 0.0, 0.1, 0.8], &device).require_grad();
    let y = tanh(x.clone());
    let gradient = x.grad(&(y.clone() * y).sum().backward());
    let x = values(x.inner());
    let want: Vec<f64> = x
        .iter()
        .map(|x| 2.0 * x.tanh() / x.cosh().powi(2))
        .collect();
    assert_relative(
        "derivative",
        &values(gradient.expect("tracked")),
        &want,
        2e-6,
    );
}

#[test]
fn the_slope_of_a_sigmoid_has_full_relative_precision() {
    // Further out it is zero.
    let x: Vec<f32> = numbers().into_iter().filter(|x| x.abs() < 69.0).collect();
    let x = tensor(&x, [x.len()]);
    let grad = x.clone() * 0.7 + 0.1;
    let want = values(sigmoid_pullback(double(x.clone()), double(grad.clone())));
    assert_relative("slope", &values(sigmoid_pullback(x, grad)), &want, 6e-7);
}

#[test]
fn logarithms_have_full_relative_precision() {
    let mut x = f32::MIN_POSITIVE;
    while x <= 1.0 {
        let want = f64::from(x).ln();
        assert_relative("ln", &[f64::from(x.ln_of_unit())], &[want], 2e-7);
        x *= 1.003;
    }
    for x in [1.0f32, 1.0 - f32::EPSILON, 1.0 - 1e-3] {
        let want = f64::from(x).ln();
        assert_relative("ln near 1", &[f64::from(x.ln_of_unit())], &[want], 2e-7);
    }
}

/// The kernel in both precisions against burn's operations, for several draws.
#[test]
fn relaxed_bits_agree_with_burn_s_operations() {
    let logits = [-30.0, -4.0, -0.3, 0.0, 1.1, 17.5].map(|x: f32| x);
    let u: Vec<f32> = (0..24)
        .map(|i| (i as f32 * 0.618).fract() * 0.998 + 1e-3)
        .collect();
    let (logits, u) = (tensor(&logits, [2, 3, 1]), tensor(&u, [4, 2, 3, 1]));
    let want = composed_relaxed_bits(double(logits.clone()), double(u.clone()));
    let parts = |bits: RelaxedBits| [bits.z, bits.hard, bits.score, bits.weight].map(values);
    let want = parts(want);
    assert!(
        want[1].contains(&0.0) && want[1].contains(&1.0),
        "both values"
    );
    for (dtype, tolerance) in [(DType::F32, 2e-6), (DType::F64, 1e-14)] {
        let got = relaxed_bits(logits.clone().cast(dtype), u.clone().cast(dtype));
        for (what, (got, want)) in ["z", "hard", "score", "weight"]
            .into_iter()
            .zip(parts(got).iter().zip(&want))
        {
            assert_relative(what, got, want, tolerance);
        }
    }
}

/// Subnormal numbers slow matrix products down by a factor of ten.
#[test]
fn no_pullback_is_subnormal() {
    let x: Vec<f32> = (-1200..1200).map(|i| 0.1 * i as f32).collect();
    let grad = vec![1e-3; x.len()];
    let pulled = sigmoid_pullback(tensor(&x, [x.len()]), tensor(&grad, [x.len()]));
    let pulled = pulled.to_data().try_to_vec::<f32>().expect("numbers");
    for (x, pulled) in x.iter().zip(pulled) {
        assert!(pulled == 0.0 || pulled.is_normal(), "{x}: {pulled}");
        assert_eq!(pulled == 0.0, x.abs() > 69.0, "{x}: {pulled}");
    }
}
