//! Local DisARM: the known mean and variance of a small bound, and DisARM with one draw.

use burn::tensor::{DType, Tensor};
use straightflow::objective::ObjectiveKind;
use straightflow::prelude::*;

use crate::scalar::{build, sigmoid};
use crate::support::{assert_close, tensor, values};

const LOGITS: [f64; 2] = [0.4, -1.3];

/// The negative log-weight, `-1.7 f`.
fn cost(z: Tensor<3>) -> Tensor<2> {
    let [n, batch, _] = z.dims();
    let bit = |j: usize| z.clone().narrow(2, j, 1).reshape([n, batch]);
    let t = bit(0) * 0.7 - bit(1) * 1.1;
    let f = (t.clone() * 1.3 + 0.2).sin() + t.square() * 0.5 + bit(0) * bit(1) * 0.6;
    f * -1.7
}

/// Uniform numbers for each of the four pairs of antithetic bits, with their probabilities: a pair is
/// constant between p, 1 - p and the ends.
fn cells(logit: f64) -> Vec<(f64, f64)> {
    let p = sigmoid(logit);
    let (low, high) = (p.min(1.0 - p), p.max(1.0 - p));
    [(0.0, low), (low, high), (high, 1.0)]
        .map(|(a, b)| (0.5 * (a + b), b - a))
        .to_vec()
}

#[test]
fn the_mean_and_variance_of_a_bound_of_two_draws_are_known() {
    // Two draws of two bits: 3^4 cells.
    let [first, second] = LOGITS.map(cells);
    let mut outcomes: Vec<([f64; 4], f64)> = Vec::new();
    for (a, p) in &first {
        for (b, q) in &second {
            for (c, r) in &first {
                for (d, s) in &second {
                    outcomes.push(([*a, *b, *c, *d], p * q * r * s));
                }
            }
        }
    }
    let batch = outcomes.len();
    let u = (0..2).flat_map(|k| {
        outcomes
            .iter()
            .flat_map(move |(u, _)| [u[2 * k], u[2 * k + 1]])
    });
    let noise = vec![tensor(&u.collect::<Vec<_>>(), [2, batch, 2, 1], DType::F64)];
    let q = Bernoulli::from_logits(tensor(&LOGITS.repeat(batch), [batch, 2], DType::F64));
    let q = q.expect("valid");
    let single = Single::new(&q, (), |z, _, ()| cost(z)).of_kind(ObjectiveKind::Bound);
    let method = build("local-disarm");
    let each = values(method.gradient_of(noise.clone(), &single).expect("valid"));
    let (mut mean, mut square) = ([0.0; 2], 0.0);
    for (row, (_, p)) in each.chunks(2).zip(&outcomes) {
        for (mean, g) in mean.iter_mut().zip(row) {
            *mean += p * g;
            square += p * g * g;
        }
    }
    let variance = square - mean.iter().map(|g| g * g).sum::<f64>();
    // The numbers are those of a bound that is maximised.
    assert_close(
        "mean",
        &mean,
        &[-0.348_802_669_763, 0.178_302_579_385],
        1e-11,
    );
    assert!((variance - 0.124_144_908_647).abs() < 1e-11, "{variance}");

    let estimate = method.estimate_objective(noise, &single).expect("valid");
    let values_ = values(estimate.values.clone());
    let bound = |i: usize| -(0.5 * ((-values_[i]).exp() + (-values_[batch + i]).exp())).ln();
    let expected: f64 = (0..batch).map(|i| outcomes[i].1 * bound(i)).sum();
    assert!((expected + 1.221_928_724_605).abs() < 1e-11, "{expected}");
    let plain: f64 = (0..batch).map(bound).sum::<f64>() / batch as f64;
    assert_close("value", &values(estimate.surrogate), &[plain], 1e-12);
}

/// One draw is no bound but an expectation, and the rule is DisARM's.
#[test]
fn one_draw_is_disarm() {
    let natural = [0.4, -1.3, 2.2, -0.1];
    let u = [0.31, 0.77, 0.52, 0.09];
    for dtype in [DType::F32, DType::F64] {
        let q = Bernoulli::from_logits(tensor(&natural, [2, 2], dtype)).expect("valid");
        let noise = || vec![tensor(&u, [1, 2, 2, 1], dtype)];
        let single = Single::new(&q, (), |z, _, ()| cost(z)).of_kind(ObjectiveKind::Bound);
        let local = build("local-disarm:samples=1").gradient_of(noise(), &single);
        let disarm = build("disarm").gradient(noise(), &q, cost);
        let [local, disarm] = [local, disarm].map(|g| values(g.expect("valid")));
        assert_close("one draw", &local, &disarm, 1e-6);
        assert!(disarm.iter().any(|g| g.abs() > 1e-2));
    }
}

/// Costs of any size are finite, and a constant in all of them changes nothing.
#[test]
fn log_weights_of_any_size() {
    let q = Bernoulli::from_logits(tensor(&[0.4, -1e4, 1e4], [1, 3], DType::F32)).expect("valid");
    let run = |shift: f64, scale: f64| {
        let cost = Single::new(&q, (), |z, _, ()| z.sum_dim(2) * scale + shift);
        let bound = cost.of_kind(ObjectiveKind::Bound);
        values(
            build("local-disarm:samples=3")
                .gradient_of(Key::new(2), &bound)
                .expect("finite"),
        )
    };
    let plain = run(0.0, 0.5);
    assert_close("shift", &run(1024.0, 0.5), &plain, 1e-6);
    assert_eq!(plain[1..], [0.0, 0.0]);
    for scale in [1e4, -1e4, 1e30] {
        assert!(run(0.0, scale).iter().all(|g| g.is_finite()), "{scale}");
    }
}
