//! Subsets of fixed size: numbers by hand, the special cases, the limits, and the methods on them.

use burn::tensor::{DType, Tensor};
use straightflow::distribution::{Categorical, Distribution, Family, Law, Subset};
use straightflow::prelude::*;

use crate::scalar::{build, subsets, weighted_sum};
use crate::support::{assert_close, leaf, tensor, values};

const A: [f64; 4] = [0.3, -1.2, 0.8, 0.1];
const B: [f64; 6] = [0.5, -0.7, 1.1, 0.0, -0.4, 0.9];
const PRECISIONS: [(DType, f64); 2] = [(DType::F32, 2e-6), (DType::F64, 1e-12)];

fn subset(size: u32, logits: &[f64], dtype: DType) -> Subset {
    let logits = tensor(logits, [1, 1, logits.len()], dtype);
    Subset::from_logits(size, logits).expect("valid")
}

/// Computed apart from this library, by elementary symmetric polynomials.
#[test]
fn numbers_by_hand() {
    for (dtype, tolerance) in PRECISIONS {
        let q = subset(2, &A, dtype);
        let reversed: Vec<f64> = A.iter().rev().copied().collect();
        let close = |what: &str, got: Vec<f64>, want: &[f64]| {
            assert_close(what, &got, want, tolerance);
        };
        close(
            "log-partition",
            values(q.log_partition()),
            &[2.1240987271109],
        );
        close("entropy", values(q.entropy().unwrap()), &[1.5126773789226]);
        let other = subset(2, &reversed, dtype);
        close(
            "divergence",
            values(q.kl(&other).unwrap()),
            &[1.1442801307755],
        );
        let mean = [
            0.5860552962461,
            0.1685237330800,
            0.7332730599186,
            0.5121479107553,
        ];
        close("means", values(q.mean()), &mean);
        let row = [
            0.2425944859880,
            -0.0501626214693,
            -0.0706185756593,
            -0.1218132888594,
        ];
        let first = tensor::<3>(&[1.0, 0.0, 0.0, 0.0], [1, 1, 4], dtype);
        close("covariances", values(q.law().chain(first)), &row);
        let ones = tensor::<3>(&[1.0; 4], [1, 1, 4], dtype);
        close("of the sum", values(q.law().chain(ones)), &[0.0; 4]);

        let q = subset(3, &B, dtype);
        close(
            "log-partition",
            values(q.log_partition()),
            &[4.0726762012688],
        );
        close("entropy", values(q.entropy().unwrap()), &[2.6416741615825]);
        let mean = [
            0.5820632644760,
            0.2448317758803,
            0.7397263990161,
            0.4263005873900,
            0.3143973571284,
            0.6926806161092,
        ];
        close("means", values(q.mean()), &mean);
    }
}

/// The quantities of a law that have no randomness, with the gradients of those on the tape.
fn quantities<D: Distribution<Parameters = Tensor<3>, Samples = Tensor<4>>>(
    make: impl Fn(Tensor<3>) -> D,
    logits: &[f64],
    z: &[f64],
) -> Vec<Vec<f64>> {
    let shape = [1, 1, logits.len()];
    let dtype = DType::F64;
    let vector = || tensor::<3>(z, shape, dtype);
    let other = make(tensor::<3>(logits, shape, dtype) * 0.5 - 0.2);
    let mut all = vec![
        values(make(tensor(logits, shape, dtype)).variance()),
        values(make(tensor(logits, shape, dtype)).law().chain(vector())),
    ];
    let scalars: [&dyn Fn(&D) -> Tensor<1>; 4] = [
        &|q| (q.mean() * vector()).sum(),
        &|q| q.entropy().expect("closed form"),
        &|q| q.kl(&other).expect("one family") + other.kl(q).expect("one family"),
        &|q| q.log_prob(vector().unsqueeze()).sum(),
    ];
    for scalar in scalars {
        let parameters = leaf::<3>(logits, shape, dtype);
        let value = scalar(&make(parameters.clone()));
        all.push(values(value.clone()));
        let gradient = parameters.grad(&value.sum().backward());
        all.push(values(gradient.expect("on the tape")));
    }
    all
}

#[test]
fn one_item_is_a_category() {
    let z = [0.0, 0.0, 1.0, 0.0];
    let one = quantities(|x| Subset::from_logits(1, x).unwrap(), &A, &z);
    let category = quantities(|x| Categorical::from_logits(x).unwrap(), &A, &z);
    for (one, category) in one.iter().zip(&category) {
        assert_close("size 1", one, category, 1e-12);
    }
    let cost = |z: Tensor<4>| (z.cumsum(3) * 0.9 + 0.2).sin().sum_dims(&[2, 3]);
    let logits = || tensor::<3>(&A, [1, 1, 4], DType::F64);
    let noise = || vec![tensor::<4>(&z, [1, 1, 1, 4], DType::F64)];
    for spec in ["straight-through", "second-order-st", "reinforce"] {
        let law = |family| Law::new(family, logits()).expect("valid");
        let gradient = |law: &Law| {
            let single = Single::new(law, (), |z, _: &Law, ()| cost(z));
            values(build(spec).gradient_of(noise(), &single).expect("valid"))
        };
        let (one, category) = (
            gradient(&law(Family::Subset { size: 1 })),
            gradient(&law(Family::Categorical)),
        );
        assert_close(spec, &one, &category, 1e-12);
    }
}

/// What is left out is a subset with the opposite logits.
#[test]
fn the_complement_has_opposite_logits() {
    let opposite: Vec<f64> = B.iter().map(|logit| -logit).collect();
    for size in 0..=6 {
        let (q, rest) = (
            subset(size, &B, DType::F64),
            subset(6 - size, &opposite, DType::F64),
        );
        let out: Vec<f64> = values(rest.mean()).iter().map(|m| 1.0 - m).collect();
        assert_close("means", &values(q.mean()), &out, 1e-14);
        assert_close(
            "sum",
            &[values(q.mean().sum())[0]],
            &[f64::from(size)],
            1e-13,
        );
        let along = tensor::<3>(&A.repeat(2)[..6], [1, 1, 6], DType::F64);
        let [own, other] = [&q, &rest].map(|q| values(q.law().chain(along.clone())));
        assert_close("covariances", &own, &other, 1e-13);
        let [own, other] = [&q, &rest].map(|q| values(q.entropy().expect("closed form")));
        assert_close("entropies", &own, &other, 1e-13);
    }
}

/// Every size against the sum over all subsets.
#[test]
fn every_size_agrees_with_enumeration() {
    for size in 0..=6u32 {
        let q = subset(size, &B, DType::F64);
        let states = subsets(&B, size);
        let draws: Vec<f64> = states.iter().flat_map(|(z, _)| z.clone()).collect();
        let draws = tensor::<4>(&draws, [states.len(), 1, 1, 6], DType::F64);
        let want: Vec<f64> = states.iter().map(|(_, p)| p.ln()).collect();
        assert_close(
            "log-probabilities",
            &values(q.log_prob(draws)),
            &want,
            1e-13,
        );
        let mean = weighted_sum(states.iter().map(|(z, p)| (*p, z)));
        assert_close("means", &values(q.mean()), &mean, 1e-14);
        let along: Vec<f64> = (0..6).map(|i| (1.3 * f64::from(i)).cos()).collect();
        let mut product = vec![0.0; 6];
        for (z, p) in &states {
            let deviation: Vec<f64> = z.iter().zip(&mean).map(|(z, m)| z - m).collect();
            let dot: f64 = deviation.iter().zip(&along).map(|(x, v)| x * v).sum();
            let terms = product.iter_mut().zip(&deviation);
            terms.for_each(|(product, x)| *product += p * dot * x);
        }
        let got = q.law().chain(tensor::<3>(&along, [1, 1, 6], DType::F64));
        assert_close("covariances", &values(got), &product, 1e-14);
        let all = Exact::default().count(q.law()).expect("few");
        assert_eq!(all, states.len());
    }
}

/// Draws have the right number of ones and the probabilities of the law: a chi-squared test with 5
/// degrees of freedom, where 40 is exceeded with a probability of 2e-7.
#[test]
fn samples_follow_the_law() {
    for (size, logits) in [(2, &A[..]), (3, &A[..]), (1, &A[..])] {
        let q = subset(size, logits, DType::F32);
        let n = 60_000;
        let draws = values(q.sample(Key::new(11), n));
        let states = subsets(logits, size);
        let mut counts = vec![0.0; states.len()];
        for z in draws.chunks(4) {
            let state = states.iter().position(|(state, _)| state == z);
            counts[state.expect("a subset of that size")] += 1.0;
        }
        let terms = counts.iter().zip(&states);
        let square: f64 = terms
            .map(|(count, (_, p))| (count - n as f64 * p).powi(2) / (n as f64 * p))
            .sum();
        assert!(square < 40.0, "{size}: {square}");
    }
}

#[test]
fn large_logits_are_exact() {
    for (dtype, tolerance) in PRECISIONS {
        let q = subset(2, &[1e4, 0.0, -1e4, 0.0], dtype);
        assert_close("means", &values(q.mean()), &[1.0, 0.5, 0.0, 0.5], tolerance);
        let entropy = values(q.entropy().expect("closed form"));
        assert_close("entropy", &entropy, &[2f64.ln()], tolerance);
        let z = tensor::<4>(&[1.0, 1.0, 0.0, 0.0], [1, 1, 1, 4], dtype);
        assert_close("likely", &values(q.log_prob(z)), &[-2f64.ln()], tolerance);
        let z = tensor::<4>(&[0.0, 1.0, 1.0, 0.0], [1, 1, 1, 4], dtype);
        let rare = values(q.log_prob(z));
        assert_close("rare", &[rare[0] / 2e4], &[-1.0], 1e-4);
        let z = q.sample(Key::new(3), 100);
        assert_eq!(values(z.narrow(3, 0, 1).sum())[0], 100.0);
    }
}

/// The size that routers and masks have, in both precisions: finite, and the means sum up.
#[test]
fn many_items() {
    let (items, size) = (4096, 64);
    let logits: Vec<f64> = (0..items)
        .map(|i| 2.0 * (0.7 * f64::from(i)).sin())
        .collect();
    for (dtype, tolerance) in PRECISIONS {
        let shape = [1, 1, items as usize];
        let parameters = leaf::<3>(&logits, shape, dtype);
        let q = Subset::from_logits(size, parameters.clone()).expect("valid");
        let mean = values(q.mean());
        let sum: f64 = mean.iter().sum();
        assert!((sum - 64.0).abs() < 64.0 * tolerance * 100.0, "{sum}");
        let z = estimator("straight-through").unwrap().draw(Key::new(1), &q);
        let z = z.expect("valid");
        assert_eq!(values(z.clone()).iter().sum::<f64>(), 64.0);
        let weights: Vec<f64> = (0..items).map(|i| (0.3 * f64::from(i)).cos()).collect();
        let grads = (z * tensor::<3>(&weights, shape, dtype)).sum().backward();
        let gradient = values(parameters.grad(&grads).expect("on the tape"));
        assert!(gradient.iter().all(|g| g.is_finite()));
        // A constant in all logits changes nothing.
        assert!(gradient.iter().sum::<f64>().abs() < 1e-4);
    }
}

/// `f(z) = z H z / 2 + a z`, of which all gradients and variances below are known.
fn quadratic(m: usize) -> (Vec<f64>, Vec<f64>) {
    let entry = |i: usize, j: usize| (1.0 + (i * m + j) as f64).sin();
    let h = (0..m * m).map(|x| 0.5 * (entry(x / m, x % m) + entry(x % m, x / m)));
    let a = (0..m).map(|i| -0.9 + 2.2 * i as f64 / (m - 1) as f64);
    (h.collect(), a.collect())
}

fn quadratic_cost(z: Tensor<4>) -> Tensor<2> {
    let m = z.dims()[3];
    let (h, a) = quadratic(m);
    let h = tensor::<4>(&h, [1, 1, m, m], z.dtype());
    let a = tensor::<4>(&a, [1, 1, 1, m], z.dtype());
    let each = z.clone() * (z.clone().matmul(h) * 0.5 + a);
    each.sum_dims(&[2, 3]).squeeze_dims(&[2, 3])
}

/// Draws, other noise, and their probability.
type Outcome = (Vec<Vec<f64>>, Vec<f64>, f64);

/// The estimate of each outcome.
fn estimates(spec: &str, law: &Law, outcomes: &[Outcome]) -> Vec<Vec<f64>> {
    let m = law.dims()[2];
    let batch = outcomes.len();
    let all = Law::new(law.family(), law.natural().repeat_dim(0, batch)).expect("valid");
    let n = outcomes[0].0.len();
    let draws = (0..n).flat_map(|i| outcomes.iter().flat_map(move |(z, ..)| z[i].clone()));
    let draws: Vec<f64> = draws.collect();
    let mut noise = vec![tensor(&draws, [n, batch, 1, m], DType::F64)];
    for i in 0..outcomes[0].1.len() {
        let numbers: Vec<f64> = outcomes.iter().map(|(_, u, _)| u[i]).collect();
        noise.push(tensor(&numbers, [1, batch, 1, 1], DType::F64));
    }
    let single = Single::new(&all, (), |z, _: &Law, ()| quadratic_cost(z));
    let gradients = build(spec).gradient_of(noise, &single).expect("valid");
    values(gradients).chunks(m).map(<[f64]>::to_vec).collect()
}

/// Mean and total variance of an estimate over all outcomes.
fn moments(spec: &str, law: &Law, outcomes: &[Outcome]) -> (Vec<f64>, f64) {
    let rows = estimates(spec, law, outcomes);
    let weighted = || rows.iter().zip(outcomes).map(|(row, (.., p))| (*p, row));
    let mean = weighted_sum(weighted());
    let square: f64 = weighted()
        .map(|(p, row)| p * row.iter().map(|g| g * g).sum::<f64>())
        .sum();
    let variance = square - mean.iter().map(|m| m * m).sum::<f64>();
    (mean, variance)
}

/// Exact gradients, biases and variances of the methods, computed apart from this library.
#[test]
fn methods_have_the_known_moments() {
    let exact = [
        -0.253768375415,
        -0.054546870498,
        -0.007876602082,
        0.316191847995,
    ];
    for (size, logits, bias, variances) in [
        (
            2,
            &A[..],
            0.0998,
            [
                0.062953367838,
                0.247555753882,
                0.469910404061,
                0.115742342572,
            ],
        ),
        (
            3,
            &B[..],
            0.0364,
            [
                0.031817266494,
                0.247591531259,
                0.723778009049,
                0.060310133325,
            ],
        ),
    ] {
        let q = subset(size, logits, DType::F64);
        let law = q.law();
        let truth = Exact::default().gradient(law, quadratic_cost).expect("few");
        let truth = values(truth);
        if size == 2 {
            assert_close("exact", &truth, &exact, 1e-11);
        }
        let states = subsets(logits, size);
        let single: Vec<_> = states
            .iter()
            .map(|(z, p)| (vec![z.clone()], Vec::new(), *p))
            .collect();
        let pairs: Vec<_> = states
            .iter()
            .flat_map(|(a, p)| {
                let pair =
                    |(b, w): &(Vec<f64>, f64)| (vec![a.clone(), b.clone()], Vec::new(), p * w);
                states.iter().map(pair).collect::<Vec<_>>()
            })
            .collect();
        let [st, second, loo, second_loo] = variances;
        let (mean, variance) = moments("straight-through", law, &single);
        let gap: f64 = mean.iter().zip(&truth).map(|(m, t)| (m - t).powi(2)).sum();
        assert_close("bias", &[gap.sqrt()], &[bias], 6e-5);
        assert_close("straight-through", &[variance], &[st], 1e-11);
        for (spec, outcomes, want) in [
            ("second-order-st", &single, second),
            ("reinforce:baseline=loo,samples=2", &pairs, loo),
            ("second-order-st:baseline=loo,samples=2", &pairs, second_loo),
        ] {
            let (mean, variance) = moments(spec, law, outcomes);
            assert_close(spec, &mean, &truth, 1e-13);
            assert_close(spec, &[variance], &[want], 1e-11);
        }
    }
}

/// A step of the difference of an item's exchange, as a function of the uniform number that chooses
/// the partner.
struct Step {
    state: usize,
    item: usize,
    /// It is between these two numbers.
    ends: [f64; 2],
    /// The difference before it.
    before: f64,
}

/// Every subset with every choice of partners: the uniform number that chooses them has a grid to find
/// the steps, and halving to find their places to rounding.
fn exchanges(law: &Law, states: &[(Vec<f64>, f64)]) -> Vec<Outcome> {
    const POINTS: usize = 400;
    const HALVINGS: usize = 52;
    let at = |points: &[(usize, f64)]| {
        let outcomes: Vec<Outcome> = points
            .iter()
            .map(|(state, u)| (vec![states[*state].0.clone()], vec![*u], 1.0))
            .collect();
        estimates("finite-difference", law, &outcomes)
    };
    let differ = |a: f64, b: f64| (a - b).abs() > 1e-9;
    let grid: Vec<(usize, f64)> = (0..states.len() * POINTS)
        .map(|i| (i / POINTS, ((i % POINTS) as f64 + 0.5) / POINTS as f64))
        .collect();
    let rows = at(&grid);
    let mut steps = Vec::new();
    for i in (1..grid.len()).filter(|i| i % POINTS > 0) {
        let [before, after] = [&rows[i - 1], &rows[i]];
        let items = (0..before.len()).filter(|item| differ(before[*item], after[*item]));
        steps.extend(items.map(|item| Step {
            state: grid[i].0,
            item,
            ends: [grid[i - 1].1, grid[i].1],
            before: before[item],
        }));
    }
    for _ in 0..HALVINGS {
        let middle = |step: &Step| (step.state, 0.5 * (step.ends[0] + step.ends[1]));
        let middles: Vec<(usize, f64)> = steps.iter().map(middle).collect();
        for (i, row) in at(&middles).iter().enumerate() {
            let step = &mut steps[i];
            step.ends[usize::from(differ(row[step.item], step.before))] = middles[i].1;
        }
    }
    let mut outcomes = Vec::new();
    for (state, (z, p)) in states.iter().enumerate() {
        let own = steps.iter().filter(|step| step.state == state);
        let mut ends: Vec<f64> = own.map(|step| step.ends[0]).chain([1.0]).collect();
        ends.sort_by(f64::total_cmp);
        let mut begin = 0.0;
        for end in ends {
            let middle = 0.5 * (begin + end);
            outcomes.push((vec![z.clone()], vec![middle], p * (end - begin)));
            begin = end;
        }
    }
    outcomes
}

/// Differences of exchanges, and straight-through corrected by one of them: the exact gradient on
/// average.
#[test]
fn exchanges_give_the_gradient() {
    for (size, logits, variance) in [(2, &A[..], 0.082017455331), (3, &B[..], 0.114694015645)] {
        let q = subset(size, logits, DType::F64);
        let law = q.law();
        let truth = values(Exact::default().gradient(law, quadratic_cost).expect("few"));
        let states = subsets(logits, size);
        let outcomes = exchanges(law, &states);
        assert!(outcomes.len() > 2 * states.len(), "{}", outcomes.len());
        let (mean, spread) = moments("finite-difference", law, &outcomes);
        assert_close("finite-difference", &mean, &truth, 1e-12);
        assert_close("its variance", &[spread], &[variance], 1e-11);

        // One item is chosen with probability v / sum v.
        let weights = values(q.variance());
        let total: f64 = weights.iter().sum();
        let mut end = 0.0;
        let choices: Vec<(f64, f64)> = weights
            .iter()
            .map(|weight| {
                let p = weight / total;
                end += p;
                (end - 0.5 * p, p)
            })
            .collect();
        for base in ["straight-through", "second-order-st", "none"] {
            let spec = format!("debiased-st:choice=variance,curvature=off,base={base}");
            let outcomes: Vec<_> = outcomes
                .iter()
                .flat_map(|(z, u, p)| {
                    let with_choice = |(choice, chance): &(f64, f64)| {
                        (z.clone(), vec![*choice, u[0]], p * chance)
                    };
                    choices.iter().map(with_choice).collect::<Vec<_>>()
                })
                .collect();
            let (mean, _) = moments(&spec, law, &outcomes);
            assert_close(&spec, &mean, &truth, 1e-12);
        }
    }
}

/// The kernel of the raw flow is a tilt: the library's closed form against the sum over all pairs of
/// subsets is in the conformance suite; here, that no gain is claimed.
#[test]
fn the_flow_has_its_raw_gradient_only() {
    let q = subset(2, &A, DType::F64);
    let cost = |z: Tensor<4>| z.cumsum(3).sum_dims(&[2, 3]);
    for spec in ["pwgf", "pwgf:gain=projection", "pwgf:preset=paper,cv=off"] {
        let refused = build(spec).gradient(Key::new(1), &q, cost);
        let message = refused.expect_err(spec).to_string();
        assert!(message.contains("gain=raw"), "{message}");
    }
    let z = vec![tensor::<4>(&[1.0, 0.0, 1.0, 0.0], [1, 1, 1, 4], DType::F64)];
    let single = Single::new(q.law(), (), |z, _: &Law, ()| cost(z));
    let mean = build("pwgf:projection=mean").gradient_of(z.clone(), &single);
    let through = build("straight-through").gradient_of(z.clone(), &single);
    assert_eq!(
        values(mean.expect("valid")),
        values(through.expect("valid"))
    );
    build("pwgf:preset=paper")
        .gradient_of(z, &single)
        .expect("valid");
}

#[test]
fn what_is_no_subset_is_refused() {
    let logits = || tensor::<3>(&A, [1, 1, 4], DType::F64);
    let error = Subset::from_logits(5, logits()).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "a subset of 4 items cannot have 5 of them"
    );
    let means = Law::from_means(Family::Subset { size: 2 }, logits());
    assert!(matches!(means, Err(Error::NoNatural { .. })));
    let whole = subset(4, &A, DType::F64);
    assert_eq!(values(whole.sample(Key::new(1), 3)), [1.0; 12]);
    assert_close("entropy", &values(whole.entropy().unwrap()), &[0.0], 1e-15);
}
