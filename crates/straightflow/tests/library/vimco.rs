//! VIMCO: the stated formula, and the gradient of the enumerated bound of two draws.

use burn::tensor::DType;
use straightflow::Error;
use straightflow::distribution::{Family, Law};
use straightflow::objective::ObjectiveKind;
use straightflow::prelude::*;

use crate::scalar::{
    Toy, build, cost, cost_at, gradients, pairs, score, small_laws, states, weighted_sum,
};
use crate::support::{assert_close, leaf, tensor, values};

const TOY: Toy = Toy {
    kind: ObjectiveKind::Bound,
    direct: false,
};

/// `-log (1/n) sum exp(-f)`.
fn bound(f: &[f64]) -> f64 {
    let least = f.iter().copied().fold(f64::INFINITY, f64::min);
    let sum: f64 = f.iter().map(|f| (least - f).exp()).sum();
    least - (sum / f.len() as f64).ln()
}

/// `sum_k (L - L_-k) score_k + sum_k w_k d f_k`, the latter for a cost that contains `log q`.
fn by_hand(f: &[f64], scores: &[Vec<f64>], direct: bool) -> Vec<f64> {
    let n = f.len();
    let whole = bound(f);
    let weights = (0..n).map(|k| {
        let others = f.iter().sum::<f64>() - f[k];
        let mut replaced = f.to_vec();
        replaced[k] = others / (n as f64 - 1.0);
        let normalised = (whole - f[k]).exp() / n as f64;
        whole - bound(&replaced) + if direct { normalised } else { 0.0 }
    });
    weighted_sum(weights.zip(scores))
}

fn log_prob(law: &Law, z: &[f64]) -> f64 {
    let [_, d, k] = law.dims();
    values(law.log_prob(tensor(z, [1, 1, d, k], DType::F64)))[0]
}

#[test]
fn tuples_have_the_stated_gradient() {
    for law in small_laws() {
        let all = states(&law);
        for n in [2, 3, 5] {
            let tuple: Vec<Vec<f64>> = (0..n).map(|i| all[i * i % all.len()].0.clone()).collect();
            let vimco = build(&format!("vimco:samples={n}"));
            let scores: Vec<Vec<f64>> = tuple.iter().map(|z| score(&law, z)).collect();
            for direct in [false, true] {
                let f = tuple
                    .iter()
                    .map(|z| cost_at(z) + if direct { log_prob(&law, z) } else { 0.0 });
                let want = by_hand(&f.collect::<Vec<_>>(), &scores, direct);
                let toy = Toy { direct, ..TOY };
                let got = gradients(&*vimco, &law, std::slice::from_ref(&tuple), toy);
                let what = format!("{:?}, n = {n}, direct = {direct}", law.family());
                assert_close(&what, &got[0], &want, 1e-12);
            }
        }
    }
}

#[test]
fn single_precision() {
    let vimco = build("vimco:samples=3");
    for law in small_laws() {
        let [_, d, k] = law.dims();
        let all = states(&law);
        let z: Vec<f64> = all[..2]
            .iter()
            .chain(all.last())
            .flat_map(|(z, _)| z.clone())
            .collect();
        let gradient = |dtype| {
            let natural = tensor(&values(law.natural()), [1, d, k], dtype);
            let q = Law::new(law.family(), natural).expect("valid");
            let noise = vec![tensor(&z, [3, 1, d, k], dtype)];
            let toy = Single::new(&q, (), |z, q, ()| TOY.cost(z, q)).of_kind(TOY.kind);
            let got = vimco.gradient_of(noise, &toy);
            values(got.expect("valid"))
        };
        let what = format!("{:?}", law.family());
        assert_close(&what, &gradient(DType::F32), &gradient(DType::F64), 1e-6);
    }
}

/// The sum over all pairs is the gradient of the enumerated bound,
/// `sum P (L (score_1 + score_2) + w_1 d f_1 + w_2 d f_2)`.
#[test]
fn the_expectation_is_the_gradient_of_the_bound() {
    let vimco = build("vimco");
    for law in small_laws() {
        let all = pairs(&law);
        let tuples: Vec<_> = all.iter().map(|(pair, _)| pair.to_vec()).collect();
        for direct in [false, true] {
            let toy = Toy { direct, ..TOY };
            let got = gradients(&*vimco, &law, &tuples, toy);
            let mean = weighted_sum(all.iter().map(|(_, p)| *p).zip(&got));
            let terms: Vec<(f64, Vec<f64>)> = all
                .iter()
                .flat_map(|(pair, p)| {
                    let f = [0, 1].map(|k| {
                        let z = &pair[k];
                        cost_at(z) + if direct { log_prob(&law, z) } else { 0.0 }
                    });
                    let whole = bound(&f);
                    [0, 1].map(|k| {
                        let own = if direct {
                            (whole - f[k]).exp() / 2.0
                        } else {
                            0.0
                        };
                        (p * (whole + own), score(&law, &pair[k]))
                    })
                })
                .collect();
            let want = weighted_sum(terms.iter().map(|(w, s)| (*w, s)));
            assert!(want.iter().any(|x| x.abs() > 1e-3));
            let what = format!("{:?}, direct = {direct}", law.family());
            assert_close(&what, &mean, &want, 1e-12);
        }
    }
}

/// The value of the surrogate is the mean bound, the model's own gradient that of the mean bound.
#[test]
fn the_surrogate_and_its_price() {
    let vimco = build("vimco:samples=5");
    for law in small_laws() {
        let q = law.leaf();
        let plain = vimco.estimate_bound(Key::new(4), &q, cost).expect("valid");
        let f = values(plain.values.clone());
        assert_eq!(plain.values.dims(), [5, 1]);
        assert_close(
            "bound",
            &values(plain.surrogate.clone()),
            &[bound(&f)],
            1e-14,
        );
        plain.surrogate.backward();
        let price = vimco.price(&law, 5);
        assert_eq!(plain.counts.evaluations(), price.evaluations);
        assert_eq!(plain.counts.gradients(), price.gradients);

        let scale = leaf::<1>(&[1.4], [1], DType::F64);
        let scaled = vimco.estimate_bound(Key::new(4), &q, |z| {
            cost(z) * scale.clone().unsqueeze::<2>()
        });
        let grads = scaled.expect("valid").surrogate.backward();
        let own = values(scale.grad(&grads).expect("gradient"));
        let scaled: Vec<f64> = f.iter().map(|f| 1.4 * f).collect();
        let weight = |f: &f64| (bound(&scaled) - 1.4 * f).exp() / 5.0;
        let want: f64 = f.iter().map(|f| weight(f) * f).sum();
        assert_close("own", &own, &[want], 1e-12);
    }
}

/// Costs of any size: a constant in all of them changes nothing, a huge one is finite.
#[test]
fn log_weights_of_any_size() {
    let vimco = build("vimco:samples=3");
    for dtype in [DType::F32, DType::F64] {
        let q = Bernoulli::from_logits(tensor(&[0.4, -1e4, 1e4], [1, 3], dtype)).expect("valid");
        let z = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0];
        let run = |shift: f64, scale: f64| {
            let noise = vec![tensor(&z, [3, 1, 3, 1], dtype)];
            let cost = Single::new(&q, (), |z, _, ()| z.sum_dim(2) * scale + shift);
            let got = vimco.gradient_of(noise, &cost.of_kind(ObjectiveKind::Bound));
            values(got.expect("finite"))
        };
        // A shift that keeps all digits of the cost.
        let (plain, shifted) = (run(0.0, 0.5), run(1024.0, 0.5));
        assert_close("shift", &shifted, &plain, 1e-6);
        assert!(plain[0].abs() > 1e-2, "{plain:?}");
        assert_eq!(plain[1..], [0.0, 0.0]);
        for scale in [1e4, -1e4, 1e30] {
            let got = run(0.0, scale);
            assert!(
                got.iter().all(|x| x.is_finite()),
                "{scale} {dtype:?}: {got:?}"
            );
        }
    }
    for rate in [1e-6f64, 1e6] {
        for family in [
            Family::Poisson,
            Family::NegativeBinomial { dispersion: 0.5 },
        ] {
            let law = Law::new(family, tensor(&[rate.ln()], [1, 1, 1], DType::F32)).expect("valid");
            let q = law;
            let toy = Single::new(&q, (), |z, q, ()| TOY.cost(z, q)).of_kind(TOY.kind);
            let got = values(vimco.gradient_of(Key::new(5), &toy).expect("valid"));
            assert!(
                got.iter().all(|x| x.is_finite()),
                "{family:?} {rate}: {got:?}"
            );
        }
    }
}

#[test]
fn expectations_and_single_draws_are_refused() {
    let q = small_laws().remove(0);
    assert!(matches!(
        build("vimco").estimate(Key::new(1), &q, cost),
        Err(Error::UnsupportedObjective { .. })
    ));
    let one = "vimco:samples=1"
        .parse::<Spec>()
        .and_then(|spec| spec.build());
    assert!(matches!(
        one,
        Err(Error::TooFewSamples {
            needed: 2,
            got: 1,
            ..
        })
    ));
}
