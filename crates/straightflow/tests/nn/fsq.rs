//! `Fsq` against its formula for one number, and the codebook against counting.

use burn::tensor::{DType, Device, Int, Tensor};
use straightflow::Key;
use straightflow::nn::{Fsq, FsqConfig, FsqShift, perplexity};

use crate::support::{assert_close, integers, leaf, pull_back, refused, reload, tensor, values};

fn layer(levels: &[usize]) -> Fsq {
    FsqConfig::new(levels.to_vec()).init().expect("valid")
}

/// `y` and its derivative, for one number.
fn bounded(x: f64, levels: usize, atanh: bool) -> (f64, f64) {
    let half = (levels as f64 - 1.0) * (1.0 - 1e-3) / 2.0;
    let offset = if levels.is_multiple_of(2) { 0.5 } else { 0.0 };
    let ratio: f64 = offset / half;
    let shift = if atanh { ratio.atanh() } else { ratio.tan() };
    let cosh = (x + shift).cosh();
    (half * (x + shift).tanh() - offset, half / (cosh * cosh))
}

#[test]
fn golden_numbers() {
    let x = tensor::<2>(&[0.25, 0.6, -7.0, -0.1], [1, 4], DType::F64);
    let fsq = layer(&[8, 5, 5, 5]);
    assert_eq!(fsq.size(), 1000);
    let want = [
        0.810448973978,
        1.073025034862,
        -1.997996677214,
        -0.199136653261,
    ];
    assert_close("bounded", &values(fsq.bound(x.clone())), &want, 5e-13);
    let z = fsq.forward(x);
    assert_eq!(values(z.codes), [0.25, 0.5, -1.0, 0.0]);
    assert_eq!(integers(z.indices), [429]);
}

/// Values and gradients for every number of levels from 2 to 9, with both shifts.
#[test]
fn it_is_the_scalar_formula() {
    let levels: Vec<usize> = (2..10).collect();
    for (shift, levels) in [
        (FsqShift::Tan, &levels[..]),
        (FsqShift::Atanh, &levels[1..]),
    ] {
        let fsq = FsqConfig::new(levels.to_vec()).with_shift(shift).init();
        let fsq = fsq.expect("valid");
        let d = levels.len();
        let x: Vec<f64> = (0..6 * d).map(|i| (i as f64 * 1.7).sin() * 2.5).collect();
        let weights: Vec<f64> = (0..6 * d).map(|i| (i as f64 * 0.9).cos()).collect();
        let atanh = shift == FsqShift::Atanh;
        let want = |f: &dyn Fn((f64, f64), f64, f64) -> f64| -> Vec<f64> {
            let cells = x.iter().zip(&weights).enumerate();
            cells
                .map(|(i, (&x, &w))| {
                    let levels = levels[i % d];
                    f(bounded(x, levels, atanh), (levels / 2) as f64, w)
                })
                .collect()
        };
        for (dtype, tolerance) in [(DType::F32, 2e-6), (DType::F64, 1e-14)] {
            let input = leaf::<3>(&x, [2, 3, d], dtype);
            let y = fsq.bound(input.clone());
            let want_y = want(&|(y, _), _, _| y);
            assert_close("y", &values(y.clone()), &want_y, tolerance);
            let want_slope = want(&|(_, slope), _, weight| slope * weight);
            assert_close(
                "dy",
                &pull_back(&input, y, &weights),
                &want_slope,
                tolerance,
            );

            let z = fsq.forward(input.clone());
            let want_codes = want(&|(y, _), width, _| y.round_ties_even() / width);
            assert_close("codes", &values(z.codes.clone()), &want_codes, 1e-7);
            let want_slope = want(&|(_, slope), width, weight| slope / width * weight);
            let gradient = pull_back(&input, z.codes, &weights);
            assert_close("dcodes", &gradient, &want_slope, tolerance);
        }
    }
}

/// Every index has codes, all different and in their range, and the codes lead back to it.
#[test]
fn indices_and_codes_are_one_to_one() {
    for levels in [&[8, 5, 5, 5][..], &[2, 3, 4], &[7], &[2, 2, 2, 2, 2]] {
        let fsq = layer(levels);
        let size = fsq.size();
        assert_eq!(size, levels.iter().product::<usize>());
        let all = Tensor::<1, Int>::arange(0..size as i64, &Device::flex());
        let codes = fsq.codes(all.clone().reshape([size, 1]));
        assert_eq!(integers(fsq.indices(codes.clone())), integers(all));
        // Count by hand, the first coordinate fastest.
        let mut digits = vec![0usize; levels.len()];
        for row in values(codes).chunks(levels.len()) {
            for ((&code, &digit), &levels) in row.iter().zip(&digits).zip(levels) {
                let width = (levels / 2) as f64;
                assert!((code - (digit as f64 - width) / width).abs() < 1e-7);
            }
            for (digit, &levels) in digits.iter_mut().zip(levels) {
                *digit = (*digit + 1) % levels;
                if *digit != 0 {
                    break;
                }
            }
        }
    }
}

/// From minus to plus infinity every level comes, in order, and the outer ones at the ends.
#[test]
fn every_level_is_reached() {
    for levels in 2..12 {
        let fsq = layer(&[levels]);
        let x: Vec<f64> = (-4000..=4000).map(|i| f64::from(i) * 0.0025).collect();
        for dtype in [DType::F32, DType::F64] {
            let z = fsq.forward(tensor::<2>(&x, [x.len(), 1], dtype));
            let mut seen = integers(z.indices);
            assert!(seen.is_sorted());
            seen.dedup();
            assert_eq!(seen, (0..levels as i64).collect::<Vec<_>>());
        }
    }
}

/// What the page on quantisers says about the two shifts.
#[test]
fn only_atanh_maps_zero_to_zero() {
    let at_zero = |levels, shift| {
        let fsq = FsqConfig::new(vec![levels]).with_shift(shift).init();
        values(
            fsq.expect("valid")
                .bound(tensor::<1>(&[0.0], [1], DType::F64)),
        )[0]
    };
    assert!((at_zero(4, FsqShift::Tan) + 4.3e-4).abs() < 1e-5);
    assert!((at_zero(2, FsqShift::Tan) + 0.043).abs() < 5e-4);
    for levels in 3..10 {
        assert!(at_zero(levels, FsqShift::Atanh).abs() < 1e-15);
    }
}

/// With (1 - epsilon) a random neighbour is in the codebook too, also at the ends.
#[test]
fn stochastic_codes_stay_in_the_codebook() {
    let fsq = layer(&[2, 5, 8]);
    let x: Vec<f64> = (0..3000).map(|i| f64::from(i % 41) - 20.0).collect();
    for dtype in [DType::F32, DType::F64] {
        let input = tensor::<2>(&x, [1000, 3], dtype);
        let z = fsq.forward_stochastic(Key::new(5), input.clone());
        assert!(
            integers(z.indices.clone())
                .iter()
                .all(|i| (0..80).contains(i))
        );
        let back = fsq.codes(z.indices).cast(dtype);
        assert_close("codes", &values(z.codes.clone()), &values(back), 1e-7);
        // A neighbour: less than a level away.
        let width = tensor::<2>(&[1.0, 2.0, 4.0], [1, 3], dtype);
        let gap = z.codes * width - fsq.bound(input);
        assert!(values(gap).iter().all(|gap| gap.abs() < 1.0));
    }
}

#[test]
fn extreme_inputs_have_finite_gradients() {
    let x = [1e30, -1e30, 300.0, -300.0, 0.0, 1e-30, -1e-30, 30.0];
    for dtype in [DType::F32, DType::F64] {
        let input = leaf::<2>(&x, [2, 4], dtype);
        let z = layer(&[2, 3, 4, 5]).forward(input.clone());
        assert_eq!(z.indices.dims(), [2, 1]);
        let gradient = pull_back(&input, z.codes, &[1.0; 8]);
        assert!(gradient.iter().all(|g| g.is_finite() && *g >= 0.0));
        assert_eq!(gradient[..2], [0.0, 0.0]);
    }
    // Far out, 1 - tanh^2 would be zero in double precision; the derivative is not.
    let input = leaf::<1>(&[25.0], [1], DType::F64);
    let slope = pull_back(&input, layer(&[3]).bound(input.clone()), &[1.0])[0];
    assert!((slope / (4.0 * 0.999 * (-50f64).exp()) - 1.0).abs() < 1e-12);
}

#[test]
fn perplexity_counts_codes_by_their_use() {
    let of = |indices: &[i64]| {
        let shape = [indices.len(), 1];
        perplexity(Tensor::<1, Int>::from_ints(indices, &Device::flex()).reshape(shape))
    };
    assert_eq!(of(&[4; 9]), 1.0);
    assert_close("equal shares", &[of(&[1, 2, 3, 900])], &[4.0], 1e-14);
    let entropy = -(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln());
    assert_close("unequal", &[of(&[5, 5, 0, 5])], &[entropy.exp()], 1e-14);
}

#[test]
fn impossible_configurations_are_refused() {
    let levels = |levels: &[usize]| refused(FsqConfig::new(levels.to_vec()).init());
    assert_eq!(levels(&[]), ("Fsq", "levels"));
    assert_eq!(levels(&[5, 1]), ("Fsq", "levels"));
    assert_eq!(levels(&[2; 31]), ("Fsq", "levels"));
    assert_eq!(levels(&[usize::MAX, 3]), ("Fsq", "levels"));
    assert_eq!(layer(&[2; 30]).size(), 1 << 30);
    for (levels, epsilon) in [(3, -0.1), (3, 0.2), (21, 0.05), (3, f64::NAN)] {
        let config = FsqConfig::new(vec![levels]).with_epsilon(epsilon);
        assert_eq!(refused(config.init()), ("Fsq", "epsilon"));
    }
    let config = FsqConfig::new(vec![3, 2]).with_shift(FsqShift::Atanh);
    assert_eq!(refused(config.init()), ("Fsq", "shift"));
}

#[test]
#[should_panic(expected = "expected 3, got 2")]
fn another_last_axis_panics() {
    layer(&[3, 3, 3]).forward(tensor::<2>(&[0.0; 4], [2, 2], DType::F32));
}

#[test]
fn a_record_gives_the_same_output() {
    let original = layer(&[4, 3]);
    let loaded = reload(&original, layer(&[4, 3]));
    let x = tensor::<2>(&[0.3, -0.8, 2.0, 0.25], [2, 2], DType::F32);
    let (a, b) = (original.forward(x.clone()), loaded.forward(x));
    assert_eq!(values(a.codes), values(b.codes));
    assert_eq!(integers(a.indices), integers(b.indices));
}
