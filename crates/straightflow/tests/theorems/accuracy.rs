//! Accuracy over the whole range of means, against sums over every integer.

use straightflow::distribution::CountLaw;
use straightflow::kernel::{Bandwidth, Kernel, KernelFamily};
use straightflow::projection::{GainTable, MmdLaw, SelfTerms};

use crate::{assert_near, rbf};

fn wide_laws() -> Vec<CountLaw> {
    let negative = |dispersion: f64, mean: f64| CountLaw::NegativeBinomial { dispersion, mean };
    let mut laws: Vec<_> = [1e-6, 0.5, 9.0, 19.0, 40.0, 1e3, 1e6]
        .map(|rate| CountLaw::Poisson { rate })
        .into();
    laws.extend([
        CountLaw::Binomial {
            trials: 100,
            logit: 3.0,
        },
        CountLaw::Binomial {
            trials: 5_000,
            logit: 4.0,
        },
        CountLaw::Binomial {
            trials: 1_000_000,
            logit: 0.3,
        },
        negative(0.1, 1e-3),
        negative(0.1, 3.0),
        negative(0.1, 1e3),
        negative(0.5, 1e4),
        negative(2.5, 1e4),
        negative(50.0, 1e5),
        negative(1e4, 1e5),
    ]);
    laws
}

/// Sums over every integer within the reach of the kernel: `r`, `c`, `r(y) - r(y - s)`, each with
/// the sum of the absolute values of its terms.
fn brute_force(law: &CountLaw, kernel: &dyn Kernel, y: f64, shift: f64) -> [(f64, f64); 3] {
    let weight = law.weight().unwrap();
    let (lo, hi) = weight.window(45.0);
    let lo = lo.max((y - kernel.reach() - 2.0).max(0.0) as u64);
    let hi = hi.min((y + kernel.reach() + 2.0) as u64);
    let mut sums = [(0.0, 0.0); 3];
    // Kahan's compensation: there are millions of terms.
    let mut lost = [0.0; 3];
    for x in lo..=hi {
        let (p, d) = (weight.pmf(x as f64), x as f64 - y);
        let terms = [
            -kernel.fall(d, 1.0),
            kernel.derivative(d) - kernel.derivative(d + 1.0),
            kernel.fall(d + 1.0, shift) - kernel.fall(d, shift),
        ];
        for ((sum, lost), term) in sums.iter_mut().zip(&mut lost).zip(terms) {
            let addend = p * term - *lost;
            let next = sum.0 + addend;
            *lost = (next - sum.0) - addend;
            sum.0 = next;
            sum.1 += (p * term).abs();
        }
    }
    sums
}

#[test]
fn gaussian_responses_are_sums_over_every_integer() {
    for law in wide_laws() {
        let deviation = law.variance().sqrt();
        for h in [
            0.5,
            1.0,
            (0.3 * deviation).max(1.0),
            deviation.max(1.0),
            (3.0 * deviation).max(1.0),
        ] {
            let kernel = rbf(h);
            let prepared = MmdLaw::new(&law, &kernel).unwrap();
            for z in [-1.5, 0.0, 0.7, 3.0] {
                let y = (law.mean() + z * deviation).max(0.0).round();
                let shift = 0.1 * h.min(deviation + 0.1);
                let direct = brute_force(&law, &kernel, y, shift);
                let fast = [prepared.r(y), prepared.c(y), prepared.fall(y, shift)];
                for ((sum, size), fast) in direct.into_iter().zip(fast) {
                    let tolerance = 1e-13 * size + 1e-17 / (h * h);
                    assert!(
                        (fast - sum).abs() <= tolerance,
                        "{law:?} h = {h}, y = {y}: {fast:e} is not {sum:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn self_terms_reach_their_limits() {
    // Small means: E K = 1 - 2 m (1 - K(1)) and M = 2 (1 - K(1)), to first order.
    let kernel = rbf(1.0);
    let small = SelfTerms::new(&CountLaw::Poisson { rate: 1e-6 }, &kernel);
    let gap = -(-0.5_f64).exp_m1();
    assert_near((1.0 - small.kernel_mean) / (2e-6 * gap), 1.0, 1e-5);
    assert_near(small.curvature / (2.0 * gap), 1.0, 1e-5);
    // Large means: Gaussian, E K = h (h^2 + 2 V)^(-1/2), M = E c = h (h^2 + 2 V)^(-3/2).
    for law in [
        CountLaw::Poisson { rate: 1e6 },
        CountLaw::Binomial {
            trials: 10_000_000,
            logit: -1.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 1e7,
            mean: 1e6,
        },
    ] {
        for h in [1.0, 30.0, 3e3] {
            let terms = SelfTerms::new(&law, &rbf(h));
            let square = h * h + 2.0 * law.variance();
            assert_near(terms.kernel_mean * square.sqrt() / h, 1.0, 1e-5);
            assert_near(terms.curvature * square.powf(1.5) / h, 1.0, 1e-5);
            assert_near(terms.gain * square.powf(1.5) / h, 1.0, 1e-5);
        }
    }
}

#[test]
fn self_terms_agree_with_double_sums_at_moderate_means() {
    for law in [
        CountLaw::Poisson { rate: 200.0 },
        CountLaw::Binomial {
            trials: 900,
            logit: 0.6,
        },
        CountLaw::NegativeBinomial {
            dispersion: 0.3,
            mean: 40.0,
        },
    ] {
        let weight = law.weight().unwrap();
        let masses = |law: &CountLaw| -> Vec<f64> {
            let (_, hi) = law.window(42.0);
            (0..=hi).map(|x| law.pmf(x as f64)).collect()
        };
        let (own, tilted) = (masses(&law), masses(&weight));
        for family in [
            "rbf",
            "laplace",
            "energy",
            "rational-quadratic:0.7",
            "mixture:0.5+2",
        ] {
            let kernel = family.parse::<KernelFamily>().unwrap().at(2.0).unwrap();
            // Values and slopes on the lattice, computed once.
            let reach = own.len().max(tilted.len()) + 1;
            let value: Vec<f64> = (0..=reach).map(|d| kernel.value(d as f64)).collect();
            let slope: Vec<f64> = (0..=reach).map(|d| kernel.derivative(d as f64)).collect();
            let signed = |d: isize| d.signum() as f64 * slope[d.unsigned_abs()];
            let (mut mean, mut bend, mut gain) = (0.0, 0.0, 0.0);
            // Inner sums first, to keep the rounding of millions of terms small.
            let inner = |law: &[f64], part: &dyn Fn(usize) -> f64| -> f64 {
                law.iter().enumerate().map(|(y, q)| q * part(y)).sum()
            };
            for (x, p) in own.iter().enumerate() {
                mean += p * inner(&own, &|y| value[x.abs_diff(y)]);
            }
            for (x, p) in tilted.iter().enumerate() {
                bend += p * inner(&tilted, &|y| {
                    let d = x.abs_diff(y);
                    2.0 * value[d] - value[d + 1] - value[d.abs_diff(1)]
                });
                gain += p * inner(&own, &|y| {
                    let d = x as isize - y as isize;
                    signed(d) - signed(d + 1)
                });
            }
            let terms = SelfTerms::new(&law, kernel.as_ref());
            assert_near(terms.kernel_mean / mean, 1.0, 1e-11);
            assert_near(terms.curvature / bend, 1.0, 1e-9);
            assert_near(terms.gain / gain, 1.0, 1e-9);
        }
    }
}

#[test]
fn the_gain_table_is_within_a_millionth() {
    let shapes = [
        CountLaw::Poisson { rate: 1.0 },
        CountLaw::Binomial {
            trials: 1,
            logit: 0.0,
        },
        CountLaw::Binomial {
            trials: 40,
            logit: 0.0,
        },
        CountLaw::Binomial {
            trials: 100_000,
            logit: 0.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 0.2,
            mean: 1.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 30.0,
            mean: 1.0,
        },
    ];
    for shape in shapes {
        for rule in ["0.5", "1", "4", "1sd", "3sd", "2sd>0.6"] {
            let rule: Bandwidth = rule.parse().unwrap();
            let table = GainTable::new(&shape, &KernelFamily::Rbf, rule).unwrap();
            let binomial = matches!(shape, CountLaw::Binomial { .. });
            let (first, last) = if binomial {
                (-16.0, 16.0)
            } else {
                (-14.5, 14.5)
            };
            // An irrational stride, so that knots are hit nowhere.
            for k in 0..400 {
                let natural =
                    first + (last - first) * (f64::from(k) * 0.618_033_988_749_895).fract();
                let law = table.law(natural);
                let terms = SelfTerms::new(&law, &rbf(rule.resolve(&law)));
                let gains = table.at(natural);
                assert_near(gains.linear / terms.gain, 1.0, 1e-6);
                assert_near(gains.projection / terms.curvature, 1.0, 1e-6);
            }
        }
    }
}

#[test]
fn gains_stay_finite_at_extreme_parameters() {
    let rule: Bandwidth = "3sd".parse().unwrap();
    for shape in [
        CountLaw::Poisson { rate: 1.0 },
        CountLaw::Binomial {
            trials: 9,
            logit: 0.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 0.7,
            mean: 1.0,
        },
    ] {
        let table = GainTable::new(&shape, &KernelFamily::Rbf, rule).unwrap();
        for natural in [-1e4, -800.0, -20.0, 20.0, 60.0] {
            let gains = table.at(natural);
            assert!(
                gains.linear > 0.0 && gains.linear.is_finite(),
                "{shape:?} {natural}: {gains:?}"
            );
            assert!(gains.projection > 0.0 && gains.projection.is_finite());
        }
    }
    for logit in [-1e4, 1e4] {
        let kernel = rbf(1.0);
        let law = CountLaw::Binomial { trials: 3, logit };
        let prepared = MmdLaw::new(&law, &kernel).unwrap();
        let edge = if logit < 0.0 { 0.0 } else { 3.0 };
        assert!(prepared.c(edge) > 0.1 && prepared.c(edge).is_finite());
    }
}
