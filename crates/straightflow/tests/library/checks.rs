//! Parameters that are looked at first, or found by the check of the cost.

use burn::tensor::{DType, Device, Tensor};
use straightflow::distribution::{Checks, Law};
use straightflow::estimator::REGISTRY;
use straightflow::prelude::*;

use crate::scalar::build;
use crate::support::{laws, leaf, tensor, values};

/// The gradient of a cost that is finite even where a sample is not.
fn gradient(id: &str, law: &Law, checks: Checks) -> Result<Vec<f64>> {
    let method = build(id);
    let kind = method.entry().objective;
    let device = Device::flex().autodiff();
    let state = method.init_state(Key::new(1), StateShape::of(law, 0), &device);
    let method = match state {
        Some(state) => method.bind(&state, None)?,
        None => method,
    };
    let parameters = leaf::<3>(&values(law.natural()), law.dims(), DType::F64);
    let q = Law::new(law.family(), parameters.clone() * 1.0)?.with_checks(checks);
    let cost = |z: Tensor<4>, _: &Law, ()| {
        let bad = z.clone().is_nan();
        (z * 0.7).sin().mask_fill(bad, 0.0).sum_dims(&[2, 3])
    };
    let single = Single::new(&q, (), cost).of_kind(kind);
    let estimate = method.estimate_objective(Key::new(2), &single)?;
    let grads = estimate.surrogate.backward();
    Ok(values(parameters.grad(&grads).expect("gradient")))
}

/// Without checks a good law gives the same bits, and a bad parameter the same error, for every
/// method and family.
#[test]
fn a_bad_parameter_is_found_without_checks_too() {
    for law in laws(DType::F64) {
        let family = law.family().kind();
        let methods = REGISTRY
            .iter()
            .filter(|entry| entry.families.contains(&family));
        for entry in methods {
            let what = format!("{} {family}", entry.id);
            let on = gradient(entry.id, &law, Checks::On).expect(&what);
            let off = gradient(entry.id, &law, Checks::Off).expect(&what);
            assert_eq!(on, off, "{what}");
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                let mut numbers = values(law.natural());
                numbers[1] = bad;
                let natural = tensor(&numbers, law.dims(), DType::F64);
                let law = Law::new(law.family(), natural).expect("the shape is valid");
                for checks in [Checks::On, Checks::Off] {
                    let found = gradient(entry.id, &law, checks);
                    assert!(
                        matches!(found, Err(Error::Parameter { .. })),
                        "{what} {bad} {checks:?}: {found:?}"
                    );
                }
            }
        }
    }
}

/// A wrong cost is still told from a wrong parameter.
#[test]
fn a_bad_cost_is_a_bad_cost_without_checks_too() {
    let q = Bernoulli::from_logits(leaf(&[0.3, 0.1], [2, 1], DType::F64)).expect("valid");
    let q = q.with_checks(Checks::Off);
    let method = build("reinforce");
    let nan = method.estimate(Key::new(1), &q, |z| (z - 2.0).log());
    assert!(matches!(nan, Err(Error::NonFiniteCost { .. })));
    let wide = method.estimate(Key::new(1), &q, |z| z.repeat_dim(2, 2));
    assert!(matches!(wide, Err(Error::CostShape { .. })));
}
