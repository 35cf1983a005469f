//! The interface of a program: methods by name, drop-ins, closures, builders.

use burn::tensor::{DType, Tensor};
use straightflow::estimator::{Layers, REGISTRY};
use straightflow::prelude::*;

use crate::support::{assert_close, laws, leaf, tensor, values};

fn bits() -> Bernoulli {
    let logits = tensor(&[0.4, -1.1, 0.2, 0.9], [2, 2], DType::F64);
    Bernoulli::from_logits(logits).expect("valid")
}

#[test]
fn any_method_has_a_name() {
    for entry in REGISTRY {
        let method = estimator(entry.id).expect("the defaults are valid");
        assert_eq!(method.entry().id, entry.id);
    }
    assert!(matches!(
        estimator("disarn"),
        Err(Error::UnknownEstimator { .. })
    ));
    assert!(matches!(
        estimator("arm:"),
        Err(Error::MalformedSpec { .. })
    ));
}

/// `draw` and `sample` work with every method that is a drop-in, in every family that it takes; the
/// others name those that are, and each of the named ones can be drawn.
#[test]
fn what_cannot_be_drawn_names_what_can() {
    let mut refused = 0;
    for law in laws(DType::F64) {
        let family = law.family().kind();
        for entry in REGISTRY {
            let n = entry.least_samples.max(1);
            let z = estimator(entry.id)
                .expect("valid")
                .sample(Key::new(1), &law, n);
            if entry.layers == Layers::Tape {
                match entry.families.contains(&family) {
                    true => assert_eq!(z.expect(entry.id).dims(), law.sample_dims(n)),
                    false if entry.also.contains(&family) => {
                        assert!(matches!(z, Err(Error::InvalidOption { .. })));
                    }
                    false => assert!(matches!(z, Err(Error::UnsupportedFamily { .. }))),
                }
                continue;
            }
            if !entry.families.contains(&family) && !entry.also.contains(&family) {
                assert!(matches!(z, Err(Error::UnsupportedFamily { .. })), "{z:?}");
                continue;
            }
            let Err(Error::NoDropIn {
                estimator: id,
                drop_ins,
                ..
            }) = z
            else {
                panic!("{} is no drop-in", entry.id);
            };
            assert_eq!(id, entry.id);
            assert!(drop_ins.contains(&"straight-through"));
            for name in drop_ins {
                let n = estimator(name).expect("known").least_samples();
                let z = estimator(name).expect("known").sample(Key::new(1), &law, n);
                assert_eq!(z.expect(name).dims(), law.sample_dims(n));
            }
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused}");
}

/// A cost may have any number of dimensions of size 1 behind, and may be a result.
#[test]
fn costs_of_all_forms_are_one_cost() {
    let q = bits();
    let method = estimator("disarm:samples=3").expect("valid");
    let flat = |z: Tensor<3>| (z - 0.3).square().sum_dim(2).squeeze_dim::<2>(2);
    let want = values(method.gradient(Key::new(1), &q, flat).expect("valid"));
    let long = method.gradient(Key::new(1), &q, |z| (z - 0.3).square().sum_dim(2));
    let fallible = method.gradient(Key::new(1), &q, |z| Ok(flat(z)));
    let both = method.gradient(Key::new(1), &q, |z| {
        let one = Bernoulli::from_logits(tensor(&[0.0], [1, 1], DType::F64))?;
        assert_eq!(one.natural().dims(), [1, 1]);
        Ok((z - 0.3).square().sum_dim(2))
    });
    for got in [long, fallible, both] {
        assert_eq!(values(got.expect("valid")), want);
    }

    let error = Error::NoTrials;
    let failed = method.estimate(Key::new(1), &q, |_| -> Result<Tensor<2>> {
        Err(error.clone())
    });
    assert_eq!(failed.expect_err("the cost failed"), error);
    let wide = method.estimate(Key::new(1), &q, |z| z).expect_err("two");
    let (expected, got) = ([6, 2], vec![6, 2, 2]);
    assert_eq!(wide, Error::CostShape { expected, got });
    let short = method.estimate(Key::new(1), &q, |z| z.sum());
    let (expected, got) = ([6, 2], vec![1]);
    assert_eq!(
        short.expect_err("a scalar"),
        Error::CostShape { expected, got }
    );
}

/// A cost with `q` and a context is the same as one that captures constants.
#[test]
fn context_and_distribution_are_arguments() {
    let (q, x) = (bits(), tensor::<3>(&[0.2, 0.7], [1, 1, 2], DType::F64));
    let method = estimator("arm:samples=3").expect("valid");
    let captured = method.gradient(Key::new(1), &q, |z| (z - x.clone()).square().sum_dim(2));
    let single = Single::new(&q, (Some(x), ()), |z, _, (x, ())| {
        (z - x.expect("given")).square().sum_dim(2)
    });
    let given = method.gradient_of(Key::new(1), &single);
    assert_eq!(
        values(given.expect("valid")),
        values(captured.expect("valid"))
    );
    let bound = single.of_kind(ObjectiveKind::Bound);
    let refused = Exact::default().expectation_of(&bound).map(|_| ());
    assert!(matches!(refused, Err(Error::UnsupportedObjective { .. })));
}

#[test]
fn configurations_have_builders() {
    let built = GumbelSoftmaxConfig::default()
        .with_samples(3)
        .with_temperature(Temperature::Constant(0.7));
    let literal = GumbelSoftmaxConfig {
        samples: 3,
        temperature: Temperature::Constant(0.7),
    };
    assert_eq!(built, literal);
    let spec = built.init().expect("valid").spec().to_string();
    assert_eq!(spec, "gumbel-softmax:samples=3,temperature=0.7");
}

/// The tape of a context is part of the gradient.
#[test]
fn a_context_has_its_gradient() {
    let logits = leaf::<2>(&[0.4, -1.1], [1, 2], DType::F64);
    let q = Bernoulli::from_logits(logits.clone()).expect("valid");
    let scale = logits.clone().sum();
    let estimate = estimator("straight-through").expect("valid").estimate_with(
        Key::new(1),
        &q,
        scale,
        |z, _, scale| z.sum_dim(2) * scale.reshape([1, 1, 1]),
    );
    let estimate = estimate.expect("valid");
    let z = values(estimate.samples[0].clone());
    let grads = estimate.surrogate.backward();
    let want = [0.4f64, -1.1].map(|x| {
        let p = 1.0 / (1.0 + (-x).exp());
        p * (1.0 - p) * (0.4 - 1.1) + z[0] + z[1]
    });
    let got = values(logits.grad(&grads).expect("gradient"));
    assert_close("both ways", &got, &want, 1e-12);
}
