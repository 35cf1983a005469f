//! RODEO: leave-one-out at its start, unbiased and better after training.

use burn::optim::{AdamConfig, GradientsParams};
use burn::tensor::{DType, Device};
use straightflow::distribution::Law;
use straightflow::prelude::*;

use crate::scalar::{build, cost, gradients, pairs, small_laws, weighted_sum};
use crate::support::{assert_close, values};

const TOY: crate::scalar::Toy = crate::scalar::Toy {
    kind: ObjectiveKind::Expectation,
    direct: false,
};

fn bits() -> Law {
    small_laws().remove(0)
}

/// Coefficients of zero leave REINFORCE with the mean of the others.
#[test]
fn it_starts_as_leave_one_out() {
    let law = bits();
    let all = pairs(&law);
    let tuples: Vec<_> = all.iter().map(|(pair, _)| pair.to_vec()).collect();
    let rodeo = build("rodeo");
    let device = Device::flex().autodiff();
    let state = rodeo.init_state(Key::new(1), StateShape::of(&law, 0), &device);
    let bound = rodeo
        .bind(&state.expect("it learns"), None)
        .expect("its own");
    let loo = build("reinforce:baseline=loo,samples=2");
    let [got, want] = [&bound, &loo].map(|method| gradients(&**method, &law, &tuples, TOY));
    assert_close("start", &got.concat(), &want.concat(), 1e-12);
}

/// Its state lowers the variance by its own gradient, and the mean over all pairs stays exact.
#[test]
fn training_lowers_the_variance_and_leaves_the_mean() {
    let law = bits();
    let rodeo = build("rodeo:hidden=16");
    let device = Device::flex().autodiff();
    let shape = StateShape::of(&law, 0);
    let mut state = rodeo
        .init_state(Key::new(1), shape, &device)
        .expect("it learns");
    let all = pairs(&law);
    let tuples: Vec<_> = all.iter().map(|(pair, _)| pair.to_vec()).collect();
    let moments = |state: &State| {
        let bound = rodeo.bind(state, None).expect("its own");
        let each = gradients(&*bound, &law, &tuples, TOY);
        let mean = weighted_sum(all.iter().map(|(_, p)| *p).zip(&each));
        let square = |row: &Vec<f64>| row.iter().map(|g| g * g).sum::<f64>();
        let second: f64 = all
            .iter()
            .zip(&each)
            .map(|((_, p), row)| p * square(row))
            .sum();
        let variance = second - square(&mean);
        (mean, variance)
    };
    let exact = values(Exact::default().gradient(&law, cost).expect("few states"));
    let (mean, before) = moments(&state);
    assert_close("before", &mean, &exact, 1e-12);
    let many = Law::new(law.family(), law.natural().repeat_dim(0, 64)).expect("valid");
    let mut optimiser = AdamConfig::new().with_epsilon(1e-8).init();
    for step in 0..400 {
        let bound = rodeo.bind(&state, None).expect("its own");
        let estimate = bound.estimate(Key::new(2).child(step), &many.leaf(), cost);
        let mut grads = estimate.expect("valid").surrogate.backward();
        let own = GradientsParams::from_module(&mut grads, &state);
        state = optimiser.step(1e-2, state, own);
    }
    let (mean, after) = moments(&state);
    assert_close("after", &mean, &exact, 1e-12);
    println!("variance {before:.5} before, {after:.5} after");
    assert!(after < 0.5 * before, "{after} {before}");
}

/// State of another method is refused by name.
#[test]
fn foreign_state_is_named() {
    let law = bits();
    let device = Device::flex().autodiff();
    let shape = StateShape::of(&law, 0);
    let other = build("double-cv").init_state(Key::new(1), shape, &device);
    let error = build("rodeo")
        .bind(&other.expect("it learns"), None)
        .map(|_| ());
    assert!(
        matches!(error, Err(Error::ForeignState { .. })),
        "{error:?}"
    );
    let error = build("rodeo").gradient(Key::new(1), &law, cost).map(|_| ());
    assert!(
        matches!(error, Err(Error::MissingState { .. })),
        "{error:?}"
    );
    assert_eq!(law.natural().dtype(), DType::F64);
}
