//! REINFORCE: unbiased for each baseline, with the stated formula for each tuple of draws.

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::distribution::{Family, Law};
use straightflow::objective::ObjectiveKind;
use straightflow::prelude::*;

use crate::scalar::{
    Toy, build, cost, cost_at, gradients, pairs, score, small_laws, states, weighted_sum,
};
use crate::support::{assert_close, leaf, tensor, values};

const TOY: Toy = Toy {
    kind: ObjectiveKind::Expectation,
    direct: false,
};

fn exact(law: &Law, toy: Toy) -> Vec<f64> {
    let q = law.clone();
    let single = Single::new(&q, (), |z, q, ()| toy.cost(z, q));
    let gradient = Exact::default().gradient_of(&single);
    values(gradient.expect("few states"))
}

/// f times the score for one draw; the sum over all outcomes is the exact gradient, also for a cost
/// that depends on the parameters directly.
#[test]
fn one_draw_without_a_baseline() {
    let plain = build("reinforce");
    for law in small_laws() {
        let what = format!("{:?}", law.family());
        let all = states(&law);
        let tuples: Vec<_> = all.iter().map(|(z, _)| vec![z.clone()]).collect();
        let got = gradients(&*plain, &law, &tuples, TOY);
        for ((z, _), got) in all.iter().zip(&got) {
            let want: Vec<f64> = score(&law, z).iter().map(|s| s * cost_at(z)).collect();
            assert_close(&format!("{what} at {z:?}"), got, &want, 1e-12);
        }
        for direct in [false, true] {
            let toy = Toy { direct, ..TOY };
            let got = gradients(&*plain, &law, &tuples, toy);
            let mean = weighted_sum(all.iter().map(|(_, p)| *p).zip(&got));
            assert_close(&what, &mean, &exact(&law, toy), 1e-12);
        }
    }
}

/// With two draws it is `(f1 - f2) (score1 - score2) / 2`, and unbiased.
#[test]
fn two_draws_that_leave_one_out() {
    let loo = build("reinforce:baseline=loo,samples=2");
    for law in small_laws() {
        let what = format!("{:?}", law.family());
        let all = pairs(&law);
        let tuples: Vec<_> = all.iter().map(|(pair, _)| pair.to_vec()).collect();
        let got = gradients(&*loo, &law, &tuples, TOY);
        for (([a, b], _), got) in all.iter().zip(&got) {
            let half = (cost_at(a) - cost_at(b)) / 2.0;
            let scores = score(&law, a).into_iter().zip(score(&law, b));
            let want: Vec<f64> = scores.map(|(a, b)| half * (a - b)).collect();
            assert_close(&format!("{what} at {a:?} {b:?}"), got, &want, 1e-12);
        }
        let mean = weighted_sum(all.iter().map(|(_, p)| *p).zip(&got));
        assert_close(&what, &mean, &exact(&law, TOY), 1e-12);
    }
}

/// Three draws, where the factor `n / (n - 1)` is not 2.
#[test]
fn three_draws_that_leave_one_out() {
    let loo = build("reinforce:baseline=loo,samples=3");
    for law in small_laws() {
        let all = states(&law);
        let tuple: Vec<Vec<f64>> = [0, 1, all.len() - 1].map(|i| all[i].0.clone()).to_vec();
        let got = gradients(&*loo, &law, std::slice::from_ref(&tuple), TOY);
        let f: Vec<f64> = tuple.iter().map(|z| cost_at(z)).collect();
        let scores: Vec<Vec<f64>> = tuple.iter().map(|z| score(&law, z)).collect();
        let advantage = [0, 1, 2].map(|i| f[i] - (f[(i + 1) % 3] + f[(i + 2) % 3]) / 2.0);
        let want = weighted_sum(advantage.map(|a| a / 3.0).into_iter().zip(&scores));
        assert_close(&format!("{:?}", law.family()), &got[0], &want, 1e-12);
    }
}

/// As many batch elements as draws, each with draws of its own: the mean is that of the other draws
/// of the same element, never that of the other elements, and never with the draw itself.
#[test]
fn as_many_elements_as_draws_that_leave_one_out() {
    for n in [3, 4] {
        let loo = build(&format!("reinforce:baseline=loo,samples={n}"));
        for law in small_laws() {
            let all = states(&law);
            let draw = |element: usize, i: usize| all[(2 * element + i) % all.len()].0.clone();
            let tuple = |element: usize| (0..n).map(|i| draw(element, i)).collect();
            let tuples: Vec<Vec<Vec<f64>>> = (0..n).map(tuple).collect();
            let got = gradients(&*loo, &law, &tuples, TOY);
            for (tuple, got) in tuples.iter().zip(&got) {
                let f: Vec<f64> = tuple.iter().map(|z| cost_at(z)).collect();
                let scores: Vec<Vec<f64>> = tuple.iter().map(|z| score(&law, z)).collect();
                let advantage = (0..n).map(|i| {
                    let others = (0..n).filter(|j| *j != i).map(|j| f[j]);
                    (f[i] - others.sum::<f64>() / (n as f64 - 1.0)) / n as f64
                });
                let want = weighted_sum(advantage.zip(&scores));
                assert_close(&format!("{:?}, n {n}", law.family()), got, &want, 1e-12);
            }
        }
    }
}

/// In single precision, to six digits.
#[test]
fn single_precision() {
    let loo = build("reinforce:baseline=loo,samples=2");
    for law in small_laws() {
        let [_, d, k] = law.dims();
        let z = states(&law)[..2]
            .iter()
            .flat_map(|(z, _)| z.clone())
            .collect::<Vec<f64>>();
        let gradient = |dtype| {
            let natural = tensor(&values(law.natural()), [1, d, k], dtype);
            let q = Law::new(law.family(), natural).expect("valid");
            let noise = vec![tensor(&z, [2, 1, d, k], dtype)];
            values(loo.gradient(noise, &q, cost).expect("valid"))
        };
        let what = format!("{:?}", law.family());
        assert_close(&what, &gradient(DType::F32), &gradient(DType::F64), 1e-6);
    }
}

/// The surrogate is the mean cost, and the model's own gradient that of the mean cost.
#[test]
fn the_surrogate_and_its_price() {
    let scale = leaf::<1>(&[1.4], [1], DType::F64);
    for law in small_laws() {
        let q = law.leaf();
        for spec in ["reinforce:samples=5", "reinforce:baseline=loo,samples=5"] {
            let estimator = build(spec);
            let plain = estimator.estimate(Key::new(1), &q, cost).expect("valid");
            let price = estimator.price(&law, 5);
            assert_eq!(plain.values.dims(), [5, 1]);
            plain.surrogate.backward();
            assert_eq!(plain.counts.evaluations(), price.evaluations);
            assert_eq!(plain.counts.gradients(), price.gradients);

            let scaled = estimator.estimate(Key::new(1), &q, |z| {
                cost(z) * scale.clone().unsqueeze::<2>()
            });
            let scaled = scaled.expect("valid");
            let mean = values(scaled.values.mean())[0];
            assert_close(spec, &values(scaled.surrogate.clone()), &[mean], 1e-14);
            let grads = scaled.surrogate.backward();
            let own = values(scale.grad(&grads).expect("gradient"));
            assert_close(spec, &own, &[mean / 1.4], 1e-12);
        }
    }
}

#[test]
fn saturated_variables_and_extreme_rates() {
    let logs = [1e-6f64.ln(), 1e6f64.ln()];
    for (family, natural) in [
        (Family::Bernoulli, [-1e4, 1e4]),
        (Family::Binomial { trials: 5 }, [-1e4, 1e4]),
        (Family::Poisson, logs),
        (Family::NegativeBinomial { dispersion: 0.5 }, logs),
        (Family::Categorical, [-1e4, 1e4]),
    ] {
        for dtype in [DType::F32, DType::F64] {
            let dims = if family == Family::Categorical {
                [1, 1, 2]
            } else {
                [1, 2, 1]
            };
            let law = Law::new(family, tensor(&natural, dims, dtype)).expect("valid");
            let q = law;
            for spec in ["reinforce", "reinforce:baseline=loo,samples=3"] {
                let got = build(spec).gradient(Key::new(3), &q, cost);
                let got = values(got.expect("valid"));
                assert!(
                    got.iter().all(|x| x.is_finite()),
                    "{family:?} {spec}: {got:?}"
                );
                if natural[1] == 1e4 {
                    assert!(got.iter().all(|x| *x == 0.0), "{family:?} {spec}: {got:?}");
                }
            }
        }
    }
}

#[test]
fn bad_options_are_refused() {
    let refused = |spec: &str| {
        let built = spec.parse::<Spec>().and_then(|spec| spec.build());
        built.map(|_| ()).expect_err(spec)
    };
    assert!(matches!(
        refused("reinforce:baseline=loo"),
        Error::TooFewSamples {
            needed: 2,
            got: 1,
            ..
        }
    ));
    for spec in [
        "reinforce:decay=1",
        "reinforce:decay=-0.1",
        "reinforce:hidden=0",
    ] {
        assert!(
            matches!(refused(spec), Error::InvalidOption { .. }),
            "{spec}"
        );
    }
    let loo = build("reinforce:baseline=loo,samples=2");
    let q = small_laws().remove(0);
    let one = vec![Tensor::<4>::zeros(
        [1, 1, 2, 1],
        (&q.natural().device(), DType::F64),
    )];
    assert!(matches!(
        loo.gradient(one, &q, cost),
        Err(Error::TooFewSamples { .. })
    ));
    assert!(matches!(
        loo.estimate_bound(Key::new(1), &q, cost),
        Err(Error::UnsupportedObjective { .. })
    ));
}
