//! What all relaxations promise.

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::distribution::{Family, Law};
use straightflow::estimator::Temperature;
use straightflow::prelude::*;

use crate::scalar_relaxation::{build, cost};
use crate::support::{assert_close, laws, leaf, tensor, values};

/// One of each, with options that are not the defaults.
const SPECS: &[&str] = &[
    "gumbel-softmax:temperature=0.7",
    "straight-through-gumbel:temperature=0.4",
    "gumbel-rao:draws=3,temperature=0.6",
    "gapped-straight-through:gap=0.5,temperature=0.8",
    "reinmax",
    "reinmax:temperature=1.3",
    "exponential-arrival:temperature=0.3",
    "exponential-arrival:relaxation=sigmoid,temperature=0.2",
    "truncated-gumbel:temperature=0.6",
    "truncated-gumbel:hard=on,tail=0.001",
    "relaxed-top-k:temperature=0.6",
];

fn supported(estimator: &dyn Estimator, dtype: DType) -> Vec<Law> {
    let families = estimator.entry().families;
    let all = laws(dtype).into_iter();
    all.filter(|law| families.contains(&law.family().kind()))
        .collect()
}

/// Drop-in and estimate are one code path, the value is the mean cost, the price is the declared
/// one.
#[test]
fn relaxations_are_pathwise_estimators_of_the_declared_price() {
    for spec in SPECS {
        for samples in [1, 3] {
            let mut spec: Spec = spec.parse().expect("valid");
            spec.set("samples", &samples.to_string());
            let estimator = spec.build().expect("valid");
            assert_eq!(
                estimator.spec().build().expect("valid").config(),
                estimator.config()
            );
            for dtype in [DType::F32, DType::F64] {
                for law in supported(&*estimator, dtype) {
                    let what = format!("{spec} {:?} {dtype:?}", law.family());
                    let natural = values(law.natural());
                    let live = || {
                        let parameters = leaf::<3>(&natural, law.dims(), dtype);
                        let law = Law::new(law.family(), parameters.clone() * 1.1).expect("valid");
                        (parameters, law)
                    };
                    let key = Key::new(71);
                    let (parameters, q) = live();
                    let z = estimator.sample(key, &q, samples).expect("valid");
                    let grads = cost(z.clone()).mean().backward();
                    let drop_in = values(parameters.grad(&grads).expect("gradient"));

                    let (parameters, q) = live();
                    let estimate = estimator.estimate(key, &q, cost).expect("valid");
                    let grads = estimate.surrogate.backward();
                    let by_estimate = values(parameters.grad(&grads).expect("gradient"));
                    assert_eq!(drop_in, by_estimate, "{what}");
                    assert!(drop_in.iter().any(|x| *x != 0.0), "{what}");
                    assert_eq!(values(z), values(estimate.samples[0].clone()), "{what}");
                    let costs = values(cost(estimate.samples[0].clone()));
                    assert_eq!(values(estimate.values), costs, "{what}");
                    let mean = costs.iter().sum::<f64>() / costs.len() as f64;
                    assert_close(&what, &values(estimate.surrogate), &[mean], 1e-6);
                    let price = estimator.price(&law, samples);
                    assert_eq!(estimate.counts.evaluations(), price.evaluations, "{what}");
                    assert_eq!(estimate.counts.gradients(), price.gradients, "{what}");
                }
            }
        }
    }
}

/// The first elements of a batch get the same bits without the others, also where the others need
/// far more random numbers.
#[test]
fn batch_elements_do_not_influence_each_other() {
    for spec in SPECS {
        let estimator = build(spec);
        for law in supported(&*estimator, DType::F32) {
            let [_, d, k] = law.dims();
            let far = law.natural() + 2.5;
            let both = Tensor::cat(vec![law.natural(), far], 0);
            let both = Law::new(law.family(), both).expect("valid");
            let gradient = |law: &Law| {
                let q = law.clone();
                values(estimator.gradient(Key::new(72), &q, cost).expect("valid"))
            };
            let (alone, together) = (gradient(&law), gradient(&both));
            let size = 2 * d * k;
            // The mean over the batch scales by a power of two, which costs no digits.
            assert_eq!(alone, together[..size], "{spec} {:?}", law.family());
        }
    }
}

/// Temperatures down to the smallest number of single precision, logits of 1e4, rates from 1e-6 to
/// 100.
#[test]
fn extremes_are_finite() {
    let logits = vec![-1e4, 1e4, -60.0, 60.0, 0.0, 1e-30];
    let logs: Vec<f64> = [1e-6, 100.0, 1.0, 1e-3, 30.0, 5.0].map(f64::ln).to_vec();
    let edges = [
        (Family::Bernoulli, &logits, [3, 2, 1]),
        (Family::Categorical, &logits, [1, 2, 3]),
        (Family::Binomial { trials: 12 }, &logits, [3, 2, 1]),
        (Family::Poisson, &logs, [3, 2, 1]),
        (
            Family::NegativeBinomial { dispersion: 5.0 },
            &logs,
            [3, 2, 1],
        ),
        (Family::Subset { size: 2 }, &logits, [1, 2, 3]),
    ];
    for spec in SPECS {
        for temperature in ["1e-3", "2e-38", "1", "20"] {
            let mut spec: Spec = spec.parse().expect("valid");
            // ReinMax has no temperature below 1; a sigmoid of arrivals at 20 has no end.
            let refused = match spec.id() {
                "reinmax" => temperature.contains('-'),
                "exponential-arrival" => temperature == "20",
                _ => false,
            };
            if refused {
                continue;
            }
            spec.set("temperature", temperature);
            spec.set("samples", "8");
            let estimator = spec.build().expect("valid");
            for (family, natural, dims) in &edges {
                if !estimator.entry().families.contains(&family.kind()) {
                    continue;
                }
                for dtype in [DType::F32, DType::F64] {
                    let law = Law::new(*family, tensor(natural, *dims, dtype)).expect("valid");
                    let q = law;
                    let gradient = estimator.gradient(Key::new(73), &q, |z| cost(z * 1e-2));
                    let gradient = match gradient {
                        Ok(gradient) => values(gradient),
                        // A sigmoid that is as soft as this sees the arrivals of 41 rates.
                        Err(Error::TooMuchNoise { .. }) if temperature == "1" => continue,
                        Err(error) => panic!("{spec} {family:?}: {error}"),
                    };
                    assert!(
                        gradient.iter().all(|g| g.is_finite()),
                        "{spec} {family:?} {gradient:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn impossible_options_are_refused() {
    let refused = |spec: String| {
        let error = spec.parse::<Spec>().and_then(|spec| spec.build()).err();
        assert!(
            matches!(error, Some(Error::InvalidOption { .. })),
            "{spec}: {error:?}"
        );
    };
    for spec in SPECS {
        let id = spec.split(':').next().expect("an id");
        for temperature in [
            "0", "-1", "NaN", "inf", "1e-60", "warm", "1>2@0.1", "1>0@0.1", "2>1",
        ] {
            refused(format!("{id}:temperature={temperature}"));
        }
        let none = format!("{id}:samples=0")
            .parse::<Spec>()
            .expect("readable")
            .build();
        assert!(matches!(none.err(), Some(Error::TooFewSamples { .. })));
    }
    for spec in [
        "reinmax:temperature=0.99",
        "reinmax:temperature=2>0.5@1",
        "gumbel-rao:draws=0",
        "gapped-straight-through:gap=-1",
        "truncated-gumbel:tail=0",
        "truncated-gumbel:tail=0.2",
        "exponential-arrival:relaxation=linear",
    ] {
        refused(spec.to_owned());
    }
}

/// Refused before any memory is taken.
#[test]
fn rates_that_need_too_much_noise_are_refused() {
    for (spec, log_rate) in [
        ("exponential-arrival", 1e4f64.ln()),
        ("exponential-arrival", 1e300f64.ln()),
        (
            "exponential-arrival:relaxation=sigmoid,temperature=1",
            200f64.ln(),
        ),
        ("truncated-gumbel", 1e6f64.ln()),
        ("truncated-gumbel", 1e300f64.ln()),
    ] {
        let q = Poisson::from_log_rates(tensor(&[0.0, log_rate], [1, 2], DType::F64));
        let q = q.expect("valid");
        let error = build(spec).gradient(Key::new(1), &q, |z| z.sum_dim(2));
        let error = error.expect_err("too large");
        assert!(
            matches!(error, Error::TooMuchNoise { limit: 4096, .. }),
            "{error}"
        );
        let drop_in = build(spec);
        let drop_in = drop_in.draw(Key::new(1), &q);
        assert_eq!(drop_in.expect_err("too large"), error);
    }
}

#[test]
fn schedules_fall_to_their_floor() {
    let schedule: Temperature = "2>0.25@1e-3".parse().expect("valid");
    assert_eq!(schedule.start(), 2.0);
    assert_eq!(schedule.at(0), Temperature::Constant(2.0));
    assert_eq!(
        schedule.at(500),
        Temperature::Constant(2.0 * (-0.5f64).exp())
    );
    assert_eq!(schedule.at(1_000_000), Temperature::Constant(0.25));
    assert_eq!(schedule.at(500).at(9), schedule.at(500));
    assert_eq!(schedule.to_string().parse(), Ok(schedule));

    // A specification is bound to a step by its temperature; unbound, it works at the start.
    let mut spec: Spec = "gumbel-softmax:temperature=2>0.25@0.001"
        .parse()
        .expect("valid");
    let q = Bernoulli::from_logits(leaf(&[0.3], [1, 1], DType::F64)).expect("valid");
    let draw = |spec: &Spec| {
        let estimator = spec.build().expect("valid");
        let y = estimator.draw(Key::new(5), &q);
        values(y.expect("valid"))[0]
    };
    let start = draw(&spec);
    assert_eq!(
        start,
        draw(&"gumbel-softmax:temperature=2".parse().expect("valid"))
    );
    spec.set("temperature", &schedule.at(500).to_string());
    let later = draw(&spec);
    assert!((later - 0.5).abs() > (start - 0.5).abs(), "{start} {later}");
}
