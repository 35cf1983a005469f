//! The second-order rule: exact on quadratics, without variance on linear costs.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Family, Law};
use straightflow::prelude::*;

use crate::scalar::{self, small_laws, weighted_sum};
use crate::support::{assert_close, tensor, values};

/// All values of one variable with their probabilities.
fn states(law: &Law) -> (Vec<f64>, Vec<f64>) {
    let [_, _, k] = law.dims();
    let natural = values(law.natural());
    match law.family() {
        Family::Categorical => {
            let total: f64 = natural.iter().map(|x| x.exp()).sum();
            let identity = (0..k * k).map(|i| f64::from(u8::from(i % (k + 1) == 0)));
            (
                identity.collect(),
                natural.iter().map(|x| x.exp() / total).collect(),
            )
        }
        family => {
            let law = family.count_law(natural[0]).expect("ordered");
            let (lo, hi) = law.window(60.0);
            let z: Vec<f64> = (lo..=hi).map(|x| x as f64).collect();
            let p = z.iter().map(|z| law.pmf(*z)).collect();
            (z, p)
        }
    }
}

/// The expectation over all samples of one variable, each a batch element.
fn expectation(
    estimator: &dyn Estimator,
    law: &Law,
    cost: impl Fn(Tensor<4>) -> Tensor<2>,
) -> Vec<f64> {
    let [_, _, k] = law.dims();
    let (z, p) = states(law);
    let batch = p.len();
    let all = Law::new(law.family(), law.natural().repeat_dim(0, batch)).expect("valid");
    let q = all;
    let noise = vec![tensor(&z, [1, batch, 1, k], DType::F64)];
    let gradient = estimator.gradient(noise, &q, cost).expect("valid");
    let gradient = values(gradient);
    let mut sum = vec![0.0; k];
    for (row, p) in gradient.chunks(k).zip(p) {
        for (sum, g) in sum.iter_mut().zip(row) {
            *sum += p * g;
        }
    }
    sum
}

fn one_of_each() -> Vec<Law> {
    let law = |family, natural: &[f64]| {
        let k = natural.len();
        Law::new(family, tensor(natural, [1, 1, k], DType::F64)).expect("valid")
    };
    vec![
        law(Family::Bernoulli, &[-1.3]),
        law(Family::Poisson, &[5f64.ln()]),
        law(Family::Binomial { trials: 7 }, &[-0.4]),
        law(Family::NegativeBinomial { dispersion: 1.0 }, &[4f64.ln()]),
        law(Family::NegativeBinomial { dispersion: 2.5 }, &[3f64.ln()]),
        law(Family::Categorical, &[0.3, -1.0, 0.9, 0.0]),
    ]
}

#[test]
fn the_rule_is_exact_on_quadratics() {
    let st = SecondOrderSt::default();
    for law in one_of_each() {
        let k = law.dims()[2];
        let target: Vec<f64> = (0..k).map(|i| 0.37 - 0.8 * i as f64).collect();
        let cost = |z: Tensor<4>| {
            let gap = z - tensor::<4>(&target, [1, 1, 1, k], DType::F64);
            // A quadratic form that is not diagonal: a one-hot vector has more than one direction.
            let along = gap.clone().sum_dim(3).square();
            (gap.square().sum_dim(3) * 0.7 + along * 0.4).squeeze_dims::<2>(&[2, 3])
        };
        let want = Exact::default().gradient(&law.clone(), cost);
        let got = expectation(&st, &law, cost);
        let want = values(want.expect("few states"));
        assert_close(&format!("{:?}", law.family()), &got, &want, 1e-9);

        // And straight-through is not, so the test can fail.
        let biased = expectation(&StraightThrough::default(), &law, cost);
        let gap = biased.iter().zip(&want).map(|(a, b)| (a - b).abs());
        assert!(gap.fold(0.0, f64::max) > 1e-3, "{:?}", law.family());
    }
}

/// Coordinates may be coupled: given the others, a quadratic cost is quadratic in each. For every
/// joint sample of two independent coordinates, weighted with its probability.
#[test]
fn the_rule_is_exact_on_coupled_quadratics() {
    let mut reinmax = 0;
    for law in small_laws() {
        let [_, d, k] = law.dims();
        if d == 1 {
            continue;
        }
        let size = d * k;
        let form = |i: usize, j: usize| (1.7 * i as f64 + 0.6 * j as f64 + 0.3).sin();
        let form: Vec<f64> = (0..size * size).map(|i| form(i / size, i % size)).collect();
        let cost = |z: Tensor<4>| {
            let [n, batch, ..] = z.dims();
            let z = z.reshape([n * batch, size]);
            let z = z.clone() * z.matmul(tensor::<2>(&form, [size, size], DType::F64));
            z.sum_dim(1).reshape([n, batch])
        };
        let exact = Exact::default().gradient(&law.clone(), cost);
        let want = values(exact.expect("few states"));
        let all = scalar::states(&law);
        let batch = all.len();
        let z: Vec<f64> = all.iter().flat_map(|(z, _)| z.clone()).collect();
        let many = Law::new(law.family(), law.natural().repeat_dim(0, batch)).expect("valid");
        let mean = |estimator: &dyn Estimator| {
            let noise = vec![tensor(&z, [1, batch, d, k], DType::F64)];
            let gradient = estimator.gradient(noise, &many, cost);
            let gradient = values(gradient.expect("valid"));
            let rows: Vec<Vec<f64>> = gradient.chunks(size).map(<[f64]>::to_vec).collect();
            weighted_sum(all.iter().map(|(_, p)| *p).zip(&rows))
        };
        let what = format!("{:?}", law.family());
        assert_close(&what, &mean(&SecondOrderSt::default()), &want, 1e-9);
        // ReinMax at temperature 1 is the same rule.
        if matches!(law.family(), Family::Bernoulli | Family::Categorical) {
            assert_close(&what, &mean(&*scalar::build("reinmax")), &want, 1e-9);
            reinmax += 1;
        }
    }
    assert_eq!(reinmax, 2);
}

/// With the baseline the estimate keeps its expectation: two draws, all pairs.
#[test]
fn the_baseline_leaves_the_expectation_alone() {
    for law in one_of_each() {
        let k = law.dims()[2];
        let cost = |z: Tensor<4>| {
            (z * 1.3 + 0.4)
                .sin()
                .sum_dims(&[2, 3])
                .squeeze_dims::<2>(&[2, 3])
        };
        let want = expectation(&SecondOrderSt::default(), &law, cost);
        let (z, p) = states(&law);
        // Values of no weight are left out of the pairs.
        let kept: Vec<usize> = (0..p.len()).filter(|i| p[*i] > 1e-14).collect();
        let pairs: Vec<(usize, usize)> = kept
            .iter()
            .flat_map(|i| kept.iter().map(move |j| (*i, *j)))
            .collect();
        let of = |i: usize| &z[i * k..(i + 1) * k];
        let first = pairs.iter().flat_map(|(i, _)| of(*i));
        let second = pairs.iter().flat_map(|(_, j)| of(*j));
        let noise: Vec<f64> = first.chain(second).copied().collect();
        let batch = pairs.len();
        let all = Law::new(law.family(), law.natural().repeat_dim(0, batch)).expect("valid");
        let loo = SecondOrderStConfig {
            baseline: SecondOrderBaseline::Loo,
            samples: 2,
        };
        let gradient = loo.init().expect("valid").gradient(
            vec![tensor(&noise, [2, batch, 1, k], DType::F64)],
            &all,
            cost,
        );
        let gradient = values(gradient.expect("valid"));
        let mut got = vec![0.0; k];
        for (row, (i, j)) in gradient.chunks(k).zip(&pairs) {
            for (sum, g) in got.iter_mut().zip(row) {
                *sum += p[*i] * p[*j] * g;
            }
        }
        assert_close(&format!("{:?}", law.family()), &got, &want, 1e-9);
    }
}

/// On a linear cost each estimate with the baseline is the exact gradient.
#[test]
fn the_baseline_removes_all_variance_on_linear_costs() {
    for law in one_of_each() {
        let k = law.dims()[2];
        let slope: Vec<f64> = (0..k).map(|i| 2.0 - 0.9 * i as f64).collect();
        let cost = |z: Tensor<4>| {
            let slope = tensor::<4>(&slope, [1, 1, 1, k], DType::F64);
            (z * slope).sum_dim(3).squeeze_dims::<2>(&[2, 3])
        };
        let q = law.clone();
        let want = values(Exact::default().gradient(&q, cost).expect("few states"));
        for (spec, exact) in [("loo,samples=3", true), ("none,samples=3", false)] {
            let spec = format!("second-order-st:baseline={spec}");
            let estimator = spec
                .parse::<Spec>()
                .and_then(|spec| spec.build())
                .expect("valid");
            let mut spread = 0.0f64;
            for seed in 0..5 {
                let got = values(estimator.gradient(Key::new(seed), &q, cost).expect("valid"));
                let gaps = got.iter().zip(&want).map(|(a, b)| (a - b).abs());
                spread = spread.max(gaps.fold(0.0, f64::max));
            }
            let what = format!("{:?} {spec}: {spread}", law.family());
            assert!(if exact { spread < 1e-12 } else { spread > 1e-3 }, "{what}");
        }
    }
}

/// The weights by hand, for given samples.
#[test]
fn weights_are_the_stated_ones() {
    let check = |family, natural: f64, weight: &dyn Fn(f64) -> f64| {
        let law = Law::new(family, tensor(&[natural], [1, 1, 1], DType::F64)).expect("valid");
        for z in [0.0, 1.0, 3.0] {
            let noise = vec![tensor(&[z], [1, 1, 1, 1], DType::F64)];
            let q = law.clone();
            let got = SecondOrderSt::default().gradient(noise, &q, |z| z * 2.0);
            let got = values(got.expect("valid"))[0];
            assert!((got - 2.0 * weight(z)).abs() < 1e-13, "{family:?} at {z}");
        }
    };
    let natural = 0.6f64;
    let p = 1.0 / (1.0 + (-natural).exp());
    let m = natural.exp();
    check(Family::Bernoulli, natural, &|z| {
        (z * (1.0 - p) + (1.0 - z) * p) / 2.0
    });
    check(Family::Poisson, natural, &|z| (z + m) / 2.0);
    check(Family::Binomial { trials: 5 }, natural, &|z| {
        (p * (5.0 - z) + (1.0 - p) * z) / 2.0
    });
    check(
        Family::NegativeBinomial { dispersion: 2.5 },
        natural,
        &|z| (m / (2.5 + m) * (z + 2.5) + z) / 2.0,
    );
}
