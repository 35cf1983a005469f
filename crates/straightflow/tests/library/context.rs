//! Costs that use features of the encoder, that capture what they must not, or that ignore z: for
//! every method the right gradient or the named error.

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::Law;
use straightflow::estimator::{Bias, Entry, Layers, Need, REGISTRY};
use straightflow::prelude::*;

use crate::scalar::build;
use crate::support::{assert_close, laws, leaf, tensor, values};

/// A method for a law, with state if it has any.
fn method(spec: &str, law: &Law) -> Box<dyn Estimator> {
    let method = build(spec);
    let device = Device::flex().autodiff();
    let state = method.init_state(Key::new(1), StateShape::of(law, 0), &device);
    match state {
        Some(state) => method.bind(&state, None).expect("its own"),
        None => method,
    }
}

/// Every method with every law that it takes.
fn cases() -> impl Iterator<Item = (&'static Entry, &'static str, Law)> {
    let specs = REGISTRY.iter().map(|entry| (*entry, entry.id));
    let sum = REGISTRY.iter().find(|entry| entry.id == "relax");
    let specs = specs.chain(sum.map(|entry| (*entry, "relax:control=sum")));
    specs.flat_map(|(entry, spec)| {
        let fits = move |law: &Law| entry.families.contains(&law.family().kind());
        let laws = laws(DType::F64).into_iter().filter(fits);
        laws.map(move |law| (entry, spec, law))
    })
}

/// Neither linear nor a sum of a function of z and one of the features.
fn bent(z: Tensor<4>, features: Tensor<3>) -> Tensor<4> {
    (z * 0.7 + features.unsqueeze_dim(0))
        .sin()
        .sum_dims(&[2, 3])
}

fn linear(z: Tensor<4>, features: Tensor<3>) -> Tensor<4> {
    (z * features.unsqueeze_dim(0)).sum_dims(&[2, 3])
}

/// What the encoder makes of a natural parameter for the skip connection, behind several operations.
fn features(natural: Tensor<3>) -> Tensor<3> {
    (natural * 0.8 + 0.1).tanh()
}

/// The gradient of the encoder is that of the distribution and that of the features, each as it is
/// on a tape of its own; the first is that of the method with constant features, to the last digits.
#[test]
fn a_skip_connection_has_both_gradients_with_every_method() {
    for (entry, spec, law) in cases() {
        let what = format!("{spec} {:?}", law.family());
        let method = method(spec, &law);
        let batch = law.dims()[0] as f64;
        let (numbers, shape) = (values(law.natural()), law.dims());

        let encoder = leaf::<3>(&numbers, shape, DType::F64);
        let natural = encoder.clone() * 1.0;
        let q = Law::new(law.family(), natural.clone()).expect("valid");
        let cost = |z, _: &Law, features| bent(z, features);
        let single = Single::new(&q, features(natural), cost).of_kind(entry.objective);
        let estimate = method.estimate_objective(Key::new(2), &single);
        let grads = estimate.expect(&what).surrogate.backward();
        let whole = values(encoder.grad(&grads).expect("gradient"));

        let apart = law.leaf();
        let skip = leaf::<3>(&values(features(law.natural())), shape, DType::F64);
        let single = Single::new(&apart, skip.clone(), cost).of_kind(entry.objective);
        let estimate = method.estimate_objective(Key::new(2), &single);
        let grads = estimate.expect(&what).surrogate.backward();
        let by_law = apart.natural().grad(&grads).expect("gradient");
        let by_skip = skip.grad(&grads).expect("gradient");
        let encoder = leaf::<3>(&numbers, shape, DType::F64);
        let scalar = encoder.clone() * by_law.clone() + features(encoder.clone()) * by_skip;
        let grads = scalar.sum().backward();
        let sum = values(encoder.grad(&grads).expect("gradient"));
        assert_close(&what, &whole, &sum, 1e-12);

        let constant = method.gradient_of(Key::new(2), &single).expect(&what);
        let by_law = values(by_law * batch);
        assert_close(&what, &by_law, &values(constant), 1e-12);
    }
}

/// The mean over many batch elements is the gradient by enumeration, of encoder and skip path
/// together: on a bent cost for unbiased methods, on a linear one for those that are exact there.
///
/// Six standard errors and some 200 numbers: a false alarm has probability 4e-7.
#[test]
fn a_skip_connection_has_the_gradient_of_enumeration() {
    const ROWS: usize = 4000;
    let mut compared = 0;
    for (entry, spec, law) in cases() {
        let bent_too = match entry.bias {
            Bias::Unbiased | Bias::UnbiasedOn { .. } => true,
            Bias::Biased { exact_on } => {
                if exact_on.contains("constant") {
                    continue;
                }
                false
            }
        };
        if entry.objective != ObjectiveKind::Expectation || spec == "exponential-arrival" {
            continue;
        }
        let cost = |z: Tensor<4>, _: &Law, features: Tensor<3>| match bent_too {
            true => bent(z, features),
            false => linear(z, features),
        };
        let what = format!("{spec} {:?}", law.family());
        let [_, d, k] = law.dims();
        let numbers = &values(law.natural())[..d * k];
        let one = leaf::<3>(numbers, [1, d, k], DType::F64);
        let q = Law::new(law.family(), one.clone()).expect("valid");
        let exact = Exact::default().expectation_of(&Single::new(&q, features(one.clone()), cost));
        let grads = exact.expect("few states").surrogate().backward();
        let want = values(one.grad(&grads).expect("gradient"));

        let rows = if spec == "enumerate" { 2 } else { ROWS };
        let many = leaf::<3>(&numbers.repeat(rows), [rows, d, k], DType::F64);
        let q = Law::new(law.family(), many.clone()).expect("valid");
        let method = method(spec, q.law());
        let context = features(many.clone());
        let estimate = method.estimate_with(Key::new(3), &q, context, cost);
        let grads = estimate.expect(&what).surrogate.backward();
        let each = values(many.grad(&grads).expect("gradient") * rows as f64);
        for (j, want) in want.iter().enumerate() {
            let column = || each.iter().skip(j).step_by(d * k);
            let mean = column().sum::<f64>() / rows as f64;
            let square = column().map(|g| (g - mean).powi(2)).sum::<f64>();
            let error = (square / (rows as f64 - 1.0) / rows as f64).sqrt();
            assert!(
                (mean - want).abs() <= 6.0 * error + 1e-9,
                "{what} [{j}]: {mean} +- {error}, exact {want}"
            );
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// A cost that captures its distribution is refused where it is differentiated on the side, before
/// burn can panic; elsewhere its gradient is the right one.
#[test]
fn a_captured_distribution_is_right_or_refused() {
    let mut refused: Vec<&str> = Vec::new();
    for (entry, spec, law) in cases() {
        let what = format!("{spec} {:?}", law.family());
        let method = method(spec, &law);
        let cost = |z: Tensor<4>, q: &Law| {
            let value = crate::scalar::cost(z.clone());
            value + q.log_prob(z) * 0.1
        };
        let run = |captured: bool| -> Result<Vec<f64>> {
            let encoder = leaf::<3>(&values(law.natural()), law.dims(), DType::F64);
            let own = Law::new(law.family(), encoder.clone() * 1.0).expect("valid");
            let single = Single::new(&own, (), |z, q, ()| match captured {
                true => cost(z, &own),
                false => cost(z, q),
            });
            let single = single.of_kind(entry.objective);
            let estimate = method.estimate_objective(Key::new(2), &single)?;
            let grads = estimate.surrogate.backward();
            Ok(values(encoder.grad(&grads).expect("gradient")))
        };
        let want = run(false).expect(&what);
        match run(true) {
            Ok(got) => assert_close(&what, &got, &want, 1e-12),
            Err(error) => {
                assert_eq!(error, Error::CapturedTape, "{what}");
                refused.push(spec);
            }
        }

        let own = Law::new(
            law.family(),
            leaf::<3>(&values(law.natural()), law.dims(), DType::F64) * 1.0,
        );
        let own = own.expect("valid");
        let single = Single::new(&own, (), |z, _, ()| cost(z, &own)).of_kind(entry.objective);
        let gradient = method.gradient_of(Key::new(2), &single).map(|_| ());
        assert_eq!(gradient, Err(Error::CapturedTape), "{what}");
    }
    refused.dedup();
    assert_eq!(
        refused,
        ["muprop", "double-cv", "rodeo", "rebar", "relax:control=sum"]
    );
    let own = Bernoulli::from_logits(leaf(&[0.1], [1, 1], DType::F64)).expect("valid");
    let exact = Exact::default().gradient(&own, |z| own.log_prob(z));
    assert_eq!(exact.map(|_| ()), Err(Error::CapturedTape));
}

/// A cost that ignores z or is detached from it is an error for the methods that differentiate it,
/// with one batch element too.
#[test]
fn costs_without_a_gradient_are_named() {
    for (entry, spec, law) in cases() {
        let [_, d, k] = law.dims();
        let numbers = &values(law.natural())[..d * k];
        let law = Law::new(law.family(), leaf(numbers, [1, d, k], DType::F64)).expect("valid");
        let method = method(spec, &law);
        let run = |detached: bool| {
            let single = Single::new(&law, (), |z: Tensor<4>, _: &Law, ()| match detached {
                true => crate::scalar::cost(z.inner()),
                false => tensor(&vec![7.0; z.dims()[0]], [z.dims()[0], 1], DType::F64),
            });
            let single = single.of_kind(entry.objective);
            method.estimate_objective(Key::new(2), &single).map(|_| ())
        };
        let want = match entry.needs.contains(&Need::Gradient) || spec == "relax:control=sum" {
            true => Err(Error::NoGradient),
            false => Ok(()),
        };
        assert_eq!(run(false), want, "{spec} {:?}", law.family());
        assert_eq!(run(true), want, "{spec} {:?}", law.family());
    }
}

/// Drop-ins are hard where nothing is trained, and on a tape unless they say otherwise.
#[test]
fn drop_ins_are_hard_unless_they_are_trained_relaxed() {
    let mut relaxed: Vec<&str> = Vec::new();
    for (entry, spec, law) in cases() {
        if entry.layers != Layers::Tape {
            continue;
        }
        let method = build(spec);
        let n = method.least_samples().max(8);
        let whole = |law: &Law| {
            let z = values(method.sample(Key::new(4), law, n).expect(spec));
            z.iter().all(|x| x.fract() == 0.0)
        };
        assert!(whole(&law), "{spec} {:?}", law.family());
        assert_eq!(whole(&law.leaf()), method.hard_samples(), "{spec}");
        if !method.hard_samples() {
            relaxed.push(spec);
            let z = method.sample(Key::new(4), &law, n).expect("valid");
            assert_eq!(values(z), values(law.sample(Key::new(4), n)), "{spec}");
        }
    }
    relaxed.dedup();
    let known = [
        "gumbel-softmax",
        "exponential-arrival",
        "truncated-gumbel",
        "relaxed-top-k",
    ];
    assert_eq!(relaxed, known);
}
