//! Chi-square tests of every sampler against statrs' distribution functions.
//!
//! Each test has a false-alarm rate of 1e-6 and a fixed seed; there are fewer than 100, so a change
//! of the generator's stream fails by chance with probability below 1e-4.

use burn::tensor::{DType, Tensor};
use statrs::distribution::{
    Binomial as StatBinomial, ChiSquared, ContinuousCDF, DiscreteCDF,
    NegativeBinomial as StatNegativeBinomial, Poisson as StatPoisson,
};
use straightflow::distribution::CountLaw;
use straightflow::prelude::*;

use crate::support::{tensor, values};

const FALSE_ALARM: f64 = 1e-6;

/// Compares counts in cells with their expectations; cells of fewer than ten expected are merged.
fn chi_square(what: &str, observed: &[f64], expected: &[f64]) {
    let (mut cells, mut open) = (Vec::new(), (0.0, 0.0));
    for (o, e) in observed.iter().zip(expected) {
        open = (open.0 + o, open.1 + e);
        if open.1 >= 10.0 {
            cells.push(open);
            open = (0.0, 0.0);
        }
    }
    match cells.last_mut() {
        Some(last) => *last = (last.0 + open.0, last.1 + open.1),
        None => panic!("{what}: too few samples"),
    }
    assert!(cells.len() >= 2, "{what}: a single cell tests nothing");
    let statistic: f64 = cells.iter().map(|(o, e)| (o - e).powi(2) / e).sum();
    let law = ChiSquared::new(cells.len() as f64 - 1.0).expect("degrees of freedom");
    let p = law.sf(statistic);
    assert!(p > FALSE_ALARM, "{what}: p = {p:.1e}, cells {cells:?}");
}

/// Cuts the line at about forty quantiles and counts.
fn against_cdf(what: &str, samples: &[f64], cdf: impl Fn(u64) -> f64) {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    assert!(sorted[0] >= 0.0 && sorted.iter().all(|x| x.fract() == 0.0));
    let total = sorted.len() as f64;
    // Edges at sample quantiles of the even draws only would bias the test; these come from the
    // distribution function alone.
    let mut edges: Vec<u64> = Vec::new();
    for cell in 1..40 {
        let target = f64::from(cell) / 40.0;
        let (mut lo, mut hi) = (0u64, 1u64);
        while cdf(hi) < target {
            hi *= 2;
        }
        while lo < hi {
            let middle = lo + (hi - lo) / 2;
            if cdf(middle) < target {
                lo = middle + 1;
            } else {
                hi = middle;
            }
        }
        edges.push(lo);
    }
    // Rare values: one cell each, as far as ten are expected.
    edges.extend(0..3);
    edges.sort_unstable();
    edges.dedup();
    let (mut observed, mut expected) = (Vec::new(), Vec::new());
    let (mut seen, mut mass) = (0.0, 0.0);
    for edge in edges {
        let upto = sorted.partition_point(|x| *x <= edge as f64) as f64;
        let cumulative = cdf(edge) * total;
        observed.push(upto - seen);
        expected.push(cumulative - mass);
        (seen, mass) = (upto, cumulative);
    }
    observed.push(total - seen);
    expected.push(total - mass);
    chi_square(what, &observed, &expected);
}

#[test]
fn bernoulli_samples_have_their_probabilities() {
    for (dtype, n) in [(DType::F32, 20_000_000), (DType::F64, 12_000_000)] {
        for p in [1e-6, 1e-3, 0.3, 0.5, 0.9, 1.0 - 1e-6] {
            let logit = f64::ln(p) - f64::ln_1p(-p);
            let logits = tensor(&[logit], [1, 1], dtype);
            // The logit that the type holds decides, not the one that was meant.
            let logit = values(logits.clone())[0];
            let p = 1.0 / (1.0 + (-logit).exp());
            let rest = 1.0 / (1.0 + logit.exp());
            let q = Bernoulli::from_logits(logits).expect("valid");
            let n_here = if p.min(rest) < 1e-4 { n } else { 1_000_000 };
            let z = q.sample(Key::new(11), n_here);
            let zeros = values((-z.clone() + 1.0).cast(DType::F64).sum())[0];
            let ones = values(z.cast(DType::F64).sum())[0];
            assert_eq!(ones + zeros, n_here as f64);
            let expected = [rest * n_here as f64, p * n_here as f64];
            chi_square(&format!("{p} {dtype:?}"), &[zeros, ones], &expected);
        }
    }
}

#[test]
fn categorical_samples_have_their_probabilities() {
    for dtype in [DType::F32, DType::F64] {
        let p = [1e-6, 0.2, 0.5, 0.3 - 2e-6, 1e-6];
        let logits = p.map(f64::ln);
        let q = Categorical::from_logits(tensor(&logits, [1, 1, 5], dtype)).expect("valid");
        // Several calls: a single tensor of this size would not fit a small machine.
        let (n, calls) = (2_000_000, 6);
        let mut observed = [0.0; 5];
        for call in 0..calls {
            let z = q.sample(Key::new(12).child(call), n).cast(DType::F64);
            let counts = values(z.sum_dim(0));
            for (sum, count) in observed.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        let total = (n as u64 * calls) as f64;
        assert_eq!(observed.iter().sum::<f64>(), total);
        // Sorted by size, so that the rare ones are merged with each other.
        let expected = [0, 4, 1, 3, 2].map(|i| p[i] * total);
        let observed = [0, 4, 1, 3, 2].map(|i| observed[i]);
        chi_square(&format!("categorical {dtype:?}"), &observed, &expected);
    }
}

#[test]
fn poisson_samples_follow_their_distribution_function() {
    for dtype in [DType::F32, DType::F64] {
        for (rate, n) in [
            (1e-6, 12_000_000),
            (0.05, 200_000),
            (0.5, 200_000),
            (5.0, 200_000),
            (11.9, 200_000),
            (12.1, 200_000),
            (50.0, 200_000),
            (1e4, 200_000),
            (1e6, 200_000),
        ] {
            let q = Poisson::from_log_rates(tensor(&[f64::ln(rate)], [1, 1], dtype));
            let q = q.expect("valid");
            let rate = values(q.log_rates())[0].exp();
            let samples = values(q.sample(Key::new(13), n));
            let law = StatPoisson::new(rate).expect("valid");
            against_cdf(&format!("rate {rate} {dtype:?}"), &samples, |x| law.cdf(x));
        }
    }
}

#[test]
fn binomial_samples_follow_their_distribution_function() {
    for dtype in [DType::F32, DType::F64] {
        for (trials, p, n) in [
            (1, 0.3, 200_000),
            (7, 0.4, 200_000),
            (7, 0.95, 200_000),
            (40, 1e-6, 2_000_000),
            (40, 1.0 - 1e-6, 2_000_000),
            (1000, 0.25, 200_000),
            (2_000_000, 0.5, 200_000),
        ] {
            let logit = f64::ln(p) - f64::ln_1p(-p);
            let q = Binomial::from_logits(trials, tensor(&[logit], [1, 1], dtype)).expect("valid");
            let logit = values(q.logits())[0];
            let samples = values(q.sample(Key::new(14), n));
            // Near p = 1 the failures are compared: statrs cannot hold the small probability.
            let flip = logit > 0.0;
            let small = 1.0 / (1.0 + logit.abs().exp());
            let reference = StatBinomial::new(small, u64::from(trials)).expect("valid");
            // statrs loses its digits for very many trials; ours is tested against sums.
            let ours = CountLaw::Binomial {
                trials,
                logit: -logit.abs(),
            };
            let cdf = |x: u64| match trials {
                0..=1000 => reference.cdf(x.min(u64::from(trials))),
                _ => ours.cdf(x as f64),
            };
            let rare = |x: &f64| if flip { f64::from(trials) - x } else { *x };
            let rare: Vec<f64> = samples.iter().map(rare).collect();
            let what = format!("{trials} trials, {p} {dtype:?}");
            against_cdf(&what, &rare, cdf);
        }
    }
}

#[test]
fn negative_binomial_samples_follow_their_distribution_function() {
    for dtype in [DType::F32, DType::F64] {
        for (dispersion, mean, n) in [
            (1.0, 1e-6, 12_000_000),
            (1.0, 4.0, 200_000),
            (0.3, 2.0, 200_000),
            (2.5, 3.0, 200_000),
            (40.0, 100.0, 200_000),
            (2.5, 1e6, 200_000),
        ] {
            let log_mean = tensor(&[f64::ln(mean)], [1, 1], dtype);
            let q = NegativeBinomial::from_log_means(dispersion, log_mean).expect("valid");
            let mean = values(q.log_means())[0].exp();
            let samples = values(q.sample(Key::new(15), n));
            let p = dispersion / (dispersion + mean);
            let law = StatNegativeBinomial::new(dispersion, p).expect("valid");
            let what = format!("r {dispersion}, mean {mean} {dtype:?}");
            against_cdf(&what, &samples, |x| law.cdf(x));
        }
    }
}

/// Different coordinates, draws and keys are independent: correlations of 10^5 pairs stay below
/// five standard errors (a false alarm with probability 6e-7 each, 15 in all).
#[test]
fn samples_are_independent() {
    let correlation = |x: &[f64], y: &[f64]| {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (mx, my) = (mean(x), mean(y));
        let dot = |a: &[f64], b: &[f64], ma: f64, mb: f64| -> f64 {
            a.iter().zip(b).map(|(a, b)| (a - ma) * (b - mb)).sum()
        };
        dot(x, y, mx, my) / (dot(x, x, mx, mx) * dot(y, y, my, my)).sqrt()
    };
    for law in crate::support::laws(DType::F64) {
        let n = 100_000;
        let z = law.sample(Key::new(16), n);
        let column =
            |z: &Tensor<4>, j: usize| values(z.clone().slice([0..n, 0..1, j..j + 1, 0..1]));
        let other = law.sample(Key::new(17), n);
        let (a, b, c) = (column(&z, 0), column(&z, 1), column(&other, 0));
        for (x, y) in [(&a[..], &b[..]), (&a[..], &c[..]), (&a[..n - 1], &a[1..])] {
            let r = correlation(x, y) * (x.len() as f64).sqrt();
            assert!(r.abs() < 5.0, "{:?}: {r} standard errors", law.family());
        }
    }
}
