//! The fused log-probability of binary variables: values, gradients, and what it falls back to.

use std::panic::catch_unwind;

use burn::tensor::{DType, Device, Tensor, activation::log_sigmoid};
use straightflow::fused::bernoulli_log_prob;
use straightflow::prelude::*;

use crate::support::{assert_close, leaf, tensor, values};

/// Logits of all sizes and both signs, zero, and where `exp(-|l|)` is a subnormal `f32`.
fn logits() -> Vec<f64> {
    let mut sizes: Vec<f64> = (-32..=16).map(|i| 10f64.powf(f64::from(i) / 4.0)).collect();
    sizes.extend((0..400).map(|i| f64::from(i) * 0.27));
    sizes.extend([87.3, 87.4, 88.0, 90.5, 97.0, 102.9, 103.2, 103.9, 104.5]);
    sizes.iter().flat_map(|size| [*size, -*size]).collect()
}

/// `ln q(x)` of a hard `x`, from another mathematical library than the standard one.
fn exact(logit: f64, x: f64) -> f64 {
    let wrong = if x == 1.0 { -logit } else { logit };
    -(wrong.max(0.0) + libm::log1p(libm::exp(-wrong.abs())))
}

/// Every logit with both values of `x`, one coordinate per row.
fn hard_grid(dtype: DType) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let rounded = values(tensor::<1>(&logits(), [logits().len()], dtype));
    let count = rounded.len();
    let both: Vec<f64> = rounded.iter().chain(&rounded).copied().collect();
    let x = [vec![0.0; count], vec![1.0; count]].concat();
    let got = values(bernoulli_log_prob(
        tensor(&both, [2 * count, 1], dtype),
        tensor(&x, [2 * count, 1], dtype),
    ));
    (both, x, got)
}

#[test]
fn hard_values_have_full_relative_precision() {
    for (dtype, tolerance, subnormal) in [
        (DType::F32, 2.5e-7, f64::from(f32::from_bits(1))),
        (DType::F64, 1e-14, f64::from_bits(1)),
    ] {
        let (logits, x, got) = hard_grid(dtype);
        for ((l, x), got) in logits.iter().zip(&x).zip(&got) {
            let want = exact(*l, *x);
            let allowed = (tolerance * want.abs()).max(subnormal);
            assert!(
                (got - want).abs() <= allowed,
                "{dtype:?}: logit {l}, x {x}: {got:e} instead of {want:e}"
            );
        }
    }
}

#[test]
fn hard_gradients_have_full_relative_precision() {
    for (dtype, tolerance, subnormal) in [
        (DType::F32, 2.5e-7, f64::from(f32::from_bits(1))),
        (DType::F64, 1e-14, f64::from_bits(1)),
    ] {
        let (values_of_logits, x, _) = hard_grid(dtype);
        let shape = [x.len(), 1];
        let logits = leaf::<2>(&values_of_logits, shape, dtype);
        let log_prob = bernoulli_log_prob(logits.clone(), tensor(&x, shape, dtype));
        let got = values(logits.grad(&log_prob.sum().backward()).expect("gradient"));
        for ((l, x), got) in values_of_logits.iter().zip(&x).zip(got) {
            // sigmoid(-l) for x = 1, and -sigmoid(l) for x = 0.
            let (sign, y) = if *x == 1.0 { (1.0, -l) } else { (-1.0, *l) };
            let rare = libm::exp(-y.abs());
            let want = sign * if y < 0.0 { rare } else { 1.0 } / (1.0 + rare);
            let allowed = (tolerance * want.abs()).max(subnormal);
            assert!(
                (got - want).abs() <= allowed,
                "{dtype:?}: logit {l}, x {x}: {got:e} instead of {want:e}"
            );
        }
    }
}

/// Numbers without pattern in `(-scale, scale)`.
fn numbers(count: usize, shift: f64, scale: f64) -> Vec<f64> {
    (0..count)
        .map(|i| (shift + 1.7 * i as f64 + 0.3 * (i * i) as f64).sin() * scale)
        .collect()
}

/// The same from tensor operations, with rows repeated by hand.
fn composed(logits: Tensor<2>, x: Tensor<2>) -> Tensor<1> {
    let rows = logits.dims()[0].max(x.dims()[0]);
    let repeated = |t: Tensor<2>| {
        let times = rows / t.dims()[0];
        Tensor::cat(vec![t; times], 0)
    };
    let (logits, x) = (repeated(logits), repeated(x));
    let one = x.clone() * log_sigmoid(logits.clone());
    (one + (-x + 1.0) * log_sigmoid(-logits))
        .sum_dim(1)
        .squeeze_dim(1)
}

/// The value and both gradients of a weighted sum of the squared rows, so that each row's incoming
/// gradient is another one.
fn with_gradients(
    f: fn(Tensor<2>, Tensor<2>) -> Tensor<1>,
    [logits, x]: &[Tensor<2>; 2],
) -> (Vec<f64>, [Option<Vec<f64>>; 2]) {
    let value = f(logits.clone(), x.clone());
    let weights = tensor(
        &numbers(value.dims()[0], 0.4, 1.0),
        value.dims(),
        value.dtype(),
    );
    let rows = values(value.clone());
    let grads = (value.square() * weights).sum().backward();
    (rows, [logits, x].map(|t| t.grad(&grads).map(values)))
}

#[test]
fn gradients_are_those_of_the_composed_expression_with_any_repetition() {
    // 21 columns: a full block of lanes and a rest; 5 have no full block.
    for (r, s, d) in [
        (1, 1, 1),
        (4, 4, 21),
        (2, 6, 21),
        (6, 2, 21),
        (1, 5, 32),
        (5, 1, 5),
    ] {
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F64, 1e-12)] {
            let operands = [
                leaf::<2>(&numbers(r * d, 0.0, 4.0), [r, d], dtype),
                leaf::<2>(&numbers(s * d, 2.0, 1.0), [s, d], dtype),
            ];
            let (value, gradients) = with_gradients(bernoulli_log_prob, &operands);
            let (want_value, want) = with_gradients(composed, &operands);
            let case = format!("{dtype:?} [{r}, {d}] [{s}, {d}]");
            assert_close(&case, &value, &want_value, tolerance);
            for (got, want) in gradients.iter().zip(&want) {
                let (got, want) = (got.as_ref().expect("tracked"), want.as_ref().expect("too"));
                assert_close(&case, got, want, tolerance);
            }
        }
    }
}

/// The gradient of `max(l, 0)` at zero must not show.
#[test]
fn zero_logits_have_the_right_gradient() {
    let logits = leaf::<2>(&[0.0, -0.0], [1, 2], DType::F32);
    let x = tensor(&[1.0, 0.0], [1, 2], DType::F32);
    let grads = bernoulli_log_prob(logits.clone(), x).sum().backward();
    assert_eq!(values(logits.grad(&grads).expect("gradient")), [0.5, -0.5]);
}

#[test]
fn operands_without_a_tape_get_no_gradient() {
    let (a, b) = (numbers(6, 0.0, 2.0), numbers(12, 1.0, 1.0));
    let tracked = [
        leaf::<2>(&a, [2, 3], DType::F64),
        leaf::<2>(&b, [4, 3], DType::F64),
    ];
    let (value, both) = with_gradients(bernoulli_log_prob, &tracked);
    let plain = [
        tensor::<2>(&a, [2, 3], DType::F64),
        tensor::<2>(&b, [4, 3], DType::F64),
    ];
    let on_device = plain.clone().map(Tensor::from_inner);
    for constant in [plain, on_device] {
        let [logits, x] = constant.clone();
        let neither = bernoulli_log_prob(logits.clone(), x.clone());
        assert!(!neither.is_tracked());
        assert_eq!(values(neither), value);

        let (_, [by_logits, by_x]) = with_gradients(bernoulli_log_prob, &[tracked[0].clone(), x]);
        assert_eq!((by_logits, by_x), (both[0].clone(), None));
        let (_, [by_logits, by_x]) =
            with_gradients(bernoulli_log_prob, &[logits, tracked[1].clone()]);
        assert_eq!((by_logits, by_x), (None, both[1].clone()));
    }
}

#[test]
fn views_are_read_in_their_order() {
    let logits = tensor::<2>(&numbers(12, 0.0, 2.0), [3, 4], DType::F32);
    let x = tensor::<2>(&numbers(20, 1.0, 1.0), [5, 4], DType::F32);
    let views = bernoulli_log_prob(
        logits.clone().transpose(),
        x.clone().narrow(0, 1, 2).expand([2, 4]).narrow(1, 1, 3),
    );
    let copies = bernoulli_log_prob(
        tensor(&values(logits.transpose()), [4, 3], DType::F32),
        tensor(
            &values(x.narrow(0, 1, 2).narrow(1, 1, 3)),
            [2, 3],
            DType::F32,
        ),
    );
    assert_eq!(values(views), values(copies));
}

/// Half precision has no kernel.
#[test]
fn other_types_are_composed() {
    for dtype in [DType::F16, DType::BF16] {
        let operands = |dtype| {
            [
                leaf::<2>(&numbers(6, 0.0, 2.0), [2, 3], dtype),
                leaf::<2>(&numbers(12, 1.0, 1.0), [4, 3], dtype),
            ]
        };
        let (value, gradients) = with_gradients(bernoulli_log_prob, &operands(dtype));
        let (want_value, want) = with_gradients(bernoulli_log_prob, &operands(DType::F64));
        assert_close("value", &value, &want_value, 3e-2);
        for (got, want) in gradients.into_iter().zip(want) {
            let (got, want) = (got.expect("tracked"), want.expect("too"));
            assert_close("gradient", &got, &want, 6e-2);
        }
    }
}

#[test]
fn what_is_not_a_number_stays_one() {
    for dtype in [DType::F32, DType::F64] {
        let logits = leaf::<2>(&[f64::NAN, 1.0], [2, 1], dtype);
        let x = tensor(&[1.0, 1.0], [2, 1], dtype);
        let log_prob = bernoulli_log_prob(logits.clone(), x);
        let value = values(log_prob.clone());
        let gradient = values(logits.grad(&log_prob.sum().backward()).expect("gradient"));
        for result in [value, gradient] {
            assert!(result[0].is_nan() && result[1].is_finite(), "{result:?}");
        }
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let zeros = |shape: [usize; 2]| Tensor::<2>::zeros(shape, &Device::flex());
    for (logits, x) in [([2, 3], [2, 4]), ([2, 3], [3, 3]), ([0, 3], [1, 3])] {
        let outcome = catch_unwind(|| bernoulli_log_prob(zeros(logits), zeros(x)));
        assert!(outcome.is_err(), "{logits:?} {x:?}");
    }
}

/// `Law::log_prob` takes the fused path and still broadcasts as the sum of its coordinates does.
#[test]
fn the_law_agrees_with_the_sum_over_coordinates() {
    for (batch, samples) in [(3, [4, 3]), (1, [4, 3]), (3, [6, 1]), (3, [1, 3])] {
        let [n, rows] = samples;
        let logits = tensor::<2>(&numbers(batch * 5, 0.0, 3.0), [batch, 5], DType::F64);
        let q = Bernoulli::from_logits(logits).expect("valid");
        let z = tensor::<4>(
            &numbers(n * rows * 5, 1.0, 1.0),
            [n, rows, 5, 1],
            DType::F64,
        );
        let got = q.law().log_prob(z.clone());
        let want = q.law().log_prob_each(z).sum_dim(2).squeeze_dim::<2>(2);
        assert_eq!(got.dims(), want.dims());
        assert_close("log_prob", &values(got), &values(want), 1e-13);
    }
}
