//! ARM and DisARM: the stated formulas and exact integrals over the uniform number. What they share
//! with ARMS is tested here for the three.

use burn::tensor::{DType, Tensor};
use straightflow::Error;
use straightflow::prelude::*;

use crate::scalar::{build, cost, cost_at, sigmoid};
use crate::support::{assert_close, leaf, tensor, values};

pub const LOGITS: [f64; 7] = [-3.1, -1.3, -0.2, 0.0, 0.4, 1.1, 2.7];

pub fn typed_cost(z: Tensor<3>) -> Tensor<2> {
    cost(z.unsqueeze_dim(3))
}

/// The gradient `[batch, d]` for given uniform numbers `[n, batch, d]`.
pub fn gradient(spec: &str, logits: &[f64], u: &[f64], d: usize, dtype: DType) -> Vec<f64> {
    let batch = logits.len() / d;
    let q = Bernoulli::from_logits(tensor(logits, [batch, d], dtype)).expect("valid");
    let noise = tensor(u, [u.len() / logits.len(), batch, d, 1], dtype);
    let gradient = build(spec).gradient(vec![noise], &q, typed_cost);
    values(gradient.expect("valid"))
}

pub fn exact(logits: &[f64], d: usize) -> Vec<f64> {
    let batch = logits.len() / d;
    let q = Bernoulli::from_logits(tensor(logits, [batch, d], DType::F64)).expect("valid");
    values(
        Exact::default()
            .gradient(&q, typed_cost)
            .expect("few states"),
    )
}

pub fn bit(condition: bool) -> f64 {
    f64::from(u8::from(condition))
}

/// The antithetic bits of one uniform number for each coordinate.
fn pair(logits: &[f64], u: &[f64]) -> [Vec<f64>; 2] {
    let both = || logits.iter().zip(u);
    [
        both().map(|(x, u)| bit(*u > sigmoid(-x))).collect(),
        both().map(|(x, u)| bit(*u < sigmoid(*x))).collect(),
    ]
}

/// The formulas by hand, two pairs of two coordinates, `(arm, disarm)`.
fn by_hand(logits: &[f64], u: &[f64]) -> [Vec<f64>; 2] {
    let d = logits.len();
    let mut sums = [vec![0.0; d], vec![0.0; d]];
    for u in u.chunks(d) {
        let [a, b] = pair(logits, u);
        let gap = cost_at(&a) - cost_at(&b);
        for j in 0..d {
            sums[0][j] += gap * (u[j] - 0.5) / 2.0;
            if a[j] != b[j] {
                let sign = if b[j] == 1.0 { -1.0 } else { 1.0 };
                sums[1][j] += 0.5 * gap * sign * sigmoid(logits[j].abs()) / 2.0;
            }
        }
    }
    sums
}

pub const UNIFORM: [f64; 9] = [0.031, 0.11, 0.24, 0.37, 0.52, 0.63, 0.78, 0.9, 0.97];

/// Both estimators against the formulas, in both precisions.
fn assert_stated(logits: &[f64], u: &[f64]) {
    let want = by_hand(logits, u);
    for (spec, want) in ["arm", "disarm"].into_iter().zip(want) {
        let what = format!("{spec} at {logits:?}, {u:?}");
        let double = gradient(spec, logits, u, 2, DType::F64);
        assert_close(&what, &double, &want, 1e-12);
        let single = gradient(spec, logits, u, 2, DType::F32);
        assert_close(&what, &single, &want, 1e-6);
    }
}

#[test]
fn pairs_have_the_stated_gradient() {
    for (i, x) in LOGITS.iter().enumerate() {
        for (j, u) in UNIFORM.iter().enumerate() {
            let logits = [*x, LOGITS[(i + 3) % 7]];
            let u = [
                *u,
                UNIFORM[(j + 4) % 9],
                UNIFORM[(2 * j + 1) % 9],
                UNIFORM[8 - j],
            ];
            assert_stated(&logits, &u);
        }
    }
}

/// A bit that is almost certain takes its sign from `u` as every other, although the costs mostly
/// differ by its neighbour. The outermost `u` make even the rare value occur.
#[test]
fn pairs_have_the_stated_gradient_at_large_logits() {
    for x in [-11.0, -6.3, -4.2, 4.2, 6.3, 11.0] {
        for neighbour in [-0.7, 0.4] {
            for u in [1e-7, 2e-3, 0.24, 0.78, 0.998, 1.0 - 2e-7] {
                for v in [0.11, 0.9] {
                    assert_stated(&[x, neighbour], &[u, v, 1.0 - v, u]);
                }
            }
        }
    }
}

/// The places where a bit of the pair changes, and 0 and 1.
fn breaks(x: f64) -> Vec<f64> {
    let (p, q) = (sigmoid(x), sigmoid(-x));
    let mut breaks = vec![0.0, p.min(q), p.max(q), 1.0];
    breaks.dedup();
    breaks
}

/// The integral over `u` of one bit: between the breaks the estimate is linear (ARM) or constant
/// (DisARM), so its value in the middle times the width is exact.
#[test]
fn the_integral_over_u_is_the_exact_gradient() {
    for spec in ["arm", "disarm"] {
        for x in LOGITS.into_iter().chain([-7.0, -4.5, 4.5, 7.0]) {
            let pieces = breaks(x);
            let pieces: Vec<(f64, f64)> = pieces.windows(2).map(|w| (w[0], w[1])).collect();
            let middle: Vec<f64> = pieces.iter().map(|(a, b)| (a + b) / 2.0).collect();
            let each = gradient(spec, &vec![x; middle.len()], &middle, 1, DType::F64);
            let widths = pieces.iter().map(|(a, b)| b - a);
            let got: f64 = each.iter().zip(widths).map(|(g, w)| g * w).sum();
            assert_close(&format!("{spec} at {x}"), &[got], &exact(&[x], 1), 1e-12);
        }
    }
}

/// The same in two dimensions, where the cost is not a sum over the coordinates.
#[test]
fn the_integral_over_two_coordinates_is_the_exact_gradient() {
    for spec in ["arm", "disarm"] {
        let logits = [-1.3, 0.6];
        let pieces = logits.map(|x| {
            let breaks = breaks(x);
            let pieces = breaks
                .windows(2)
                .map(|w| ((w[0] + w[1]) / 2.0, w[1] - w[0]));
            pieces.collect::<Vec<(f64, f64)>>()
        });
        let cells: Vec<[(f64, f64); 2]> = pieces[0]
            .iter()
            .flat_map(|a| pieces[1].iter().map(move |b| [*a, *b]))
            .collect();
        let u: Vec<f64> = cells.iter().flat_map(|cell| cell.map(|c| c.0)).collect();
        let each = gradient(spec, &logits.repeat(cells.len()), &u, 2, DType::F64);
        let mut got = [0.0; 2];
        for (g, [a, b]) in each.chunks(2).zip(&cells) {
            got[0] += g[0] * a.1 * b.1;
            got[1] += g[1] * a.1 * b.1;
        }
        assert_close(spec, &got, &exact(&logits, 2), 1e-12);
    }
}

/// DisARM is ARM given the pair, so it cannot vary more; four dependent draws vary less than two
/// independent pairs. The variances are those of 40,000 numbers, and neighbours differ by more than
/// a tenth: that is more than five standard errors of a ratio of variances (2e-2 at a kurtosis of
/// 9), so a false alarm has probability below 1e-6.
#[test]
fn variances_are_in_order() {
    const REPEATS: usize = 20_000;
    let logits = tensor(&[0.8, -0.3].repeat(REPEATS), [REPEATS, 2], DType::F64);
    let q = Bernoulli::from_logits(logits).expect("valid");
    let variance = |spec: &str| {
        let each = values(
            build(spec)
                .gradient(Key::new(50), &q, typed_cost)
                .expect("valid"),
        );
        let of = |j: usize| {
            let column = || each.iter().skip(j).step_by(2);
            let mean = column().sum::<f64>() / REPEATS as f64;
            column().map(|g| (g - mean).powi(2)).sum::<f64>() / REPEATS as f64
        };
        of(0) + of(1)
    };
    let [plain, arm, disarm, arms] = [
        "reinforce:samples=4",
        "arm:samples=2",
        "disarm:samples=2",
        "arms:samples=4",
    ]
    .map(variance);
    println!("reinforce {plain:.4} arm {arm:.4} disarm {disarm:.4} arms {arms:.4}");
    for (less, more) in [(arms, disarm), (disarm, arm), (arm, plain)] {
        assert!(less < 0.9 * more, "{less} {more}");
    }
}

/// The surrogate is the mean over all evaluated draws, the model's own gradient that of this mean,
/// averaged over the batch; the counted evaluations are the declared ones.
#[test]
fn the_surrogate_and_its_price() {
    for (spec, evaluations) in [("arm:samples=3", 6), ("disarm:samples=3", 6), ("arms", 4)] {
        let estimator = build(spec);
        let logits = leaf::<2>(&[0.3, -1.2, 0.8, 0.1], [2, 2], DType::F64);
        let q = Bernoulli::from_logits(logits.clone()).expect("valid");
        let plain = estimator
            .estimate(Key::new(2), &q, typed_cost)
            .expect("valid");
        let grads = plain.surrogate.backward();
        let price = estimator.price(q.law(), estimator.draws());
        assert_eq!(price.evaluations, evaluations, "{spec}");
        assert_eq!(plain.counts.evaluations(), evaluations, "{spec}");
        assert_eq!(plain.counts.gradients(), price.gradients, "{spec}");
        assert_eq!(plain.values.dims(), [evaluations, 2], "{spec}");
        assert_eq!(plain.samples[0].dims(), [evaluations, 2, 2], "{spec}");
        let costs = values(typed_cost(plain.samples[0].clone()));
        assert_close(spec, &values(plain.values), &costs, 1e-14);

        let whole = values(logits.grad(&grads).expect("gradient"));
        let each = estimator
            .gradient(Key::new(2), &q, typed_cost)
            .expect("valid");
        let each: Vec<f64> = values(each).iter().map(|g| g / 2.0).collect();
        assert_close(spec, &whole, &each, 1e-14);

        let scale = leaf::<1>(&[1.4], [1], DType::F64);
        let q = Bernoulli::from_logits(logits.clone()).expect("valid");
        let scaled = estimator.estimate(Key::new(2), &q, |z| {
            typed_cost(z) * scale.clone().unsqueeze::<2>()
        });
        let scaled = scaled.expect("valid").surrogate;
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        assert_close(spec, &values(scaled.clone()), &[1.4 * mean], 1e-14);
        let own = values(scale.grad(&scaled.backward()).expect("gradient"));
        assert_close(spec, &own, &[mean], 1e-12);
    }
}

/// Saturated logits give zero, in single precision too, and near them the factor keeps its digits:
/// `q - joint` would be a difference of numbers that are nearly equal or vanish.
#[test]
fn saturated_logits_have_no_gradient() {
    for dtype in [DType::F32, DType::F64] {
        let saturated = Bernoulli::from_logits(tensor(&[-1e4, 1e4, -200.0, 200.0], [2, 2], dtype));
        let saturated = saturated.expect("valid");
        for spec in [
            "arm",
            "disarm",
            "arms:samples=2",
            "arms:samples=3",
            "arms:samples=100",
        ] {
            let got = build(spec).gradient(Key::new(3), &saturated, typed_cost);
            let got = values(got.expect("valid"));
            assert_eq!(got[..2], [0.0, 0.0], "{spec} {dtype:?}");
            assert!(
                got.iter().all(|g| g.abs() < 1e-80),
                "{spec} {dtype:?}: {got:?}"
            );
        }
        // A share so large that the rare value occurs, against the formula in double precision
        // with q = exp(-|x|) / (1 + exp(-|x|)).
        for x in [-30.0f64, 30.0, -14.0, 14.0] {
            let q = (-x.abs()).exp() / (1.0 + (-x.abs()).exp());
            let r = q.sqrt();
            let factor = (1.0 - q) / (1.0 - (2.0 - 1.0 / r).max(0.0).powi(2));
            let got = gradient(
                "arms:samples=3",
                &[x],
                &[1e-30, 1.0 - 6e-8, 1.0 - 6e-8],
                1,
                dtype,
            );
            let rise = cost_at(&[1.0]) - cost_at(&[0.0]);
            // One of three draws is rare: 1/2 sum (f - mean)(b - p) = rise * 1/3 in size.
            assert_close(
                &format!("{x} {dtype:?}"),
                &got,
                &[rise * factor / 3.0],
                1e-6,
            );
        }
    }
}

#[test]
fn other_families_and_too_few_draws_are_refused() {
    let q = Poisson::from_rates(tensor(&[1.0], [1, 1], DType::F32)).expect("valid");
    for spec in ["arm", "disarm", "arms"] {
        let refused = build(spec).gradient(Key::new(1), &q, |z| z);
        assert!(
            matches!(refused, Err(Error::UnsupportedFamily { .. })),
            "{spec}"
        );
    }
    for (spec, needed) in [
        ("arm:samples=0", 1),
        ("disarm:samples=0", 1),
        ("arms:samples=1", 2),
    ] {
        let built = spec
            .parse::<Spec>()
            .and_then(|spec| spec.build())
            .map(|_| ());
        let Err(Error::TooFewSamples { needed: got, .. }) = built else {
            panic!("{spec}: {built:?}");
        };
        assert_eq!(got, needed);
    }
}

/// The cost `w f(z)` of one parameter `w` of its own.
#[test]
fn a_model_may_be_trained_on_the_first_draws_alone() {
    let logits = [0.4, -1.3];
    let u = [0.9, 0.37, 0.55, 0.78];
    let of = |spec: &str| {
        let parameters = leaf(&logits, [1, 2], DType::F64);
        let q = Bernoulli::from_logits(parameters.clone()).expect("valid");
        let scale = leaf(&[1.5], [1], DType::F64);
        let noise = tensor(&u, [2, 1, 2, 1], DType::F64);
        let estimate = build(spec)
            .estimate(vec![noise], &q, |z| {
                typed_cost(z) * scale.clone().unsqueeze::<2>()
            })
            .expect("valid");
        let value = values(estimate.surrogate.clone().inner());
        let mean = values(estimate.values.clone().mean());
        assert_close("the value", &value, &mean, 1e-14);
        let grads = estimate.surrogate.backward();
        let by_logits = values(parameters.grad(&grads).expect("a gradient"));
        let by_scale = values(scale.grad(&grads).expect("a gradient"));
        (by_logits, by_scale[0])
    };
    let (all_logits, all_scale) = of("arm");
    let (first_logits, first_scale) = of("arm:preset=paper");
    assert_eq!(
        all_logits, first_logits,
        "the encoder's gradient is the same"
    );
    let pairs: Vec<[Vec<f64>; 2]> = u.chunks(2).map(|u| pair(&logits, u)).collect();
    let mean = |which: &[usize]| {
        let costs = pairs
            .iter()
            .flat_map(|pair| which.iter().map(|i| cost_at(&pair[*i])));
        costs.sum::<f64>() / (pairs.len() * which.len()) as f64
    };
    assert_close("all", &[all_scale], &[mean(&[0, 1])], 1e-12);
    assert_close("first", &[first_scale], &[mean(&[0])], 1e-12);
    assert_ne!(all_scale, first_scale);
}
