//! Log-probabilities, entropies, divergences and moments against statrs, against numbers computed
//! with 50 digits, and against enumeration.

use burn::tensor::DType;
use statrs::distribution::Discrete;
use straightflow::distribution::{CountLaw, Family, Law};
use straightflow::prelude::*;

use crate::scalar::subsets;
use crate::support::{assert_close, laws, leaf, tensor, values};

const PRECISIONS: [(DType, f64); 2] = [(DType::F32, 1e-6), (DType::F64, 1e-12)];

/// `x ln m - m - ln x!` and its like, by an arbitrary-precision library; the arguments are exact.
#[test]
fn count_log_probabilities_agree_with_fifty_digits() {
    let poisson = |rate| CountLaw::Poisson { rate };
    let binomial = |trials, logit| CountLaw::Binomial { trials, logit };
    let negative = |dispersion, mean| CountLaw::NegativeBinomial { dispersion, mean };
    for (law, x, want) in [
        (poisson(1e-6), 0.0, -1e-6),
        (poisson(1e-6), 2.0, -28.324169296488492),
        (poisson(5.0), 3.0, -1.963445731925754),
        (poisson(5.0), 2.5, -2.1773788212618235),
        (poisson(1e6), 1e6, -7.826693895520143),
        (poisson(1e6), 997_000.0, -12.329698403435097),
        (poisson(50.0), 200.0, -130.82738610677626),
        (binomial(7, -0.5), 3.0, -1.263190827771333),
        (binomial(7, -0.5), 2.25, -1.2208954959263443),
        (binomial(1000, 13.8), 999.0, -6.893260351973113),
        (binomial(1_000_000, 0.25), 562_000.0, -7.189081012844047),
        (binomial(20, -1e4), 1.0, -9997.004267726446),
        (binomial(20, 1e4), 20.0, 0.0),
        (negative(1.0, 4.0), 3.0, -2.2788685663767296),
        (negative(2.5, 3.0), 0.0, -1.9711434009106754),
        (negative(2.5, 3.0), 2.5, -1.794085552308512),
        (negative(0.3, 1e6), 1000.0, -10.437476795743946),
        (negative(2.5, 1e6), 1_500_000.0, -14.951269249090116),
        (negative(1e6, 1e6), 1_001_000.0, -8.423892287961547),
        (negative(2.5, 1e-6), 1.0, -13.815511957963993),
    ] {
        let got = law.ln_pmf(x);
        let error = (got - want).abs() / want.abs().max(1.0);
        assert!(error < 1e-13, "{law:?} at {x}: {got}, expected {want}");
    }
}

#[test]
fn log_probabilities_agree_with_statrs() {
    for (dtype, tolerance) in PRECISIONS {
        for natural in [-3.0, -0.4, 0.0, 1.25, 2.5] {
            let parameters = || tensor(&[natural], [1, 1], dtype);
            let z: Vec<f64> = (0..5).map(f64::from).collect();
            let samples = || tensor::<3>(&z, [5, 1, 1], dtype);
            let check = |what: &str, got: Vec<f64>, want: &dyn Fn(u64) -> f64| {
                let want: Vec<f64> = (0..got.len() as u64).map(want).collect();
                assert_close(what, &got, &want, tolerance);
            };

            let p = 1.0 / (1.0 + (-natural).exp());
            let q = Bernoulli::from_logits(parameters()).expect("valid");
            let reference = statrs::distribution::Bernoulli::new(p).expect("valid");
            let bits = tensor(&[0.0, 1.0], [2, 1, 1], dtype);
            check("bernoulli", values(q.log_prob(bits)), &|x| {
                reference.ln_pmf(x)
            });

            let q = Poisson::from_log_rates(parameters()).expect("valid");
            let reference = statrs::distribution::Poisson::new(natural.exp()).expect("valid");
            check("poisson", values(q.log_prob(samples())), &|x| {
                reference.ln_pmf(x)
            });

            let q = Binomial::from_logits(9, parameters()).expect("valid");
            let reference = statrs::distribution::Binomial::new(p, 9).expect("valid");
            check("binomial", values(q.log_prob(samples())), &|x| {
                reference.ln_pmf(x)
            });

            let q = NegativeBinomial::from_log_means(2.5, parameters()).expect("valid");
            let success = 2.5 / (2.5 + natural.exp());
            let reference = statrs::distribution::NegativeBinomial::new(2.5, success);
            let reference = reference.expect("valid");
            check("negative binomial", values(q.log_prob(samples())), &|x| {
                reference.ln_pmf(x)
            });
        }

        let logits = [0.3, -1.0, 2.0];
        let q = Categorical::from_logits(tensor(&logits, [1, 1, 3], dtype)).expect("valid");
        let weights: Vec<f64> = logits.iter().map(|x: &f64| x.exp()).collect();
        let reference = statrs::distribution::Categorical::new(&weights).expect("valid");
        let identity = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let got = values(q.log_prob(tensor(&identity, [3, 1, 1, 3], dtype)));
        let want: Vec<f64> = (0..3).map(|x| reference.ln_pmf(x)).collect();
        assert_close("categorical", &got, &want, tolerance);
    }
}

/// Large rates in single precision: the value must not be the difference of large numbers.
#[test]
fn log_probabilities_of_large_rates_keep_their_digits_in_f32() {
    let log_rate = f64::from(1e6f32.ln());
    let q = Poisson::from_log_rates(tensor(&[log_rate], [1, 1], DType::F32)).expect("valid");
    let z = [999_000.0, 1_000_000.0, 1_002_000.0];
    let got = values(q.log_prob(tensor(&z, [3, 1, 1], DType::F32)));
    let law = CountLaw::Poisson {
        rate: log_rate.exp(),
    };
    let want = z.map(|x| law.ln_pmf(x));
    assert_close("poisson, rate 1e6", &got, &want, 1e-6);
}

/// The derivatives of log q with respect to the parameters and relaxed samples, against
/// differences.
#[test]
fn log_probabilities_have_the_right_derivatives() {
    for law in laws(DType::F64) {
        let dims = law.dims();
        let natural = values(law.natural());
        let z: Vec<f64> = (0..natural.len())
            .map(|i| 0.25 + 0.3 * (i % 3) as f64)
            .collect();
        let at = |natural: &[f64], z: &[f64]| {
            let law = Law::new(law.family(), tensor(natural, dims, DType::F64)).expect("valid");
            let z = tensor::<3>(z, dims, DType::F64).unsqueeze::<4>();
            values(law.log_prob(z).sum())[0]
        };
        let by = |x: &[f64], f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            let step = 1e-5;
            let moved = |i: usize, by: f64| {
                let mut x = x.to_vec();
                x[i] += by;
                f(&x)
            };
            let slope = |i| (moved(i, step) - moved(i, -step)) / (2.0 * step);
            (0..x.len()).map(slope).collect()
        };
        let parameters = leaf::<3>(&natural, dims, DType::F64);
        let samples = leaf::<3>(&z, dims, DType::F64);
        let live = Law::new(law.family(), parameters.clone()).expect("valid");
        let grads = live.log_prob(samples.clone().unsqueeze()).sum().backward();
        let what = format!("{:?}", law.family());
        let got = values(parameters.grad(&grads).expect("gradient"));
        assert_close(&what, &got, &by(&natural, &|x| at(x, &z)), 1e-8);
        let got = values(samples.grad(&grads).expect("gradient"));
        assert_close(&what, &got, &by(&z, &|x| at(&natural, x)), 1e-8);
    }
}

/// Entropies, divergences, means and variances by summing over the support in double precision.
#[test]
fn closed_forms_agree_with_enumeration() {
    for (dtype, tolerance) in PRECISIONS {
        for law in laws(dtype) {
            let law = match law.family() {
                // The one member of the family whose entropy is closed.
                Family::NegativeBinomial { .. } => {
                    let geometric = Family::NegativeBinomial { dispersion: 1.0 };
                    Law::new(geometric, law.natural()).expect("valid")
                }
                _ => law,
            };
            let other = Law::new(law.family(), law.natural() * 0.5 - 0.2).expect("valid");
            let what = format!("{:?} {dtype:?}", law.family());
            let (natural, reference) = (values(law.natural()), values(other.natural()));
            let [batch, d, k] = law.dims();
            let sum_of_element = |each: Vec<f64>| -> Vec<f64> {
                let size = each.len() / batch;
                each.chunks(size).map(|row| row.iter().sum()).collect()
            };
            let tables = |natural: &[f64]| -> Vec<Vec<f64>> {
                match law.family() {
                    Family::Categorical => natural.chunks(k).map(softmax).collect(),
                    Family::Subset { size } => natural
                        .chunks(k)
                        .map(|row| subsets(row, size).into_iter().map(|(_, p)| p).collect())
                        .collect(),
                    family => natural
                        .iter()
                        .map(|x| {
                            let law = family.count_law(*x).expect("ordered");
                            let last = law.window(80.0).1.max(120);
                            (0..=last).map(|z| law.pmf(z as f64)).collect()
                        })
                        .collect(),
                }
            };
            let (p, q) = (tables(&natural), tables(&reference));
            assert_eq!(p.len(), batch * d);

            if let Ok(entropy) = law.entropy() {
                let each = p.iter().map(|p| -> f64 {
                    let terms = p.iter().filter(|p| **p > 0.0);
                    terms.map(|p| -p * p.ln()).sum()
                });
                let want = sum_of_element(each.collect());
                assert_close(&what, &values(entropy), &want, tolerance);
            } else {
                assert!(matches!(
                    law.family(),
                    Family::Poisson | Family::Binomial { .. }
                ));
            }
            let each = p.iter().zip(&q).map(|(p, q)| -> f64 {
                let both = p.iter().zip(q).filter(|(p, q)| **p > 0.0 && **q > 0.0);
                both.map(|(p, q)| p * (p / q).ln()).sum()
            });
            let want = sum_of_element(each.collect());
            let got = values(law.kl(&other).expect("one family"));
            assert_close(&what, &got, &want, tolerance);

            if !law.family().is_vector() {
                let moment = |f: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
                    let of = |p: &Vec<f64>| -> (f64, f64) {
                        let mean: f64 = p.iter().zip(0..).map(|(p, z)| p * f64::from(z)).sum();
                        let spread = p.iter().zip(0..);
                        let variance = spread.map(|(p, z)| p * (f64::from(z) - mean).powi(2));
                        (mean, variance.sum())
                    };
                    p.iter().map(of).map(|(m, v)| f(m, v)).collect()
                };
                assert_close(&what, &values(law.mean()), &moment(&|m, _| m), tolerance);
                assert_close(
                    &what,
                    &values(law.variance()),
                    &moment(&|_, v| v),
                    tolerance,
                );
            }
        }
    }
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|x| x.exp()).sum();
    logits.iter().map(|x| x.exp() / total).collect()
}

/// The derivatives of a divergence with respect to both arguments, against differences.
#[test]
fn divergences_have_the_right_derivatives() {
    for law in laws(DType::F64) {
        let dims = law.dims();
        let first = values(law.natural());
        let second: Vec<f64> = first.iter().map(|x| x * 0.5 - 0.2).collect();
        let at = |a: &[f64], b: &[f64]| {
            let [a, b] =
                [a, b].map(|x| Law::new(law.family(), tensor(x, dims, DType::F64)).expect("valid"));
            values(a.kl(&b).expect("one family").sum())[0]
        };
        let live = [&first, &second].map(|x| leaf::<3>(x, dims, DType::F64));
        let [a, b] = live
            .clone()
            .map(|x| Law::new(law.family(), x).expect("valid"));
        let grads = a.kl(&b).expect("one family").sum().backward();
        for (side, parameters) in live.iter().enumerate() {
            let got = values(parameters.grad(&grads).expect("gradient"));
            for (i, got) in got.iter().enumerate() {
                let moved = |by: f64| {
                    let mut both = [first.clone(), second.clone()];
                    both[side][i] += by;
                    at(&both[0], &both[1])
                };
                let want = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!(
                    (got - want).abs() < 1e-8,
                    "{:?}: {got} {want}",
                    law.family()
                );
            }
        }
    }
}

/// A window holds all but the stated probability, and not much more than it must.
#[test]
fn windows_hold_the_stated_probability() {
    let laws = [
        CountLaw::Poisson { rate: 1e-6 },
        CountLaw::Poisson { rate: 5.0 },
        CountLaw::Poisson { rate: 3e4 },
        CountLaw::Binomial {
            trials: 500,
            logit: -2.0,
        },
        CountLaw::Binomial {
            trials: 3,
            logit: 20.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 0.2,
            mean: 30.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 1.0,
            mean: 4.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 80.0,
            mean: 500.0,
        },
    ];
    for law in laws {
        for log_tail in [5.0f64, 20.0] {
            let (lo, hi) = law.window(log_tail);
            let far = law.window(80.0).1;
            let mass = |range: std::ops::RangeInclusive<u64>| -> f64 {
                range.map(|x| law.pmf(x as f64)).sum()
            };
            let bound = (-log_tail).exp();
            let above = if far > hi { mass(hi + 1..=far) } else { 0.0 };
            let below = if lo > 0 { mass(0..=lo - 1) } else { 0.0 };
            assert!(above <= bound && below <= bound, "{law:?}: {above} {below}");
            // The geometric bound is loose by the factor of its first ratio only.
            if hi > lo && law.maximum() != Some(hi) {
                assert!(
                    mass(hi - 1..=far) > bound / 50.0,
                    "{law:?}: window too wide"
                );
            }
        }
    }
}

/// The distribution function against sums of probabilities, also where the continued fraction of
/// the incomplete beta function would need many terms.
#[test]
fn distribution_functions_are_sums() {
    for law in [
        CountLaw::Poisson { rate: 0.3 },
        CountLaw::Poisson { rate: 1e6 },
        CountLaw::Binomial {
            trials: 9,
            logit: 0.4,
        },
        CountLaw::Binomial {
            trials: 3000,
            logit: 0.4,
        },
        CountLaw::Binomial {
            trials: 2_000_000,
            logit: 0.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 0.3,
            mean: 40.0,
        },
        CountLaw::NegativeBinomial {
            dispersion: 5000.0,
            mean: 7000.0,
        },
    ] {
        let sd = law.variance().sqrt();
        for deviations in [-2.0, -0.1, 0.0, 0.5, 3.0] {
            let x = (law.mean() + deviations * sd).round();
            if x < 0.0 {
                continue;
            }
            let (lo, _) = law.window(60.0);
            let want: f64 = (lo..=x as u64).map(|x| law.pmf(x as f64)).sum();
            let got = law.cdf(x);
            assert!((got - want).abs() < 1e-11, "{law:?} at {x}: {got} {want}");
        }
    }
}

/// burn 0.22.1 differentiates a division by a number in single precision; the library multiplies by
/// the reciprocal wherever a tape may be.
#[test]
fn derivatives_keep_double_precision() {
    let means = leaf::<2>(&[2.1], [1, 1], DType::F64);
    let q = Binomial::from_means(7, means.clone()).expect("valid");
    let grads = q.logits().sum().backward();
    let got = values(means.grad(&grads).expect("gradient"))[0];
    let want = 1.0 / 2.1 + 1.0 / 4.9;
    assert!((got - want).abs() < 1e-14, "{got} {want}");

    let log_means = leaf::<2>(&[0.3], [1, 1], DType::F64);
    let q = NegativeBinomial::from_log_means(0.7, log_means.clone()).expect("valid");
    let grads = q.variance().sum().backward();
    let got = values(log_means.grad(&grads).expect("gradient"))[0];
    let mean = 0.3f64.exp();
    let want = mean + 2.0 * mean * mean / 0.7;
    assert!((got - want).abs() < 1e-14, "{got} {want}");
}
