//! Values and gradients of the discrepancies.

use std::sync::Arc;

use straightflow::distribution::CountLaw;
use straightflow::kernel::Kernel;
use straightflow::projection::{Discrepancy, MeanDifference, Mmd, MmdLaw, SelfTerms, Wasserstein};

use crate::{assert_near, expectation, kernels, laws, mmd, rbf};

fn discrepancies() -> Vec<Arc<dyn Discrepancy>> {
    let mut all: Vec<Arc<dyn Discrepancy>> = vec![Arc::new(MeanDifference), Arc::new(Wasserstein)];
    for kernel in kernels() {
        all.push(Arc::new(Mmd::new(kernel)));
    }
    all
}

/// Seven points, so that no level of the laws above is a multiple of 1/7 and the transport distance
/// has no kink at them.
const CLOUD: [f64; 7] = [-0.12, 0.33, 0.83, 1.37, 2.2, 2.9, 4.41];

#[test]
fn mean_gradients_are_the_slopes_of_the_values() {
    for law in laws() {
        for discrepancy in discrepancies() {
            let step = 1e-4 * law.mean();
            let at = |mean: f64| discrepancy.value(&law.with_mean(mean), &CLOUD).unwrap();
            let slope = (at(law.mean() + step) - at(law.mean() - step)) / (2.0 * step);
            let gradient = discrepancy.mean_gradient(&law, &CLOUD).unwrap();
            assert!(
                (gradient - slope).abs() < 1e-7,
                "{law:?} {discrepancy:?}: {gradient} is not {slope}"
            );
        }
    }
}

#[test]
fn values_agree_with_enumeration() {
    for law in laws() {
        for kernel in kernels() {
            let own = expectation(&law, |x| expectation(&law, |y| kernel.value(x - y)));
            let cross: f64 = CLOUD
                .iter()
                .map(|y| expectation(&law, |x| kernel.value(x - y)))
                .sum();
            let mut pairs = 0.0;
            for x in CLOUD {
                for y in CLOUD {
                    pairs += kernel.value(x - y);
                }
            }
            let direct = own - 2.0 * cross / 7.0 + pairs / 49.0;
            let value = Mmd::new(kernel).value(&law, &CLOUD).unwrap();
            assert_near(value, direct, 1e-12);
        }
    }
}

#[test]
fn the_corrected_bernoulli_formula_holds_and_the_printed_one_does_not() {
    for p in [0.05, 0.3, 0.5, 0.9_f64] {
        let law = CountLaw::Binomial {
            trials: 1,
            logit: (p / (1.0 - p)).ln(),
        };
        for h in [0.5, 1.0, 3.0] {
            let kernel = rbf(h);
            let pull = CLOUD
                .iter()
                .map(|y| kernel.value(1.0 - y) - kernel.value(-y))
                .sum::<f64>()
                / CLOUD.len() as f64;
            let self_part = 1.0 - kernel.value(1.0);
            let corrected = 2.0 * ((2.0 * p - 1.0) * self_part - pull);
            let gradient = mmd(h).mean_gradient(&law, &CLOUD).unwrap();
            assert_near(gradient, corrected, 1e-12);
            // As printed: (1 - 2p), and the second kernel also at 1, so that the sum vanishes.
            let printed = 2.0 * (1.0 - 2.0 * p) * self_part;
            assert!((gradient - printed).abs() > 1e-3, "p = {p}, h = {h}");
            // Correcting the kernel alone is not enough unless p = 1/2.
            let one_fix = 2.0 * ((1.0 - 2.0 * p) * self_part - pull);
            assert_eq!((gradient - one_fix).abs() > 1e-3, p != 0.5);
        }
    }
}

#[test]
fn bernoulli_responds_equally_at_both_values() {
    for p in [0.1, 0.5, 0.8_f64] {
        for h in [0.5, 1.0, 2.0] {
            let kernel = rbf(h);
            let law = CountLaw::Binomial {
                trials: 1,
                logit: (p / (1.0 - p)).ln(),
            };
            let law = MmdLaw::new(&law, &kernel).unwrap();
            let expected = (-0.5 / (h * h)).exp() / (h * h);
            assert_near(law.c(0.0), expected, 1e-12);
            assert_near(law.c(1.0), expected, 1e-12);
            assert_near(law.self_terms().gain, expected, 1e-12);
        }
    }
}

#[test]
fn the_weight_is_uncorrelated_with_the_sample() {
    for law in laws() {
        for h in [0.7, 1.0, 2.5] {
            let kernel = rbf(h);
            let prepared = MmdLaw::new(&law, &kernel).unwrap();
            let mean = expectation(&law, |z| prepared.c(z));
            let first = expectation(&law, |z| prepared.c(z) * z);
            assert_near(first / mean, law.mean(), 1e-9);
        }
    }
}

#[test]
fn responses_and_self_terms_agree_with_enumeration() {
    for law in laws() {
        let weight = law.weight().unwrap();
        for kernel in kernels() {
            let prepared = MmdLaw::new(&law, kernel.as_ref()).unwrap();
            for y in [-0.7, 0.0, 1.0, 2.3, 6.0] {
                let r = expectation(&weight, |x| -kernel.fall(x - y, 1.0));
                assert_near(prepared.r(y), r, 1e-13);
                let c = expectation(&weight, |x| {
                    kernel.derivative(x - y) - kernel.derivative(x + 1.0 - y)
                });
                assert_near(prepared.c(y), c, 1e-13);
                for shift in [1.7, -0.3, 1e-9] {
                    let start = expectation(&weight, |x| {
                        kernel.fall(x + 1.0 - y, shift) - kernel.fall(x - y, shift)
                    });
                    assert_near(prepared.fall(y, shift), start, 1e-13 * shift.abs().min(1.0));
                }
            }
            let terms = SelfTerms::new(&law, kernel.as_ref());
            let own = expectation(&law, |x| expectation(&law, |y| kernel.value(x - y)));
            assert_near(terms.kernel_mean, own, 1e-12);
            let bend =
                |d: f64| 2.0 * kernel.value(d) - kernel.value(d + 1.0) - kernel.value(d - 1.0);
            let curvature = expectation(&weight, |x| expectation(&weight, |y| bend(x - y)));
            assert_near(terms.curvature, curvature, 1e-12);
            let gain = expectation(&law, |z| prepared.c(z));
            assert_near(terms.gain, gain, 1e-12);
            let slope = 2.0 * expectation(&law, |z| prepared.r(z));
            assert_near(terms.mean_slope(&law), slope, 1e-12);
        }
    }
}

#[test]
fn far_samples_are_felt_only_by_heavy_tails() {
    for law in laws() {
        let weight = law.weight().unwrap();
        for kernel in kernels() {
            let prepared = MmdLaw::new(&law, kernel.as_ref()).unwrap();
            for y in [-400.0, 400.5, 1e9, -1e15] {
                let r = expectation(&weight, |x| -kernel.fall(x - y, 1.0));
                assert_near(prepared.r(y), r, 1e-13);
                let c = expectation(&weight, |x| {
                    kernel.derivative(x - y) - kernel.derivative(x + 1.0 - y)
                });
                assert_near(prepared.c(y), c, 1e-13);
                assert!(prepared.fall(y, 0.3).is_finite());
            }
        }
    }
}

#[test]
fn nothing_moved_gives_exactly_zero() {
    let original = [0.0, 1.0, 1.0, 3.0, 4.0];
    for law in laws() {
        for discrepancy in discrepancies() {
            let gradient = discrepancy.control_variate_gradient(&law, &original, &original);
            assert_eq!(gradient, Ok(0.0), "{law:?} {discrepancy:?}");
        }
    }
}

#[test]
fn control_variates_are_differences_of_gradients_and_survive_tiny_moves() {
    let original = [0.0, 1.0, 1.0, 3.0, 4.0];
    let slopes = [0.7, -1.1, -1.1, 0.2, 2.0];
    for law in laws() {
        for discrepancy in discrepancies() {
            let moved = |eps: f64| -> Vec<f64> {
                original
                    .iter()
                    .zip(slopes)
                    .map(|(z, s)| z - eps * s)
                    .collect()
            };
            let gradient = |at: &[f64]| discrepancy.mean_gradient(&law, at).unwrap();
            let direct = gradient(&moved(0.3)) - gradient(&original);
            let cv = |eps: f64| {
                discrepancy
                    .control_variate_gradient(&law, &moved(eps), &original)
                    .unwrap()
            };
            assert_near(cv(0.3), direct, 1e-12);
        }
        // For a smooth kernel the rate tends to 2 mean c(z) f'(z); the moves themselves are
        // rounded to 1e-16, which at eps = 1e-7 leaves nine digits.
        let kernel = rbf(1.3);
        let prepared = MmdLaw::new(&law, &kernel).unwrap();
        let limit: f64 = original
            .iter()
            .zip(slopes)
            .map(|(z, s)| prepared.c(*z) * s)
            .sum();
        let eps = 1e-7;
        let moved: Vec<f64> = original
            .iter()
            .zip(slopes)
            .map(|(z, s)| z - eps * s)
            .collect();
        let rate = mmd(1.3)
            .control_variate_gradient(&law, &moved, &original)
            .unwrap()
            / (2.0 * eps);
        assert_near(rate, limit / 5.0, 1e-6 * (1.0 + limit.abs()));
    }
}

#[test]
fn golden_numbers() {
    let law = CountLaw::Poisson { rate: 5.0 };
    let kernel = rbf(1.0);
    let prepared = MmdLaw::new(&law, &kernel).unwrap();
    let terms = prepared.self_terms();
    // Computed with forty digits from the definitions.
    assert_near(terms.kernel_mean, 0.30477997235963555, 2e-15);
    assert_near(terms.curvature, 2.8268760032713513e-2, 1e-15);
    assert_near(terms.gain, 2.7581153680392212e-2, 1e-15);
    assert_near(prepared.r(5.25), 1.1234266768089949e-2, 1e-15);
    assert_near(prepared.c(5.0), 6.859412249498514e-2, 1e-15);
    let wide = SelfTerms::new(&law, &rbf(5.0_f64.sqrt()));
    assert_near(wide.kernel_mean, 0.580628704940827, 2e-15);
    assert_near(wide.curvature, 3.8929417032285946e-2, 1e-15);
    assert_near(wide.gain, 3.8258988888458266e-2, 1e-15);

    let check = |law: &CountLaw, moved: &[f64], original: &[f64], golden: [f64; 4]| {
        let gradient = mmd(1.0).mean_gradient(law, moved).unwrap();
        assert_near(gradient, golden[0], 2e-15);
        let cv = mmd(1.0).control_variate_gradient(law, moved, original);
        assert_near(cv.unwrap(), golden[1], 2e-15);
        let distance = Wasserstein.value(law, moved).unwrap();
        assert_near(distance, golden[2], 1e-13);
        let gradient = Wasserstein.mean_gradient(law, moved).unwrap();
        assert_near(gradient, golden[3], 1e-13);
    };
    let golden = [
        -2.5878203056706368e-2,
        1.5565915369779904e-2,
        1.0753687574761392,
        -1.044595786547341,
    ];
    check(&law, &[3.2, 4.9, 5.5, 8.1], &[3.0, 5.0, 6.0, 8.0], golden);
    let coin = CountLaw::Binomial {
        trials: 1,
        logit: (0.3_f64 / 0.7).ln(),
    };
    let golden = [-0.44468789093459854, 2.7475317410241378e-2, 0.208, -0.8];
    let moved = [-0.1, 0.2, 0.7, 1.3, 0.9];
    check(&coin, &moved, &[0.0, 0.0, 1.0, 1.0, 1.0], golden);
}

#[test]
fn at_a_kink_the_wasserstein_gradient_is_the_mean_of_both_sides() {
    // F(0) = 1/3 = k/N at mean 2 for the geometric law with nine samples.
    let law = CountLaw::NegativeBinomial {
        dispersion: 1.0,
        mean: 2.0,
    };
    let samples = [0.1, 0.3, 0.9, 1.4, 2.2, 2.5, 3.1, 4.0, 7.7];
    let at = |mean: f64| Wasserstein.value(&law.with_mean(mean), &samples).unwrap();
    let gradient = |mean: f64| {
        Wasserstein
            .mean_gradient(&law.with_mean(mean), &samples)
            .unwrap()
    };
    let step = 1e-5;
    assert_near(
        gradient(2.0),
        (at(2.0 + step) - at(2.0 - step)) / (2.0 * step),
        1e-5,
    );
    let (left, right) = (gradient(2.0 - 1e-9), gradient(2.0 + 1e-9));
    assert!((left - right).abs() > 0.05, "{left} {right}");
    assert_near(gradient(2.0), 0.5 * (left + right), 1e-7);
}
